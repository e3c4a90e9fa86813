"""Recognising a list that a loop sends again: by place and content, whichever API's items it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anyio import to_thread

from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey, SessionRow
from mcp_compact.service.deps import Deps
from mcp_compact.service.prepare import content_hash, message_hash
from mcp_compact.service.reading import begins_as_given, live_messages
from mcp_compact.transcripts.loop_items import Carried, Item, carried_from, is_chat_list, read_items, without_places
from mcp_compact.transcripts.registry import ANTHROPIC, GEMINI, OPENAI

NEWEST = 64
"""So many records of the archive are read first where calls without ids may wait for their results."""


async def repeated(deps: Deps, key: SessionKey, items: Sequence[Item], form: str, records: Sequence[Record]) -> int:
    """How many of the first records are what is stored already, all of it, by place and content.

    The list repeats the whole archive, or the live context as it was given out. One message alone
    never counts as a repetition: equal text is not the same message.
    """
    if len(items) < 2 or any(item.get("uuid") for item in items):  # noqa: PLR2004 - one is no list
        return 0
    dialogue = [record for record in records if record.is_message]
    hashes = [hash_of(record, form) for record in dialogue]
    matched = await deps.store.match_prefix(key, hashes)
    if matched == 0 and hashes:
        matched = await _live_prefix(deps, key, hashes, items, form)
    if matched == 0:
        return 0
    return await _with_silent(deps, key, records, records.index(dialogue[matched - 1]) + 1)


def hash_of(record: Record, form: str) -> bytes:
    """What a message that is sent again is known by."""
    message = record.message
    if form != GEMINI or message is None:
        return content_hash(record)
    return message_hash(message.role, without_places(message.content))


async def carried(deps: Deps, key: SessionKey, row: SessionRow) -> Carried:
    """What the archive holds for contents of Gemini that go on a session: the calls that wait for a result."""
    number = NEWEST
    while True:
        after = max(0, row.last_seq - number)
        records = await deps.store.records(key, after_seq=after, up_to_seq=row.last_seq, live_only=False)
        if after == 0 or _holds_an_answer(records):
            return carried_from(records, row.last_seq)
        number *= 4


def _holds_an_answer(records: Sequence[Record]) -> bool:
    """Does the newest answer begin among these?"""
    roles = [record.type for record in records if record.is_message]
    return "user" in roles and "assistant" in roles[roles.index("user") :]


def _given_as(form: str, items: Sequence[Item]) -> Sequence[str]:
    """The formats in which such a list may have been given out."""
    if form:
        return (form,)
    return (OPENAI,) if is_chat_list(items) else (ANTHROPIC, OPENAI)


def _put_together(items: Sequence[Item]) -> int:
    """How many messages may have become part of the one before them when the list was given out.

    Calls of one answer, and their results, that were appended one by one are one message to Anthropic.
    """
    contents = [item["content"] for item in items if isinstance(item.get("content"), list)]
    return sum(len(content) - 1 for content in contents if content)


async def _live_prefix(deps: Deps, key: SessionKey, hashes: list[bytes], items: Sequence[Item], form: str) -> int:
    """Messages at the head of the list that are the live context as we give it out, whole."""
    row, together = await deps.row(key), _put_together(items)
    is_as_said = row.compactions == 0 and row.marker_seq == 0 and row.forked_at is None
    if is_as_said and (not together or len(items) + together < row.live_count):
        return 0

    def read(messages: Sequence[Mapping[str, Any]]) -> list[bytes]:
        found = read_items(messages, form, str).records
        return [hash_of(record, form) for record in found if record.is_message]

    for name in _given_as(form, items):
        if not await begins_as_given(deps, key, name, lambda first: read([first])[:1] == hashes[:1]):
            continue
        given = await to_thread.run_sync(read, await live_messages(deps, key, name))
        if 1 < len(given) <= len(hashes) and hashes[: len(given)] == given:
            return len(given)
    return 0


async def _with_silent(deps: Deps, key: SessionKey, records: Sequence[Record], at: int) -> int:
    """And what of the list is stored behind the last message without being one (reasoning, searches)."""
    if at == len(records) or records[at].is_message:
        return at
    last_seq = (await deps.row(key)).last_seq
    stored = await deps.store.records(key, after_seq=max(0, last_seq - NEWEST), up_to_seq=last_seq, live_only=False)
    behind: list[bytes] = []
    for record in stored:
        behind = [] if record.is_message else [*behind, record.body]
    for body in behind:
        if at < len(records) and records[at].body == body:
            at += 1
    return at
