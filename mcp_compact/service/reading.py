"""Reading the archive: the live context in pages, originals, search."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from anyio import to_thread

from mcp_compact.compaction.request import Surroundings
from mcp_compact.errors import CallerError
from mcp_compact.messages.blocks import MediaBlock, ToolResultBlock
from mcp_compact.messages.codec import canonical, clean
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.message import Record
from mcp_compact.messages.repeats import counting_results
from mcp_compact.messages.valid import valid_turns
from mcp_compact.ports.store import LivePage, SessionKey, SessionRow
from mcp_compact.service.deps import Deps, family
from mcp_compact.service.page_cache import Whole
from mcp_compact.service.paging import is_part, page, pieces
from mcp_compact.service.results import MessagesPage, OriginalPart
from mcp_compact.service.standing_beside import beside_live
from mcp_compact.transcripts.beside import Beside
from mcp_compact.transcripts.outs import finished, origin_of, out_of
from mcp_compact.transcripts.whole_answers import whole_turns

LIVE_PAGE_RECORDS = 2_000
LIVE_PAGE_BYTES = 32 * 1024 * 1024
SMALL_RECORDS, SMALL_BYTES = 24, 65_536
"""A context up to here is read and written in a millisecond or two, which two changes of thread would double."""
FIRST_RECORDS = 16
"""What a boundary brings, and the first messages that it kept."""
LISTED = 50
"""So many repairs are named."""
ORIGINAL_CHARS = 40_000
"""About 12,000 tokens of code: a part of an original, below what clients cut off."""
UNCUT = "w"
"""Ends the cursor of pages whose messages are whole: a later page goes on as the first began."""
IN_PARTS = (
    "messages with `part` are parts of one that is larger than a page: a program asks with whole_messages=true, "
    "or puts them together with mcp_compact.joined"
)


async def load_live(
    deps: Deps, key: SessionKey, *, limit: int = LIVE_PAGE_RECORDS, max_bytes: int = LIVE_PAGE_BYTES
) -> tuple[LiveContext, str]:
    """The whole live context with bodies, and its version (it changes with every marker, not with appends).

    `limit` and `max_bytes`: of what is read at once.
    """
    records: list[Record] = []
    clearings: dict[MessageUuid, Any] = {}
    after, version = 0, ""
    while True:
        part = await deps.store.live(key, after=after, limit=limit, max_bytes=max_bytes)
        if part is None:
            await deps.row(key)
            return LiveContext((), (), {}), ""
        if version and part.version != version:
            records, clearings, after, version = [], {}, 0, ""
            continue
        records += part.records
        clearings.update(part.clearings)
        version = part.version
        if part.next_after is None:
            return _assembled(records, clearings, part), version
        after = part.next_after


def _assembled(records: Sequence[Record], clearings: dict[MessageUuid, Any], part: LivePage) -> LiveContext:
    service = set(part.service)
    return LiveContext(
        tuple(r for r in records if r.uuid in service),
        tuple(r for r in records if r.uuid not in service),
        clearings,
        part.boundary,
    )


async def messages_page(
    deps: Deps,
    key: SessionKey,
    *,
    format_name: str,
    cursor: str,
    close_open_calls: bool = False,
    whole_messages: bool = False,
) -> MessagesPage:
    """One page of the live context in a provider's format. The cursor holds while messages are appended.

    With `whole_messages` one that is larger than a page stands in a page of its own, else it comes in parts.
    """
    out_of(format_name)
    row = await deps.row(key)
    is_uncut = cursor.endswith(UNCUT) if cursor else whole_messages
    # Nothing else decides what is given out; the hash also tells what was appended.
    name = (key, format_name, close_open_calls, is_uncut, row.marker_seq, row.live_hash, row.last_seq)
    now_ms = deps.clock.now_ms()
    known = deps.pages.find(name, now_ms)
    whole = known or await _whole(deps, row, format_name, close_open_calls=close_open_calls, is_uncut=is_uncut)
    start = place_in(cursor.removesuffix(UNCUT), whole.version)
    taken, following = page(whole.items, start, deps.settings.page_tokens)
    in_parts = [IN_PARTS] if any(map(is_part, taken)) else []
    if known is None and following is not None and _stands(row, await deps.row(key)):
        deps.pages.keep(name, whole, now_ms)
    return MessagesPage(
        session_id=key.session_id,
        format=format_name,
        messages=tuple(taken),
        next_cursor=f"{whole.version}:{following}{UNCUT if is_uncut else ''}" if following is not None else "",
        warnings=(*whole.warnings, *in_parts),
        boundary_uuid=whole.boundary_uuid,
        tokens=family(row).tokens(row.live_weight),
    )


def _stands(row: SessionRow, now: SessionRow) -> bool:
    return (row.live_hash, row.last_seq) == (now.live_hash, now.last_seq)


async def _whole(deps: Deps, row: SessionRow, format_name: str, *, close_open_calls: bool, is_uncut: bool) -> Whole:
    """The live context in a format, cut into what pages are made of."""
    key = row.key
    small = row.live_count <= SMALL_RECORDS and row.body_bytes <= SMALL_BYTES
    sizes = {"limit": SMALL_RECORDS, "max_bytes": SMALL_BYTES} if small else {}
    live, version = await load_live(deps, key, **sizes)
    around = Surroundings(session_id=key.session_id)
    beside = await beside_live(deps, row, live, format_name)

    def work() -> tuple[tuple[Mapping[str, Any], ...], list[str]]:
        given, warnings = _given(live, around, format_name, beside, close_open_calls=close_open_calls)
        cleaned = [clean(item) for item in given]
        return tuple(pieces(cleaned, deps.settings.page_tokens, whole_messages=is_uncut)), warnings

    # In a thread: a context of many images has tens of megabytes, and other calls go on meanwhile.
    items, warnings = work() if small else await to_thread.run_sync(work)
    size_bytes = 2 * sum(len(record.body) for record in live.all)
    return Whole(items, version, live.boundary.uuid if live.boundary else "", tuple(warnings), size_bytes)


def _given(
    live: LiveContext,
    around: Surroundings,
    format_name: str,
    beside: Beside | None = None,
    *,
    close_open_calls: bool = False,
) -> tuple[list[dict[str, Any]], list[str]]:
    """The live context as the format's provider takes it, its open calls left open, and what was mended for that."""
    turns, warnings = valid_turns(whole_turns(live, around), close_open_calls=close_open_calls)
    done = finished(format_name, turns, origin_of(live, beside), goes_on=True)
    warnings += [f"{change.path}: {change.text}" for change in done.changes]
    more = len(warnings) - LISTED
    return done.messages, [*warnings[:LISTED], f"{more} more repairs"] if more > 0 else warnings


