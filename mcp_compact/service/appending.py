"""Storing what a loop sends: new messages, or its whole list again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from anyio import to_thread

from mcp_compact.errors import CallerError
from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Appended, Batch, Prepared, SessionFacts, SessionKey
from mcp_compact.service.automatic import compact_if_due
from mcp_compact.service.deps import Deps
from mcp_compact.service.import_batches import uncollected
from mcp_compact.service.prepare import prepare
from mcp_compact.service.resent import carried, hash_of, repeated
from mcp_compact.service.results import AppendResult
from mcp_compact.service.status import describe
from mcp_compact.transcripts.loop_items import ReadItems, form_of, read_items, says_anything
from mcp_compact.transcripts.registry import GEMINI

MAX_MESSAGES = 100_000
FEW_MESSAGES = 2
SHORT_CHARS = 4_000
"""A millisecond's work, and about what two changes of thread cost where many agents call."""
NOTHING_STATED, OF_A_LOOP = SessionFacts(), SessionFacts(owner="loop")
LISTED = 20
"""So many messages of a kind are warned of."""
T = TypeVar("T")


async def append(
    deps: Deps, key: SessionKey, messages: Sequence[Any] | str, facts: SessionFacts | None
) -> AppendResult:
    """Store messages in their order. A list that repeats all that is stored brings only what is new.

    Messages without a uuid are given one. Raises CallerError `bad_messages` and `mixed_messages` (items of several
    APIs) before anything is stored.
    """
    items = checked(messages)
    # While a long list is taken in, the collector would go over its values dozens of times, and find no cycle.
    with uncollected():
        read, known, done = await _taken(deps, key, items, facts or SessionFacts())
    auto = await compact_if_due(deps, key, describe(deps, done.row))
    if deps.extractions is not None:
        deps.extractions.consider(key, auto.status)
    return AppendResult(
        session_id=key.session_id,
        uuids=tuple(done.uuids),
        stored=done.new,
        known=done.known + known,
        conflicts=tuple(done.conflicts),
        warnings=_warnings(items, read, done, known),
        status=auto.status,
        compacted=auto.compacted,
        note=auto.note,
    )


async def _taken(
    deps: Deps, key: SessionKey, items: Sequence[Mapping[str, Any]], stated: SessionFacts
) -> tuple[ReadItems, int, Appended]:
    """Read the items and store what is new: the records, how many of the first are known, and what the store did."""
    form = form_of(items)
    # One message is never a repetition, and a session that is there keeps its owner: no look is needed.
    row = await deps.store.session(key) if len(items) > 1 or form == GEMINI else None
    may_repeat = len(items) > 1 and row is not None
    if stated.owner is None and not may_repeat:
        stated = OF_A_LOOP if stated == NOTHING_STATED else replace(stated, owner="loop")
    run = _at_once if _is_small(items, deps) else to_thread.run_sync
    read = await run(partial(read_items, items, form, deps.clock.new_uuid))
    known = await repeated(deps, key, items, form, read.records) if may_repeat else 0
    fresh = read.records[known:]
    if form == GEMINI and row is not None:
        # Each content is one record. What waits for a result is known only now.
        before = await carried(deps, key, row)
        fresh = (await run(partial(read_items, items[known:], form, deps.clock.new_uuid, before))).records
    done = await _store(deps, key, await run(partial(_prepared, fresh, form, deps)), stated)
    return read, known, done


def _is_small(items: Sequence[Mapping[str, Any]], deps: Deps) -> bool:
    """Are these so few short texts that a thread would cost more than the work? Others' calls wait meanwhile."""
    if len(items) > FEW_MESSAGES or deps.tokenizer.state != "ready":
        return False
    inner = [item.get("message") or item for item in items]
    contents = [message.get("content") if isinstance(message, OBJECT) else None for message in inner]
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
    value = [value] if not isinstance(value, list) and isinstance(value, Mapping) else value
    if not isinstance(value, list | tuple):
        raise CallerError("bad_messages", "messages is no list.", _EXAMPLE)
    if len(value) > MAX_MESSAGES:
        raise CallerError(
            "too_many", f"More than {MAX_MESSAGES} messages at once.", "Use import_transcript with a path."
        )
    items = [item if isinstance(item, OBJECT) else _plain(item) for item in value]
    for at, item in enumerate(items, 1):
        _check(item, at)
    return items


def _plain(item: object) -> Any:  # noqa: ANN401 - what is no message is refused afterwards
    """An object of a provider's SDK as the JSON that the provider takes."""
    dump = getattr(item, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_none=True) if callable(dump) else item


_EXAMPLE = 'Pass a list like [{"role": "user", "content": "..."}].'


def _check(item: object, at: int) -> None:
    if not isinstance(item, OBJECT):
        raise CallerError("bad_messages", f"Message {at} is no object.", _EXAMPLE)
    inner = item.get("message", item)
    role = inner.get("role") if isinstance(inner, OBJECT) else None
    if not isinstance(role, str) and not isinstance(item.get("type"), str) and not isinstance(item.get("parts"), list):
        raise CallerError("bad_messages", f"Message {at} has no role.", _EXAMPLE)
    content = inner.get("content") if isinstance(inner, OBJECT) else None
    if content is not None and not isinstance(content, str | list):
        raise CallerError("bad_messages", f"The content of message {at} is neither text nor a list.", _EXAMPLE)


def _prepared(records: Sequence[Record], form: str, deps: Deps) -> list[Prepared]:
    made = prepare(records, deps.tokenizer, with_content_hash=True)
    if form != GEMINI:
        return made
    return [replace(item, content_hash=hash_of(item.record, form)) if item.content_hash else item for item in made]


async def _store(deps: Deps, key: SessionKey, prepared: Sequence[Prepared], facts: SessionFacts) -> Appended:
    return await deps.store.append(key, Batch(tuple(prepared), facts), deps.clock.now_ms())


def _warnings(items: Sequence[Mapping[str, Any]], read: ReadItems, done: Appended, known: int) -> tuple[str, ...]:
    out: list[str] = []
    if known:
        out.append(f"the first {known} messages are stored already: only what is new was added")
    out += [
        f"{uuid}: its parent is not in the archive, it goes on from the record before" for uuid in done.missing_parents
    ]
    out += [f"{uuid}: stored before with other content, which stays" for uuid in done.conflicts]
    out += [f"{what}: it is archived but never sent" for what in read.unknown[:LISTED]]
    out += [f"{what}: it is kept, and sent as it is where a format can hold it" for what in read.odd_blocks[:LISTED]]
    empty = [at for at, item in enumerate(items, 1) if not says_anything(item)]
    out += [f"message {at} has no content: it is archived but never sent" for at in empty[:LISTED]]
    return tuple(out)
