"""The library: compaction in one call, without server, database or network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.errors import CallerError
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.weights import UNITS_PER_TOKEN, CountUnits, Family, family_of
from mcp_compact.service.given import ENTRY, Given, format_to_write, read_list, refuse_mixed, told_of_format
from mcp_compact.service.left_out import NO_SYSTEM, left_out, says_anything, systems_going
from mcp_compact.service.offline import Offline, Report, compact_records, encode
from mcp_compact.service.prepare import best_counter
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.openai_chat_messages import INSTRUCTING
from mcp_compact.transcripts.outs import Out, out_of
from mcp_compact.transcripts.registry import detect_format, reader_for
from mcp_compact.transcripts.report import ImportReport
from mcp_compact.wiring import tokenizer

CountTokens = Callable[[Sequence[str]], Sequence[int]]
"""Texts to tokens, one number a text."""
HEAD_BYTES = 1 << 16
SEVERAL_HINT = "`mcp-compact import FILE` takes each as a session of its own; `mcp-compact export` writes one of them."


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

    `messages` are API messages (of Anthropic, OpenAI, Gemini, LangChain) or transcript records, and stay as they are.
    Returns a list that is valid for the provider and begins with a user message that stands for what left, and
    a report; where nothing was to gain, the (repaired) messages as they were. Pass the returned list with
    new messages appended to go on. What is left out because it was not understood, or has no place in `format`, is
    named in `report.warnings`. Raises CallerError for an unknown format, a bad target, a bad message, messages of
    several APIs, and where nothing would be left.
    """
    out = out_of(format)
    _check_target(target_tokens)
    messages = _listed(messages)
    given = read_list(messages)
    records = [item.record for item in given.main]
    request = CompactRequest("manual", target_tokens=target_tokens, force=True)
    how = _offline(model or given.reader.facts().model, context_window, counting, policy)
    live, report = compact_records(records, request, how, [item.line for item in given.main])
    made, warnings = encode(live, format, records if given.format else None, given.reader.facts())
    if not given.format and format not in NO_SYSTEM:
        system = [dict(item) for item in messages if item.get("role") in INSTRUCTING and "message" not in item]
        made = [*system, *made]
    warnings = [*told_of_format(given.format, format), *left_out(given, out, live, made), *warnings]
    _refuse_nothing(given, out, live, warnings)
    return made, _with_warnings(report, warnings)


def _refuse_nothing(given: Given, out: Out, live: LiveContext, warnings: Sequence[str]) -> None:
    """Messages of which nothing is left were not understood, whatever they are."""
    if given.parsed and not any(map(says_anything, live.all)) and not systems_going(given, out, live):
        told = "; ".join(warnings) or "they hold nothing that can be sent"
        raise CallerError("no_messages", f"Nothing is left of these messages: {told}.", "Pass API messages.")


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

    It is given out as it was read, or in `output`; what can only be read, in the form of its model's provider.
    Raises CallerError for a bad target, or where it is no transcript that can be read.
    """
    _check_target(target_tokens)
    data = b"".join(chunks)
    name = format or detect_format(data if len(data) < 1 << 20 else data[:HEAD_BYTES])
    given = _read_file(name, data)
    main = [item.record for item in given.main]
    reader = given.reader
    if not any(record.is_message for record in main):
        raise CallerError("no_messages", "The transcript holds no messages.", "Check that it is a session's own file.")
    facts = reader.facts(reader.sole_agent)
    out = out_of(output or format_to_write(name, model or facts.model))
    request = CompactRequest("manual", target_tokens=target_tokens, force=True)
    live, report = compact_records(main, request, _offline(model or facts.model, context_window, None, policy))
    made, warnings = encode(live, out.name, main, facts)
    warnings = [*told_of_format("" if output else name, out.name), *left_out(given, out, live, made), *warnings]
    _refuse_nothing(given, out, live, warnings)
    return FileResult(made, _with_warnings(report, warnings), out.name, reader.report, facts.session_id or "")


def _read_file(name: str, data: bytes) -> Given:
    reader = reader_for(name, "transcript")
    try:
        given = Given(name, reader, list(reader.read(read_lines([data]))), ENTRY)
    except CallerError as error:
        if error.code != "several_conversations":
            raise
        raise CallerError(error.code, error.message, SEVERAL_HINT) from None
    refuse_mixed(given)
    return given


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
