"""Finding the place of new records: number, parent, message id, calls, and whether they are on the active branch.

What stands in the batch is found in the batch; the tables are asked once for everything else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp_compact.adapters.sqlite.operations.encoding import fitting, json_list, safe_id
from mcp_compact.adapters.sqlite.operations.rows import (
    ANSWERS,
    CHAIN,
    MARKER,
    MESSAGE,
    OTHER,
    SERVICE,
    SHARES,
    stored_message,
)
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.messages.blocks import Block, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.codec import body_hash
from mcp_compact.messages.message import MESSAGE_TYPES, Message
from mcp_compact.ports.store import Prepared

_Call: TypeAlias = tuple[str, int, str]
"""Tool call id, block, name."""
_Result: TypeAlias = tuple[str, int, bool]
"""Tool call id, block, is it an error."""


@dataclass(slots=True)
class Placed:
    """A record of a batch with everything that its rows need. Its place (the last five) is found in the transaction."""

    prepared: Prepared
    uuid: str
    body_hash: bytes
    parent_uuid: str | None
    message_id: str | None
    kind: int
    message: bytes | None
    """The message's own JSON where the body does not give it back."""
    calls: Sequence[_Call]
    results: Sequence[_Result]
    context_tokens: int | None
    """What the provider counted for the request that this record answers; None where nothing was counted."""
    text_holding: bool
    has_thinking: bool
    seq: int = 0
    parent_seq: int = 0
    need_seq: int = 0
    active: int = 0

    @property
    def stands_alone(self) -> bool:
        """Does it name no other record: no parent, no message id, no call that it makes or answers?"""
        return self.parent_uuid is None and self.message_id is None and not self.calls and not self.results


@dataclass(slots=True)
class Placing:
    """New records in place, and what of the archive they touch."""

    placed: list[Placed]
    missing_parents: list[str] = field(default_factory=list)
    extra: list[int] = field(default_factory=list)
    """Old records that the new ones may bring onto the active branch."""
    root_parent: int = 0
    """The old record that the new chain hangs on, 0 for none."""


def placed_of(prepared: Prepared) -> Placed:
    """What the rows of a record need, found in one walk over its blocks."""
    record = prepared.record
    message = record.message
    uuid, digest = safe_id(record.uuid), body_hash(record.body)
    parent = None if record.parent_uuid is None else safe_id(record.parent_uuid)
    # By place, here and below: with the names of its fields a record would cost three times as much to make.
    if message is None:
        return Placed(prepared, uuid, digest, parent, None, OTHER, None, (), (), None, False, False)  # noqa: FBT003
    blocks = message.blocks
    has_text, has_thinking, calls, results = _found_in(blocks) if len(blocks) != 1 else _found_alone(blocks[0])
    is_message = record.type in MESSAGE_TYPES and message.role in MESSAGE_TYPES
    return Placed(
        prepared,
        uuid,
        digest,
        parent,
        None if message.id is None else safe_id(message.id),
        MESSAGE if is_message else OTHER,
        stored_message(record, message),
        calls,
        results,
        None if message.usage is None else _counted(message),
        has_text and is_message and not (record.is_meta or record.is_summary),
        has_thinking,
    )


_Found: TypeAlias = tuple[bool, bool, Sequence[_Call], Sequence[_Result]]
"""Is there text, is there thinking, and which calls and results are there?"""


def _found_alone(block: Block) -> _Found:
    """What there is in a record of one block, as clients write nearly all."""
    if type(block) is TextBlock:
        text = block.text
        return bool(text and not text.isspace()), False, (), ()
    if type(block) is ToolUseBlock and not block.server:
        return False, False, ((safe_id(block.id), 0, safe_id(block.name)),), ()
    if type(block) is ToolResultBlock and not block.server:
        return False, False, (), ((safe_id(block.tool_use_id), 0, block.is_error),)
    return False, type(block) is ThinkingBlock, (), ()


def _found_in(blocks: Sequence[Block]) -> _Found:
    """What there is in a record of any number of blocks."""
    calls: list[_Call] = []
    results: list[_Result] = []
    has_text = has_thinking = False
    for at, block in enumerate(blocks):
        if isinstance(block, TextBlock):
            has_text = has_text or bool(block.text and not block.text.isspace())
        elif isinstance(block, ToolUseBlock):
            if not block.server:
                calls.append((safe_id(block.id), at, safe_id(block.name)))
        elif isinstance(block, ToolResultBlock):
            if not block.server:
                results.append((safe_id(block.tool_use_id), at, block.is_error))
        elif isinstance(block, ThinkingBlock):
            has_thinking = True
    return has_text, has_thinking, calls or (), results or ()


def _counted(message: Message) -> int | None:
    if message.role != "assistant" or message.usage is None:
        return None
    return fitting(message.usage.context_tokens) or None


def place(conn: sqlite3.Connection, session: Session, placed: list[Placed]) -> Placing:
    """Fill in the places of new records, which are in order and not empty."""
    placing = Placing(placed)
    if len(placed) == 1 and placed[0].stands_alone:
        _go_on(session, placing, placed[0])
        return placing
    _find_parents(conn, session, placing)
    old_ids = _old_message_ids(conn, session.id, placed)
    _find_needs(conn, session.id, placed, {key: min(rows)[0] for key, rows in old_ids.items()})
    # New records are numbered in their order, without a gap; a parent may be any record before.
    first, at = placed[0].seq, placed[-1].seq
    while at >= first:
        item = placed[at - first]
        item.active, at = CHAIN, item.parent_seq
    placing.root_parent = at
    _find_belonging(conn, session.id, placing, old_ids)
    return placing


