"""What must hold of any bytes that a reader is given, without an archive: the fast part, for coverage-guided fuzzing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from mcp_compact.compaction.in_memory import turns_of
from mcp_compact.compaction.request import Surroundings
from mcp_compact.errors import CallerError
from mcp_compact.messages.live import live_context
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
from mcp_compact.transcripts import quick_json
from mcp_compact.transcripts.anthropic_out import to_messages
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.parsed import Parsed, Reader
from mcp_compact.transcripts.registry import detect_format, reader_for
from tests.fuzz import shapes


def check_reading(data: bytes, format_name: str = "") -> str:
    """Read, and give out what a model would be sent. The code of the refusal, empty where it was read.

    Raises AssertionError for what must not be, and whatever a defect raises.
    """
    try:
        name = format_name or detect_format(data)
        reader, found = _read(name, [data])
    except CallerError as error:
        return error.code
    assert json.loads(json.dumps(reader.state(), allow_nan=False)) == reader.state()
    json.dumps(reader.report.as_json(), ensure_ascii=False, allow_nan=False).encode()
    middle = len(data) // 2
    _, in_pieces = _read(name, [data[:middle], data[middle:]])
    assert [item.record.body for item in in_pieces] == [item.record.body for item in found]
    assert [item.record.uuid for item in in_pieces] == [item.record.uuid for item in found]
    with _quick():
        _, quickly = _read(name, [data])
    assert [item.record for item in quickly] == [item.record for item in found]
    for agent in (None, *reader.agents):
        reader.facts(agent)
        _check_context([item.record for item in found if item.agent_id == agent])
    return ""


@contextmanager
def _quick() -> Iterator[None]:
    """With the decoder that takes over after a megabyte, from the first byte on: the same values must come of it."""
    before, quick_json.QUICK_AFTER_BYTES = quick_json.QUICK_AFTER_BYTES, -1
    try:
        yield
    finally:
        quick_json.QUICK_AFTER_BYTES = before


def _read(name: str, pieces: list[bytes]) -> tuple[Reader, list[Parsed]]:
    reader = reader_for(name, "source")
    return reader, list(reader.read(read_lines(pieces)))


def _check_context(records: list[Record]) -> None:
    # Of records of one name an archive keeps the first.
    first = {record.uuid: record for record in reversed(records)}
    kept = [record for record in records if first[record.uuid] is record]
    numbered = [replace(record, seq=seq) for seq, record in enumerate(kept, 1)]
    for record in numbered:
        json.dumps([record.uuid, record.type], ensure_ascii=False).encode("utf-8", "surrogatepass")
    turns, _ = valid_turns(turns_of(live_context(numbered, ()), Surroundings(session_id="s")))
    messages = to_messages(turns, {record.uuid: record for record in numbered})
    json.dumps(messages, ensure_ascii=False).encode()
    shapes.check(messages)
