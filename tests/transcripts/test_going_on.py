"""Files of one entry a line are read on from where another reader stopped: the same records, wherever it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from mcp_compact.config import load_settings
from mcp_compact.messages.message import Record
from mcp_compact.transcripts.lines import Line, read_lines
from mcp_compact.transcripts.parsed import Reader
from mcp_compact.transcripts.registry import detect_format, reader_for
from mcp_compact.wiring import open_service
from tests.transcripts.foreign import AT, WRITERS, Call, Turn, jsonl
from tests.transcripts.test_codex import SESSION as ROLLOUT
from tests.transcripts.test_codex import line as rollout_line
from tests.transcripts.test_codex import said as rollout_said

TALK = [
    Turn("Rename it.", (("I look.", (Call("read", {"path": "a.py"}, "x = 1"), Call("run", {"n": 2}, "no", True))),)),
    Turn("Go on.", (("Done.", (Call("read", {"path": "b.py"}, "y = 1"),)), ("Really.", ()))),
]


def entries_of(format: str) -> list[Any]:
    """The entries of a conversation in a format whose files are one value."""
    value = json.loads(WRITERS[format](TALK))
    return (
        value if isinstance(value, list) else next(item for item in value.values() if isinstance(item, list) and item)
    )


def gemini_line(number: int, kind: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": f"g{number}", "type": kind, "timestamp": AT, "content": f"said {number}", **more}


def pi_line(number: int, parent: int, kind: str = "message", **more: Any) -> dict[str, Any]:
    message = {"message": {"role": "user", "content": f"said {number}"}} if kind == "message" else {}
    return {"type": kind, "id": f"p{number}", "parentId": f"p{parent}" if parent else None, **message, **more}


GEMINI_HEAD = {"sessionId": "s", "projectHash": "p"}
GEMINI_CALL = {"id": "c", "name": "read_file", "args": {}, "status": "success", "result": [{"text": "x"}]}
SESSIONS: dict[str, tuple[str, bytes]] = {
    **{name: (name, WRITERS[name](TALK)) for name in ("copilot-cli", "pi", "api-log")},
    **{name: (name, jsonl(entries_of(name))) for name in ("gemini", "langchain", "responses", "openhands")},
    "pi with compactions": (
        "pi",
        jsonl([
            {"type": "session", "id": "s", "cwd": "/app"}, pi_line(1, 0), pi_line(2, 1), pi_line(3, 2),
            pi_line(4, 3, "compaction", summary="S", firstKeptEntryId="p2", tokensBefore=9), pi_line(5, 4),
            pi_line(6, 3), pi_line(7, 6, "compaction", summary="T", firstKeptEntryId="p3", tokensBefore=9), pi_line(8, 7),
        ]),
    ),
    "pi without ids": (
        "pi",
        jsonl([
            {"type": "session", "id": "s", "cwd": "/app"},
            *({"type": "message", "message": {"role": "user", "content": f"said {at}"}} for at in range(3)),
            {"type": "compaction", "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 9},
            {"type": "message", "message": {"role": "user", "content": "new"}},
        ]),
    ),
    "gemini-cli": (
        "gemini-cli",
        jsonl([
            GEMINI_HEAD, gemini_line(1), gemini_line(2, "gemini"), gemini_line(2, "gemini", toolCalls=[GEMINI_CALL]),
            gemini_line(3), {"$rewindTo": "g3"}, gemini_line(4), gemini_line(5, "gemini"),
            {"$set": {"messages": [gemini_line(6, content="<state_snapshot>"), gemini_line(7, "gemini"),
                                   gemini_line(4), gemini_line(5, "gemini")]}},
            gemini_line(8), {"$rewindTo": "g8"}, gemini_line(9),
        ]),
    ),
    "codex": (
        "codex",
        jsonl([
            *ROLLOUT, rollout_said("user", "A wrong turn."), rollout_said("assistant", "Yes."),
            rollout_line("event_msg", type="thread_rolled_back", num_turns=1), rollout_said("user", "Go on."),
            rollout_line("compacted", message="Gauges are renamed."), rollout_said("user", "Now the dials."),
        ]),
    ),
    "openhands with a condensation": (
        "openhands",
        jsonl([
            *({"id": at, "source": "user", "action": "message", "args": {"content": f"said {at}"}} for at in range(4)),
            {"id": 4, "source": "agent", "action": "condensation", "args": {"forgotten_event_ids": [0, 1], "summary": "S"}},
            {"id": 5, "source": "user", "action": "message", "args": {"content": "new"}},
        ]),
    ),
    "openai": (
        "openai",
        jsonl([
            {"role": "user", "content": "Look."},
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c", "content": "x"}, {"role": "assistant", "content": "Done."},
        ]),
    ),
}  # fmt: skip


def signs(records: Sequence[Record]) -> dict[str, tuple[Any, ...]]:
    """What matters of records, each once."""
    found: dict[str, tuple[Any, ...]] = {}
    for r in records:
        content = r.message.content if r.message else None
        kept = r.raw.get("compactMetadata")
        found.setdefault(r.uuid, (r.type, r.body, content, r.parent_uuid, r.is_root, r.is_summary, r.is_meta, kept))
    return found


def read(reader: Reader, lines: list[Line]) -> list[Record]:
    assert reader.goes_on(lines[0])
    return [item.record for item in reader.read(lines)]


@pytest.mark.parametrize("name", SESSIONS)
def test_another_reader_goes_on_wherever_one_stopped(name: str):
    named, data = SESSIONS[name]
    lines = list(read_lines([data]))
    assert detect_format(data) == named
    complete = reader_for(named, "source")
    whole = signs(read(complete, lines))
    for at in range(1, len(lines)):
        first = reader_for(named, "source")
        records = read(first, lines[:at])
        state = json.loads(json.dumps(first.state()))
        second = reader_for(named, "source", state, lambda _: True)
        assert signs([*records, *read(second, lines[at:])]) == whole, at
        assert not second.report.warning_counts
        assert second.facts() == complete.facts()


@pytest.mark.parametrize("name", ["copilot-cli", "pi with compactions", "gemini-cli", "codex"])
def test_only_what_was_appended_is_read_and_nothing_is_stored_twice(name: str, tmp_path):
    data = SESSIONS[name][1]
    lines = data.splitlines(keepends=True)
    path, whole = tmp_path / "a.jsonl", tmp_path / "b.jsonl"

    async def work():
        stored = 0
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
            for at in range(4, len(lines) + 1):
                path.write_bytes(b"".join(lines[:at]))
                result = await service.import_file(path, session_id="grown")
                stored += result.stored
                assert result.conflicts == 0
                assert at == 4 or result.records <= 10
            whole.write_bytes(data)
            at_once = await service.import_file(whole, session_id="at once")
            again = await service.import_file(path, session_id="grown")
            grown, other = [await service.messages(key) for key in ("grown", "at once")]
            return stored, at_once, again, grown, other

    stored, at_once, again, grown, other = anyio.run(work)
    assert (stored, again.stored, again.records) == (at_once.stored, 0, 0)
    assert [m["content"] for m in grown.messages] == [m["content"] for m in other.messages]


def test_usage_that_is_written_behind_an_answer_reaches_it(tmp_path):
    path = tmp_path / "rollout.jsonl"
    data = jsonl(ROLLOUT)
    end = data.rstrip(b"\n").rfind(b"\n") + 1

    async def work():
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
            path.write_bytes(data[:end])
            await service.import_file(path)
            before = (await service.status("s-1")).tokens
            path.write_bytes(data)
            await service.import_file(path)
            return before, (await service.status("s-1")).tokens

    before, after = anyio.run(work)
    assert before < 6_000 <= after
