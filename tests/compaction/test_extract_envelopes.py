from __future__ import annotations

import pytest

from mcp_compact.compaction.extract_envelopes import is_envelope, without_envelope
from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_memory import memory_passages
from mcp_compact.messages.memory_document import parse

SAID = "src/shop.py:12: the total is rounded twice"
ENVELOPES = (
    "Chunk ID: 143744\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 205\nOutput:\n{}",
    "Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{}",
    "Exit code: 0\nWall time: 1.2 seconds\nTotal output lines: 900\nOutput:\n\n{}",
    "{}\n[The command completed with exit code 0.]",
    "<returncode>0</returncode>\n<output>\n{}\n</output>",
    "{}\nError: (none)\nExit Code: 0\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 4242",
)


def kept(text: str) -> list[str]:
    return [line.text for line in without_envelope(text, Splitter("").lines(text))]


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_what_a_harness_writes_around_an_output_says_nothing_where_all_went_well(envelope):
    assert kept(envelope.format(SAID)) == [SAID]


@pytest.mark.parametrize(
    "line",
    [
        "Process exited with code 2",
        "Exit code: 1",
        "<returncode>127</returncode>",
        "[The command completed with exit code 10.]",
        "Exit code: 0 is what the worker gives back for an empty queue",
        "Error: (none) of the rows had a price",
    ],
)
def test_a_failure_and_a_sentence_say_something(line):
    assert not is_envelope(line)
    assert line in kept(f"Exit code: 0\n{line}\nWall time: 1 seconds")


def test_a_heading_stays_where_no_envelope_is():
    assert kept(f"Output:\n{SAID}") == ["Output:", SAID]


def test_envelopes_are_not_read_back_from_an_older_memory():
    old = (
        f"# M\n\n## Workflow and commands\n- `make`\n  > Wall time: 0.1 seconds / Process exited with code 0 / {SAID}\n"
    )
    said = [line.text for passage in memory_passages(parse(old), Splitter("")) for line in passage.lines]

    assert SAID in said
    assert not any(map(is_envelope, said))
