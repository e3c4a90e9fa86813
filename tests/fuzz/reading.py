"""What must hold of any bytes that a reader is given, without an archive: the fast part, for coverage-guided fuzzing."""

from __future__ import annotations

import json
from dataclasses import replace

from mcp_compact.compaction.in_memory import turns_of
from mcp_compact.compaction.request import Surroundings
from mcp_compact.errors import CallerError
from mcp_compact.messages.live import live_context
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
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
    json.dumps([reader.state(), reader.report.as_json()], ensure_ascii=False, allow_nan=False).encode()
    middle = len(data) // 2
    _, in_pieces = _read(name, [data[:middle], data[middle:]])
    assert [item.record.body for item in in_pieces] == [item.record.body for item in found]
    assert [item.record.uuid for item in in_pieces] == [item.record.uuid for item in found]
    for agent in (None, *reader.agents):
        reader.facts(agent)
        _check_context([item.record for item in found if item.agent_id == agent])
    return ""


def _read(name: str, pieces: list[bytes]) -> tuple[Reader, list[Parsed]]:
    reader = reader_for(name, "source")
    return reader, list(reader.read(read_lines(pieces)))


def _check_context(records: list[Record]) -> None:
    numbered = [replace(record, seq=seq) for seq, record in enumerate(records, 1)]
    for record in numbered:
        json.dumps([record.uuid, record.type], ensure_ascii=False).encode("utf-8", "surrogatepass")
    turns, _ = valid_turns(turns_of(live_context(numbered, ()), Surroundings(session_id="s")))
    messages = to_messages(turns, {record.uuid: record for record in numbered})
    json.dumps(messages, ensure_ascii=False).encode()
    shapes.check(messages)
