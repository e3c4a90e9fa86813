"""Storing what a loop sends: new messages, or its whole list again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from anyio import to_thread

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Appended, Batch, Prepared, SessionFacts, SessionKey
from mcp_compact.service.automatic import compact_if_due
from mcp_compact.service.deps import Deps
from mcp_compact.service.prepare import content_hash, message_hash, prepare
from mcp_compact.service.reading import begins_as_given, live_messages
from mcp_compact.service.results import AppendResult
from mcp_compact.service.status import status_of
from mcp_compact.transcripts.claude_code import ClaudeCodeReader

MAX_MESSAGES = 100_000
FEW_MESSAGES = 2
SHORT_CHARS = 4_000
"""A millisecond's work, and about what two changes of thread cost where many agents call."""
T = TypeVar("T")


async def append(
    deps: Deps, key: SessionKey, messages: Sequence[Any] | str, facts: SessionFacts | None
) -> AppendResult:
    """Store messages in their order. A list that repeats all that is stored brings only what is new.

    Messages without a uuid are given one. Raises CallerError `bad_messages` before anything is stored.
    """
    items = checked(messages)
    # One message is never a repetition, and a session that is there keeps its owner: no look is needed.
    may_repeat = len(items) > 1 and await deps.store.session(key) is not None
    stated = facts or SessionFacts()
    if stated.owner is None and not may_repeat:
        stated = replace(stated, owner="loop")
    run = _at_once if _is_small(items, deps) else to_thread.run_sync
    records = await run(partial(_records, items, deps))
    repeated = await _repeated(deps, key, items, records) if may_repeat else 0
    fresh = records[repeated:]
    make = partial(prepare, fresh, deps.tokenizer, with_content_hash=True)
    done = await _store(deps, key, await run(make), stated)
    auto = await compact_if_due(deps, key, await status_of(deps, key))
    if deps.extractions is not None:
        deps.extractions.consider(key, auto.status)
    return AppendResult(
        session_id=key.session_id,
        uuids=tuple(done.uuids),
        stored=done.new,
        known=done.known + repeated,
        conflicts=tuple(done.conflicts),
        warnings=_warnings(items, done, repeated),
        status=auto.status,
        compacted=auto.compacted,
        note=auto.note,
    )


def _is_small(items: Sequence[Mapping[str, Any]], deps: Deps) -> bool:
    """Are these so few short texts that a thread would cost more than the work? Others' calls wait meanwhile."""
    if len(items) > FEW_MESSAGES or deps.tokenizer.state != "ready":
        return False
    inner = [item.get("message") or item for item in items]
    contents = [message.get("content") if isinstance(message, Mapping) else None for message in inner]
    return all(isinstance(content, str) and len(content) <= SHORT_CHARS for content in contents)


async def _at_once(work: Callable[[], T]) -> T:
    return work()


def checked(messages: Sequence[Any] | str) -> list[Mapping[str, Any]]:
    """The messages as objects; a list given as JSON text is accepted."""
    value: Any = messages
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise CallerError("bad_messages", "messages is no list and no JSON.", _EXAMPLE) from None
    value = [value] if isinstance(value, Mapping) else value
    if not isinstance(value, list | tuple):
        raise CallerError("bad_messages", "messages is no list.", _EXAMPLE)
    if len(value) > MAX_MESSAGES:
        raise CallerError(
            "too_many", f"More than {MAX_MESSAGES} messages at once.", "Use import_transcript with a path."
        )
    for at, item in enumerate(value, 1):
        _check(item, at)
    return list(value)


_EXAMPLE = 'Pass a list like [{"role": "user", "content": "..."}].'


def _check(item: object, at: int) -> None:
    if not isinstance(item, Mapping):
        raise CallerError("bad_messages", f"Message {at} is no object.", _EXAMPLE)
    inner = item.get("message", item)
    role = inner.get("role") if isinstance(inner, Mapping) else None
    if not isinstance(role, str) and not isinstance(item.get("type"), str):
        raise CallerError("bad_messages", f"Message {at} has no role.", _EXAMPLE)
    content = inner.get("content") if isinstance(inner, Mapping) else None
    if content is not None and not isinstance(content, str | list):
        raise CallerError("bad_messages", f"The content of message {at} is neither text nor a list.", _EXAMPLE)


