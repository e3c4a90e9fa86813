"""Prints the tables of docs/formats.md: what each format's files give when they are read, compacted and handed on.

    python tests/bench/formats_table.py

Real files come from the shared folder (MCP_COMPACT_SHARED, or `../shared` beside the repository); formats of which it
holds none are shown by a sample that the tests' writers make. Each file is compacted to a third of its tokens and
written for each provider, whole and compacted; what its rules would refuse is counted.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from mcp_compact.errors import CallerError
from mcp_compact.library import compact_transcript
from mcp_compact.transcripts.registry import detect_format
from mcp_compact.transcripts.validity.providers import PROVIDERS, findings
from mcp_compact.transcripts.validity.rules import DEPENDS, REFUSED
from tests.problems import problems
from tests.transcripts.exporting import all_sent, conversations, dialogue, files, tokens_of
from tests.transcripts.foreign import WRITERS, Call, Turn, read

SHARED = Path(os.environ.get("MCP_COMPACT_SHARED") or REPOSITORY.parent / "shared")
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
    sent: Counter[str] = field(default_factory=Counter)
    """Messages that went out to each provider, whole."""
    would_refuse: Counter[str] = field(default_factory=Counter)
    depends: Counter[str] = field(default_factory=Counter)


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
    hand_on(row, name, data)


def hand_on(row: Row, name: str, data: bytes) -> None:
    """Count what goes out to each provider, whole and compacted, and what its rules say of that."""
    found = dialogue(data, name)
    for target in (None, max(tokens_of(found) // 3, 1)):
        for provider, messages in all_sent(found, target).items():
            row.sent[provider] += len(messages) if target is None else 0
            told = Counter(finding.severity for finding in findings(provider, messages))
            row.would_refuse[provider] += told[REFUSED]
            row.depends[provider] += told[DEPENDS]


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
    for file in files(SHARED):
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


def reading_table(found: dict[tuple[str, str], Row]) -> str:
    """What was read, in Markdown."""
    head = "| format | files | records | messages | pairs | tokens before | tokens after | not understood | lines not read | rules broken |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|---|"]
    for (name, origin), row in sorted(found.items()):
        files = f"{row.files}" if origin == "real" else "a sample"
        files += f" ({len(row.refused)} without messages)" if row.refused else ""
        numbers = (
            row.records, row.messages, row.pairs, row.before_tokens, row.after_tokens, row.not_understood,
            row.unreadable_lines, row.invalid,
        )  # fmt: skip
        lines.append(f"| `{name}` | {files} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    return "\n".join(lines)


def handing_table(found: dict[tuple[str, str], Row]) -> str:
    """What went out to each provider, in Markdown: messages, and what would be refused."""
    lines = [
        "| format | " + " | ".join(f"`{name}`" for name in PROVIDERS) + " | would be refused |",
        "|---|" + "---|" * (len(PROVIDERS) + 1),
    ]
    for (name, _), row in sorted(found.items()):
        sent = " | ".join(f"{row.sent[provider]:,}" for provider in PROVIDERS)
        lines.append(f"| `{name}` | {sent} | {sum(row.would_refuse.values())} |")
    return "\n".join(lines)


if __name__ == "__main__":
    told = rows()
    print(reading_table(told), handing_table(told), sep="\n\n")
