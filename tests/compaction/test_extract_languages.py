"""Names of other languages, platforms and scripts are kept as Python's are: the same work, told in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from mcp_compact.compaction.extract import Material, extract
from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record

NAMES = 24
BUDGET_TOKENS = 200
LEEWAY = 0.15


@dataclass(frozen=True, slots=True)
class Tongue:
    """How a language writes a file's path, a name in it, a line with it, and a sentence about it."""

    path: str
    name: str
    line: str
    said: str = "I changed {name} so that the tide table is read once and kept for the whole run."


PYTHON = Tongue("tides/table_reader.py", "read_table_{i}", "def read_table_{i}(rows, zone, datum, limit=None):")
OTHERS = {
    "java": Tongue(
        "src/main/java/org/tide/Reader.java",
        "readTable{i}",
        "public final Table readTable{i}(List<Row> rows, Zone zone, Datum datum) {",
    ),
    "go": Tongue("internal/tide/reader.go", "ReadTable{i}", "func ReadTable{i}(rows []Row, zone string) (*Table, error) {"),
    "rust": Tongue("src/tide/reader.rs", "tide::read_table_{i}", "pub use tide::read_table_{i} as reader; // rows and zone"),
    "sql": Tongue("db/tide_views.sql", "TIDE_TABLE_{i}", "SELECT high, low, hour FROM TIDE_TABLE_{i} WHERE zone = 3;"),
    "c++": Tongue("lib/reader.cpp", "Tide::readTable{i}", "std::vector<Row> Tide::readTable{i}(const Rows& rows, int zone) {"),
    "typescript": Tongue("web/reader.tsx", "useTable{i}", "export const useTable{i} = (rows: Row[], zone: string) => {"),
    "windows": Tongue(
        r"C:\Harbour\tides\reader.cs", r"C:\Harbour\tables\table{i}.csv", r"load the rows of C:\Harbour\tables\table{i}.csv for one zone"
    ),
    "blanks": Tongue(
        "My Tables/reader.py", "/srv/My Tables/table {i}.csv", 'load the rows of "/srv/My Tables/table {i}.csv" for one zone',
        'I changed "{name}" so that the tide table is read once and kept for the whole run.',
    ),
    "chinese": Tongue(
        "tides/reader.py", "readTable{i}", "# 读取潮汐表时调用readTable{i}函数，按时区和基准面返回结果。",
        "我修改了{name}函数，使潮汐表只读取一次，并在整个运行期间保留。",
    ),
}  # fmt: skip


def record(number: int, role: str, content: object) -> Record:
    raw = {"uuid": f"r{number}", "type": role, "message": {"role": role, "content": content}}
    return Record(MessageUuid(f"r{number}"), role, b"", raw, decode_message(raw["message"], role), seq=number)


def numbered(text: str, i: int) -> str:
    return text.replace("{i}", str(10 + i))


def session(tongue: Tongue) -> tuple[list[Record], list[str]]:
    """A file is read, and every third name of it changed and spoken of; those names."""
    names = [numbered(tongue.name, i) for i in range(NAMES)]
    lines = [numbered(tongue.line, i) for i in range(NAMES)]
    call = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": tongue.path}}
    told = [
        record(1, "user", "Please read every tide table only once."),
        record(2, "assistant", [call]),
        record(3, "user", [{"type": "tool_result", "tool_use_id": "t", "content": "\n".join(lines)}]),
    ]
    changed = names[::3]
    told += [record(4 + i, "assistant", tongue.said.replace("{name}", name)) for i, name in enumerate(changed)]
    return told, changed


def count(texts: Sequence[str]) -> list[int]:
    """A character is a unit, so that scripts with longer tokens are not cut shorter."""
    return [len(text) * 250 for text in texts]


def kept_share(tongue: Tongue) -> float:
    records, names = session(tongue)
    memory = extract(Material(tuple(records)), BUDGET_TOKENS * 1000, None, count).render()
    return sum(name in memory for name in names) / len(names)


@pytest.mark.parametrize("name", OTHERS)
def test_as_much_is_kept_of_the_names_as_of_pythons(name: str) -> None:
    assert kept_share(OTHERS[name]) >= kept_share(PYTHON) - LEEWAY


def test_the_measure_tells_that_something_is_kept_and_something_is_not() -> None:
    records, _ = session(PYTHON)
    memory = extract(Material(tuple(records)), BUDGET_TOKENS * 1000, None, count).render()
    assert kept_share(PYTHON) >= 0.5
    assert sum(numbered(PYTHON.name, i) in memory for i in range(NAMES)) < NAMES