def _records(items: Sequence[Mapping[str, Any]], deps: Deps) -> list[Record]:
    """Records of the items; a sub-agent's are left to the session that the caller names."""
    reader = ClaudeCodeReader("append")
    out: list[Record] = []
    for at, item in enumerate(items, 1):
        raw = dict(item)
        try:
            body = canonical(raw)
        except (TypeError, ValueError, RecursionError) as error:
            raise CallerError("bad_messages", f"Message {at} is no JSON: {error}.", _EXAMPLE) from None
        record = reader.feed(raw, body, at)[0].record
        named = isinstance(item.get("uuid"), str) and item["uuid"]
        out.append(_named(record, record.uuid if named else MessageUuid(deps.clock.new_uuid())))
    return out


def _named(record: Record, uuid: MessageUuid) -> Record:
    """The record under a uuid, as the session's own. By place, which costs a third of `replace`."""
    return Record(
        uuid,
        record.type,
        record.body,
        record.raw,
        record.message,
        record.parent_uuid,
        record.is_root,
        record.at_ms,
        record.seq,
        record.subtype,
        record.is_meta,
        record.is_summary,
    )


async def _repeated(deps: Deps, key: SessionKey, items: Sequence[Mapping[str, Any]], records: Sequence[Record]) -> int:
    """How many of the first messages are what is stored already, all of it, by place and content.

    The list repeats the whole archive, or the live context as it was given out. One message alone
    never counts as a repetition: equal text is not the same message.
    """
    if len(items) < 2 or any(item.get("uuid") for item in items):  # noqa: PLR2004 - one is no list
        return 0
    dialogue = [record for record in records if record.is_message]
    hashes = [content_hash(record) for record in dialogue]
    matched = await deps.store.match_prefix(key, hashes)
    if matched == 0:
        matched = await _live_prefix(deps, key, hashes)
    if matched == 0:
        return 0
    last = dialogue[matched - 1]
    return records.index(last) + 1


async def _live_prefix(deps: Deps, key: SessionKey, hashes: Sequence[bytes]) -> int:
    """Messages at the head of the list that are the live context as we give it out, whole."""
    row = await deps.row(key)
    if not hashes or (row.compactions == 0 and row.marker_seq == 0 and row.forked_at is None):
        return 0
    if not await begins_as_given(deps, key, lambda m: message_hash(m["role"], m["content"]) == hashes[0]):
        return 0
    given = [message_hash(m["role"], m["content"]) for m in await live_messages(deps, key)]
    return len(given) if 1 < len(given) <= len(hashes) and list(hashes[: len(given)]) == given else 0


async def _store(deps: Deps, key: SessionKey, prepared: Sequence[Prepared], facts: SessionFacts) -> Appended:
    return await deps.store.append(key, Batch(tuple(prepared), facts), deps.clock.now_ms())


def _warnings(items: Sequence[Mapping[str, Any]], done: Appended, repeated: int) -> tuple[str, ...]:
    out: list[str] = []
    if repeated:
        out.append(f"the first {repeated} messages are stored already: only what is new was added")
    out += [
        f"{uuid}: its parent is not in the archive, it goes on from the record before" for uuid in done.missing_parents
    ]
    out += [f"{uuid}: stored before with other content, which stays" for uuid in done.conflicts]
    empty = [at for at, item in enumerate(items, 1) if not _has_content(item)]
    out += [f"message {at} has no content: it is archived but never sent" for at in empty[:20]]
    return tuple(out)


def _has_content(item: Mapping[str, Any]) -> bool:
    inner = item.get("message", item)
    return (
        not isinstance(inner, Mapping)
        or bool(inner.get("content") or inner.get("tool_calls") or inner.get("refusal"))
        or item.get("type") not in (None, "user", "assistant")
    )
