"""The library: compaction in one call, without server, database or network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import UNITS_PER_TOKEN, CountUnits, Family, family_of
from mcp_compact.service.offline import Offline, Report, compact_records, encode
from mcp_compact.service.prepare import best_counter
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.openai_chat_messages import INSTRUCTING
from mcp_compact.transcripts.outs import out_of
from mcp_compact.transcripts.parsed import Reader
from mcp_compact.transcripts.registry import GEMINI, RESPONSES, detect_format, reader_for
from mcp_compact.transcripts.report import ImportReport
from mcp_compact.transcripts.responses_out import is_item
from mcp_compact.wiring import tokenizer

CountTokens = Callable[[Sequence[str]], Sequence[int]]
"""Texts to tokens, one number a text."""
HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Counting:
    """Your own way to count: tokens of texts, and what each message and each tool result cost beside."""

    count: CountTokens
    per_message: int = 0
    per_result: int = 0


@dataclass(frozen=True, slots=True)
class FileResult:
    """A compacted transcript: messages in `format`, the report, and what was met while reading."""

    messages: list[dict[str, Any]]
    report: Report
    format: str
    read: ImportReport
    session_id: str


def compact(  # noqa: PLR0913 - the options of a one-liner
    messages: Sequence[Mapping[str, Any]],
    target_tokens: int | None = None,
    format: str = "anthropic",
    *,
    model: str | None = None,
    counting: Counting | None = None,
    policy: Policy | None = None,
    context_window: int | None = None,
) -> tuple[list[dict[str, Any]], Report]:
    """Compact a conversation so that it fits `target_tokens`; without it, below the window's threshold.

    `messages` are API messages (of Anthropic, OpenAI, Gemini) or transcript records, and stay as they are.
    Returns a list that is valid for the provider and begins with a user message that stands for what left, and
    a report; where nothing was to gain, the (repaired) messages as they were. Pass the returned list with
    new messages appended to go on. Raises CallerError for an unknown format, a bad target or a bad message.
    """
    out_of(format)
    _check_target(target_tokens)
    messages = _listed(messages)
    own_form = _own_form(messages)
    reader: Reader
    if own_form:
        reader, records = _read(own_form, messages)
    else:
        items = ClaudeCodeReader("messages")
        reader = items
        records = [parsed.record for at, item in enumerate(messages, 1) for parsed in _fed(items, item, at)]
    system = [dict(item) for item in messages if item.get("role") in INSTRUCTING and "message" not in item]
    request = CompactRequest("manual", target_tokens=target_tokens, force=True)
    how = _offline(model or reader.facts().model, context_window, counting, policy)
    live, report = compact_records(records, request, how)
    if own_form:
        out, warnings = encode(live, format, records)
        return out, _with_warnings(report, warnings)
    out, warnings = encode(live, format)
    # Contents of Gemini and rollouts of Codex have no place for a message of the system.
    kept = [] if format in ("gemini", "codex") else system
    return [*kept, *out], _with_warnings(report, warnings)


def compact_transcript(  # noqa: PLR0913 - the options of a one-liner
    chunks: Iterable[bytes],
    *,
    format: str = "",
    output: str = "",
    target_tokens: int | None = None,
    model: str | None = None,
    context_window: int | None = None,
    policy: Policy | None = None,
) -> FileResult:
    """Compact a transcript given as bytes in pieces. The format is found by content unless named.

    Raises CallerError for a bad target, or where it is no transcript that can be read.
    """
    _check_target(target_tokens)
    data = b"".join(chunks)
    name = format or detect_format(data if len(data) < 1 << 20 else data[:HEAD_BYTES])
    reader = reader_for(name, "transcript")
    parsed = list(reader.read(read_lines([data])))
    main = [item.record for item in parsed if item.agent_id == reader.sole_agent or item.agent_id is None]
    if not any(record.is_message for record in main):
        raise CallerError("no_messages", "The transcript holds no messages.", "Check that it is a session's own file.")
    facts = reader.facts(reader.sole_agent)
    request = CompactRequest("manual", target_tokens=target_tokens, force=True)
    live, report = compact_records(main, request, _offline(model or facts.model, context_window, None, policy))
    out, warnings = encode(live, output or name, main)
    return FileResult(out, _with_warnings(report, warnings), output or name, reader.report, facts.session_id or "")


def _check_target(target: object) -> None:
    if target is None:
        return
    hint = "Leave it out for the window's threshold."
    if not isinstance(target, int) or isinstance(target, bool):
        kind = type(target).__name__
        raise CallerError("bad_target", f"target_tokens must be a whole number of tokens, not {kind}.", hint)
    if target < 1:
        raise CallerError("bad_target", "target_tokens must be positive.", hint)


def _listed(messages: object) -> list[Any]:
    """The messages as a list of our own: what can be read only once is read once."""
    if isinstance(messages, Iterable) and not isinstance(messages, (str, bytes, Mapping)):
        return list(messages)
    kind = type(messages).__name__
    raise CallerError(
        "bad_messages", f"messages must be a list, not {kind}.", "Pass the conversation: [{role, content}, ...]."
    )


def _own_form(messages: Sequence[Any]) -> str:
    """The form of items of OpenAI's Responses API and of contents of Gemini, which have readers of their own."""
    for item in messages:
        if isinstance(item, Mapping) and isinstance(item.get("parts"), list):
            return GEMINI
        if isinstance(item, Mapping) and is_item(item) and isinstance(item.get("type"), str):
            return RESPONSES
    return ""


def _read(format: str, messages: Sequence[Any]) -> tuple[Reader, list[Record]]:
    for at, item in enumerate(messages, 1):
        if not isinstance(item, Mapping):
            raise CallerError("bad_message", f"Message {at} is no object.", "Pass the API's own items or contents.")
    reader = reader_for(format, "messages")
    try:
        data = canonical([dict(item) for item in messages])
    except (TypeError, ValueError, RecursionError) as error:
        raise CallerError("bad_message", f"The messages are no JSON: {error}.", "Pass plain JSON values.") from None
    return reader, [parsed.record for parsed in reader.read(read_lines([data]))]


def _fed(reader: ClaudeCodeReader, item: Mapping[str, Any], place: int) -> Iterable[Any]:
    if not isinstance(item, Mapping) or not (isinstance(item.get("role"), str) or isinstance(item.get("type"), str)):
        raise CallerError(
            "bad_message", f"Message {place} is no object with a role.", "Pass API messages: {role, content}."
        )
    try:
        body = canonical(dict(item))
    except (TypeError, ValueError, RecursionError) as error:
        raise CallerError("bad_message", f"Message {place} is no JSON: {error}.", "Pass plain JSON values.") from None
    return reader.feed(dict(item), body, place)


def _offline(
    model: str | None, context_window: int | None, counting: Counting | None, policy: Policy | None
) -> Offline:
    family = family_of(model)
    if counting is not None:
        own = counting.count
        family = Family("own", 1000, counting.per_result, counting.per_message)
        count: CountUnits = lambda texts: [n * UNITS_PER_TOKEN for n in own(texts)]  # noqa: E731
        return Offline(family, count, policy or Policy(), context_window, slices=False)
    return Offline(family, best_counter(tokenizer()), policy or Policy(), context_window)


def _with_warnings(report: Report, warnings: Sequence[str]) -> Report:
    return replace(report, warnings=(*report.warnings, *warnings))


__all__ = ["Counting", "FileResult", "Report", "compact", "compact_transcript"]
