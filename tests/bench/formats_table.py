"""Prints the table of docs/formats.md: what each format's files give when they are read and compacted.

    python tests/bench/formats_table.py

Real files come from the shared folder (MCP_COMPACT_SHARED, or `../shared` beside the repository); formats of which it
holds none are shown by a sample that the tests' writers make. Each file is compacted to a third of its tokens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from mcp_compact.errors import CallerError
from mcp_compact.library import compact_transcript
from mcp_compact.transcripts.registry import detect_format
from tests.problems import problems
from tests.transcripts.foreign import WRITERS, Call, Turn, read

SHARED = Path(os.environ.get("MCP_COMPACT_SHARED") or REPOSITORY.parent / "shared") / "transcripts"
LEFT_OUT = ("recall",)
"""Folders whose files are of a format that another folder shows."""
SAMPLE_TURNS = 40


@dataclass(slots=True)
class Row:
    """The sums over the files of one format."""

    files: int = 0
    records: int = 0
    messages: int = 0
    pairs: int = 0
    before_tokens: int = 0
    after_tokens: int = 0
    not_understood: int = 0
    unreadable_lines: int = 0
    invalid: int = 0
    refused: list[str] = field(default_factory=list)


def conversations(file: Path) -> Iterator[bytes]:
    """The conversations of a file: one, or one a line."""
    data = file.read_bytes()
    if file.parent.name == "openai-chat":
        yield from data.splitlines()
    else:
        yield data


def add(row: Row, name: str, data: bytes) -> None:
    """Count one conversation."""
    reader, parsed = read(name, data)
    report = reader.report
    calls = {call.id for item in parsed for call in item.record.calls}
    results = {result.tool_use_id for item in parsed for result in item.record.results}
    row.records += report.records
    row.messages += report.messages
    row.pairs += len(calls & results)
    row.not_understood += sum(report.unknown_types.values()) + sum(report.unknown_blocks.values())
    row.unreadable_lines += report.problem_count
    try:
        whole = compact_transcript([data], output="anthropic", target_tokens=10**9)
    except CallerError as error:
        row.refused.append(error.code)
        return
    before = whole.report.tokens_before
    smaller = compact_transcript([data], output="anthropic", target_tokens=max(before // 3, 1))
    row.before_tokens += before
    row.after_tokens += smaller.report.tokens_after
    row.invalid += len(problems(whole.messages)) + len(problems(smaller.messages))


def sample() -> list[Turn]:
    """A made-up session of reading and changing files."""
    turns = []
    for number in range(SAMPLE_TURNS):
        path = f"src/part_{number % 7}.py"
        code = "\n".join(f"def step_{number}_{line}(value): return value + {line}" for line in range(30))
        calls = (Call("read", {"path": path}, code), Call("run", {"command": f"pytest {path}"}, f"{number} passed"))
        answer = (f"I read {path} and run its tests.", calls)
        turns.append(Turn(f"Change step {number} of {path}; keep its name.", (answer, (f"Step {number} is done.", ()))))
    return turns


def rows() -> dict[tuple[str, str], Row]:
    """A row for each format and where its files come from."""
    found: dict[tuple[str, str], Row] = {}
    for file in sorted(SHARED.glob("*/*")):
        if file.parent.name in LEFT_OUT or file.suffix not in (".json", ".jsonl"):
            continue
        names = set()
        for data in conversations(file):
            name = detect_format(data)
            names.add(name)
            add(found.setdefault((name, "real"), Row()), name, data)
        for name in names:
            found[name, "real"].files += 1
    for name, write in WRITERS.items():
        if (name, "real") not in found:
            row = found[name, "sample"] = Row(files=1)
            add(row, name, write(sample()))
    return found


def table() -> str:
    """The table in Markdown."""
    head = "| format | files | records | messages | pairs | tokens before | tokens after | not understood | lines not read | rules broken |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for (name, origin), row in sorted(rows().items()):
        files = f"{row.files}" if origin == "real" else "a sample"
        files += f" ({len(row.refused)} without messages)" if row.refused else ""
        numbers = (
            row.records, row.messages, row.pairs, row.before_tokens, row.after_tokens, row.not_understood,
            row.unreadable_lines, row.invalid,
        )  # fmt: skip
        lines.append(f"| `{name}` | {files} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