async def live_messages(deps: Deps, key: SessionKey, format_name: str = "anthropic") -> list[dict[str, Any]]:
    """The whole live context in a format, as it is given out."""
    live, _ = await load_live(deps, key)
    beside = await beside_live(deps, await deps.row(key), live, format_name)
    work = partial(_given, live, Surroundings(session_id=key.session_id), format_name, beside)
    return (await to_thread.run_sync(work))[0]


async def begins_as_given(
    deps: Deps, key: SessionKey, format_name: str, begins: Callable[[Mapping[str, Any]], bool]
) -> bool:
    """Does the live context, as it is given out, begin with a message that passes? Reads its first records alone."""
    number = FIRST_RECORDS
    while True:
        part = await deps.store.live(key, after=0, limit=number, max_bytes=LIVE_PAGE_BYTES)
        if part is None:
            return False
        live = _assembled(part.records, dict(part.clearings), part)
        work = partial(_given, live, Surroundings(session_id=key.session_id), format_name)
        given, _ = await to_thread.run_sync(work)
        # What follows may still become part of the last message, but not of one before it.
        if len(given) > 1 or part.next_after is None:
            return bool(given) and begins(given[0])
        number *= 4


def place_in(cursor: str, version: str) -> int:
    """Where a page begins. Raises CallerError `bad_cursor`, and `context_changed` for one of another version."""
    if not cursor:
        return 0
    made_for, _, at = cursor.rpartition(":")
    if not at.isdigit():
        raise CallerError("bad_cursor", "The cursor is not one that this tool gave.", "Leave it out to start over.")
    if made_for != version:
        raise CallerError(
            "context_changed", "The context was compacted between two pages.", "Leave the cursor out to start over."
        )
    return int(at)


async def original(deps: Deps, key: SessionKey, name: str, cursor: str) -> OriginalPart:
    """What was stored under a tool_use_id (the result) or a message uuid, in parts. Raises CallerError `not_found`."""
    await deps.row(key)
    if cursor and not cursor.isdigit():
        raise CallerError("bad_cursor", "The cursor is not one that this tool gave.", "Leave it out to start over.")
    call, result = await deps.store.call(key, ToolUseId(name))
    if result is not None:
        return _part(key, _of_result(call, result, ToolUseId(name)), int(cursor or 0))
    record = call or await deps.store.record(key, MessageUuid(name))
    if record is None:
        raise CallerError(
            "not_found",
            f"Nothing is stored under {name[:80]!r} in this session.",
            "Pass a tool_use_id or a message uuid; search_messages finds them.",
        )
    text = canonical(record.message.content if record.message else record.raw).decode(errors="replace")
    return _part(key, _Original(record, text), int(cursor or 0))


@dataclass(frozen=True, slots=True)
class _Original:
    """What was stored: the text of a record, or of one result in it."""

    record: Record
    text: str
    block: ToolResultBlock | None = None
    tool: str = ""
    media: tuple[Mapping[str, Any], ...] = ()


def _of_result(call: Record | None, result: Record, name: ToolUseId) -> _Original:
    block = counting_results((b.tool_use_id, b.is_error, b) for b in result.results)[name]
    tool = next((c.name for c in call.calls if c.id == name), "") if call else ""
    media: tuple[Mapping[str, Any], ...] = tuple(p.raw for p in block.parts if isinstance(p, MediaBlock))
    return _Original(result, _result_text(block), block, tool, media)


def _result_text(block: ToolResultBlock) -> str:
    content = block.raw.get("content")
    if isinstance(content, str):
        return content
    return block.text or json.dumps([p.raw for p in block.parts if not isinstance(p, MediaBlock)], ensure_ascii=False)


def _part(key: SessionKey, source: _Original, at: int) -> OriginalPart:
    parts = max(1, -(-len(source.text) // ORIGINAL_CHARS))
    if at >= parts:
        raise CallerError("bad_cursor", f"There are {parts} parts.", "Leave the cursor out to start over.")
    block = source.block
    return OriginalPart(
        session_id=key.session_id,
        uuid=source.record.uuid,
        tool_use_id=block.tool_use_id if block else "",
        tool=source.tool,
        is_error=block.is_error if block else False,
        text=clean(source.text[at * ORIGINAL_CHARS : (at + 1) * ORIGINAL_CHARS]),
        part=at + 1,
        parts=parts,
        next_cursor=str(at + 1) if at + 1 < parts else "",
        blocks=tuple(clean(item) for item in source.media) if at == 0 else (),
    )
