"""The formats that can be written, and the writer of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.anthropic_out import to_messages
from mcp_compact.transcripts.beside import NOTHING, Beside
from mcp_compact.transcripts.claude_code_out import to_entries
from mcp_compact.transcripts.codex_out import session_items
from mcp_compact.transcripts.facts import SessionFacts, facts_of
from mcp_compact.transcripts.gemini_out import to_contents
from mcp_compact.transcripts.openai_chat_out import to_chat
from mcp_compact.transcripts.responses_out import to_items
from mcp_compact.transcripts.validity.providers import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, repaired
from mcp_compact.transcripts.validity.rules import Change

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where turns come from: their records, what stands beside them, and the facts of their session."""

    records: Mapping[MessageUuid, Record] = field(default_factory=dict)
    facts: SessionFacts = field(default_factory=SessionFacts)
    session_id: str = ""
    beside: Beside | None = None
    """None where nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Out:
    """A format that can be written."""

    name: str
    title: str
    encode: Callable[[Sequence[Turn], Origin], list[Json]]
    provider: str = ""
    """Whose rules hold for a list in this format; empty for a client's session file."""
    takes_beside: bool = False
    """Has it a place for system prompts, and for what only its own provider can read?"""
    by_line: bool = False
    """Is a file of it JSON lines, not a list?"""


def _anthropic(turns: Sequence[Turn], origin: Origin) -> list[Json]:
    return to_messages(turns, origin.records)


def _openai(turns: Sequence[Turn], origin: Origin) -> list[Json]:
    return to_chat(turns, origin.records, origin.beside or NOTHING)


def _responses(turns: Sequence[Turn], origin: Origin) -> list[Json]:
    return to_items(turns, origin.records, origin.beside)


def _gemini(turns: Sequence[Turn], origin: Origin) -> list[Json]:
    return to_contents(turns, origin.records)


def _claude_code(turns: Sequence[Turn], origin: Origin) -> list[Json]:
    return list(to_entries(turns, origin.facts, origin.session_id or origin.facts.session_id or "", origin.records))


def _codex(turns: Sequence[Turn], origin: Origin) -> list[Json]:
    facts = origin.facts
    named, at_ms = origin.session_id or facts.session_id or "", facts.last_ms or 0
    return list(session_items(turns, facts, named, at_ms, records=origin.records, beside=origin.beside))


OUTS: Mapping[str, Out] = {
    out.name: out
    for out in (
        Out("anthropic", "messages of the Anthropic API", _anthropic, ANTHROPIC),
        Out("openai", "messages of OpenAI's chat API", _openai, OPENAI_CHAT, takes_beside=True),
        Out("responses", "items of OpenAI's Responses API", _responses, OPENAI_RESPONSES, takes_beside=True),
        Out("gemini", "contents of the Gemini API", _gemini, GEMINI),
        Out("claude-code", "a session file of Claude Code", _claude_code, by_line=True),
        Out("codex", "a session file (rollout) of Codex", _codex, takes_beside=True, by_line=True),
    )
}


def out_of(name: str) -> Out:
    """An output format. Raises CallerError `unknown_format`, which says what there is."""
    if name not in OUTS:
        raise CallerError("unknown_format", "This output format is not known.", f"There is {', '.join(OUTS)}.")
    return OUTS[name]


def origin_of(live: LiveContext, beside: Beside | None = None) -> Origin:
    """The origin of the turns of a live context."""
    return Origin({record.uuid: record for record in live.all}, facts_of(live.all), beside=beside)


@dataclass(frozen=True, slots=True)
class Written:
    """Turns in a format, by the rules of whoever takes it, and what was changed for that."""

    messages: list[Json]
    changes: tuple[Change, ...] = ()


def finished(name: str, turns: Sequence[Turn], origin: Origin, *, goes_on: bool = False) -> Written:
    """Valid turns in an output format, and mended by the rules of its provider. Raises CallerError `unknown_format`.

    With `goes_on` it is a context that is sent once more was appended: its last message is kept to the letter.
    """
    out = out_of(name)
    messages = out.encode(turns, origin)
    if not out.provider:
        return Written(messages)
    done = repaired(out.provider, messages, goes_on=goes_on)
    return Written(done.messages, done.changes)


def written(name: str, turns: Sequence[Turn], live: LiveContext, beside: Beside | None = None) -> list[Json]:
    """Valid turns of a live context in an output format. Raises CallerError `unknown_format`."""
    return out_of(name).encode(turns, origin_of(live, beside))