def _go_on(session: Session, placing: Placing, only: Placed) -> None:
    """The place of a record that names no other one: behind the one before, at the end of the chain."""
    placing.root_parent = only.parent_seq = 0 if only.prepared.record.is_root else session.head_seq
    only.need_seq, only.active = only.seq, CHAIN


def _find_parents(conn: sqlite3.Connection, session: Session, placing: Placing) -> None:
    placed = placing.placed
    named = {item.parent_uuid for item in placed}.difference([item.uuid for item in placed], (None, session.head_uuid))
    rows = _select(conn, "SELECT uuid, seq, kind FROM record WHERE session = ? AND uuid IN ", session.id, named)
    stored = {uuid: (seq, kind) for uuid, seq, kind in rows}
    # What we appended ourselves is nobody's parent: the record before goes on.
    known = {uuid: seq for uuid, (seq, kind) in stored.items() if kind not in (MARKER, SERVICE)}
    if session.head_seq:
        known[session.head_uuid] = session.head_seq
    previous = session.head_seq
    unknown: list[str] = []
    for item in placed:
        parent = item.parent_uuid
        if parent is not None and parent in known:
            item.parent_seq = known[parent]
        else:
            if parent is not None:
                unknown.append(parent)
            item.parent_seq = 0 if item.prepared.record.is_root else previous
        known[item.uuid] = previous = item.seq
    placing.missing_parents = [uuid for uuid in dict.fromkeys(unknown) if uuid not in known and uuid not in stored]


def _old_message_ids(
    conn: sqlite3.Connection, session: int, placed: Sequence[Placed]
) -> dict[str, list[tuple[int, int]]]:
    """Older records of the message ids of the batch: seq and level."""
    ids = {item.message_id for item in placed} - {None}
    out: dict[str, list[tuple[int, int]]] = {}
    rows = _select(
        conn, "SELECT message_id, seq, active FROM record WHERE session = ? AND message_id IN ", session, ids
    )
    for message_id, seq, active in rows:
        out.setdefault(message_id, []).append((seq, active))
    return out


def _find_needs(conn: sqlite3.Connection, session: int, placed: Sequence[Placed], first: dict[str, int]) -> None:
    """The oldest record that each one needs: the first of its message id, or of the message ids of its calls."""
    made: set[str] = set()
    asked: set[str] = set()
    linked: list[Placed] = []
    for item in placed:
        own = item.seq
        item.need_seq = own if item.message_id is None else first.setdefault(item.message_id, own)
        if item.results or item.calls:
            linked.append(item)
            asked.update([call for call, _, _ in item.results if call not in made])
            made.update([call for call, _, _ in item.calls])
    needs: dict[str, int] = dict(
        _select(
            conn,
            "SELECT c.tool_use_id, r.need_seq FROM call c JOIN record r ON r.session = c.session AND r.seq = c.seq "
            "WHERE c.session = ? AND c.tool_use_id IN ",
            session,
            asked,
            " ORDER BY c.seq",
        )
    )
    for item in linked:
        for call, _, _ in item.results:
            item.need_seq = min(item.need_seq, needs.get(call, item.need_seq))
        for call, _, _ in item.calls:
            needs[call] = item.need_seq


def _find_belonging(
    conn: sqlite3.Connection, session: int, placing: Placing, old_ids: dict[str, list[tuple[int, int]]]
) -> None:
    """Levels of new records off the chain, and old records that the new ones may bring in."""
    placed = placing.placed
    off = [item for item in placed if item.active != CHAIN]
    on_chain = {item.message_id for item in placed if item.active == CHAIN} - {None} if old_ids or off else set()
    placing.extra = [seq for key, rows in old_ids.items() if key in on_chain for seq, active in rows if active < SHARES]
    on_chain |= {key for key, rows in old_ids.items() if any(active == CHAIN for _, active in rows)}
    for item in off:
        if item.message_id in on_chain:
            item.active = SHARES
    calling = [item for item in placed if item.calls]
    answerable = {call for item in calling if item.active >= SHARES for call, _, _ in item.calls}
    made = {call for item in calling for call, _, _ in item.calls}
    placing.extra += [
        row[0]
        for row in _select(
            conn,
            "SELECT r.seq FROM result t JOIN record r ON r.session = t.session AND r.seq = t.seq "
            "WHERE t.session = ? AND r.active = 0 AND t.tool_use_id IN ",
            session,
            made,
        )
    ]
    _find_answers(conn, session, [item for item in off if item.active < SHARES and item.results], answerable)


def _find_answers(conn: sqlite3.Connection, session: int, off: Sequence[Placed], answerable: set[str]) -> None:
    asked = {call for item in off for call, _, _ in item.results} - answerable
    answerable |= {
        row[0]
        for row in _select(
            conn,
            "SELECT c.tool_use_id FROM call c JOIN record r ON r.session = c.session AND r.seq = c.seq "
            "WHERE c.session = ? AND r.active >= 2 AND c.tool_use_id IN ",
            session,
            asked,
        )
    }
    for item in off:
        if any(call in answerable for call, _, _ in item.results):
            item.active = ANSWERS


def _select(
    conn: sqlite3.Connection, sql: str, session: int, values: Iterable[str | None], order: str = ""
) -> Iterable[tuple[Any, ...]]:
    """Rows whose last column is among the values; the tables are not asked for nothing."""
    values = list(values)
    if not values:
        return ()
    sql = f"{sql}(SELECT value FROM json_each(?)){order}"  # noqa: S608 - statements of this file
    return conn.execute(sql, (session, json_list(values)))
