"""Sessions as a whole: making, listing, forking and removing them, and the list of their markers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import takewhile

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import format_time
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Marker, MarkerKind, chain, last_boundary
from mcp_compact.ports.store import SessionFacts, SessionKey, SessionRow
from mcp_compact.service.deps import Deps, family
from mcp_compact.service.results import SessionLine
from mcp_compact.service.session_results import (
    BoundariesPage,
    BoundaryLine,
    SessionDeleted,
    SessionForked,
    SessionMade,
    SessionsPage,
)
from mcp_compact.service.status import line_of

OWNERS = ("loop", "client")
MOST_SESSIONS = 100
MOST_BOUNDARIES = 100
"""Entries of a page: below 20,000 tokens."""
TITLE_CHARS = 200
MAX_FACT_CHARS = 1_000
BEFORE = ("preCompactTokenCount", "preTokens", "tokensBefore")
AFTER = ("postCompactTokenCount", "postTokens", "tokensAfter")
"""Names of the figures in the metadata of the kinds of markers."""


async def create_session(deps: Deps, key: SessionKey, facts: SessionFacts) -> SessionMade:
    """A new, empty session, its owner the loop unless stated; one that is there already stays as it is."""
    check_facts(facts)
    stated = facts if facts.owner is not None else replace(facts, owner=OWNERS[0])
    made = await deps.store.create_session(key, stated, deps.clock.now_ms())
    row = await deps.row(key)
    ladder = deps.ladder(row)
    return SessionMade(
        session_id=key.session_id,
        status="created" if made else "exists",
        owner=row.owner,
        model=row.model,
        context_window=ladder.window,
        window_known=ladder.known,
        warnings=() if made else ("it was there already, and nothing of it was changed",),
    )


def check_facts(facts: SessionFacts) -> None:
    """Raises CallerError for what no session can be: `bad_owner`, `bad_window`, `bad_overhead`, `too_long`."""
    if facts.owner is not None and facts.owner not in OWNERS:
        raise CallerError(
            "bad_owner",
            f"owner {facts.owner[:40]!r} is unknown.",
            "Use loop (you send what is given to you) or client (the client keeps its own history).",
        )
    if facts.context_window is not None and facts.context_window < 1:
        raise CallerError("bad_window", "context_window must be positive.", "Leave it out if it is not known.")
    if facts.overhead_tokens is not None and facts.overhead_tokens < 0:
        raise CallerError("bad_overhead", "overhead_tokens must not be negative.", "Leave it out if it is not known.")
    for name in ("title", "model"):
        if len(getattr(facts, name) or "") > MAX_FACT_CHARS:
            raise CallerError("too_long", f"{name} exceeds {MAX_FACT_CHARS} characters.", "Shorten it.")


def check_limit(limit: int) -> None:
    """Raises CallerError `bad_limit` for a number of lines that is none."""
    if limit < 1:
        raise CallerError("bad_limit", "limit must be positive.", "Leave it out for the usual number.")


async def delete_session(deps: Deps, key: SessionKey) -> SessionDeleted:
    """Remove a session for good, memory, pins and waiting summaries too; its forks and sub-agents' sessions stay."""
    await deps.row(key)
    return SessionDeleted(key.session_id, "deleted", await deps.store.delete_session(key))


async def fork_session(deps: Deps, key: SessionKey, new_key: SessionKey, up_to: str) -> SessionForked:
    """A new session that begins with the live context of this one, up to and with the message `up_to` ("": all).

    Raises CallerError: `unknown_session`, `session_exists`, `unknown_message`.
    """
    await deps.row(key)
    wanted = MessageUuid(up_to) if up_to else None
    await deps.store.fork_session(key, new_key, wanted, deps.clock.now_ms())
    row = await deps.row(new_key)
    return SessionForked(
        session_id=new_key.session_id,
        parent_session_id=key.session_id,
        status="forked",
        live_messages=row.live_count,
        tokens=family(row).tokens(row.live_weight),
        live_hash=row.live_hash,
    )


async def sessions_page(deps: Deps, namespace: str, *, cwd: str | None, limit: int, cursor: str) -> SessionsPage:
    """Sessions, the last active first, and where the list goes on.

    The cursor holds the time of the last one shown, and how many of that very time were shown.
    """
    check_limit(limit)
    before, shown = _place(cursor)
    number = min(limit, MOST_SESSIONS)
    rows = await deps.store.sessions(
        namespace, cwd=cwd, limit=shown + number + 1, before_ms=None if before is None else before + 1
    )
    page = rows[shown : shown + number]
    lines = tuple(_shortened(line_of(deps, row)) for row in page)
    return SessionsPage(lines, _next_place(rows, shown + number) if len(rows) > shown + number else "")


def _place(cursor: str) -> tuple[int | None, int]:
    if not cursor:
        return None, 0
    before, _, shown = cursor.partition(":")
    if not (before.isdecimal() and shown.isdecimal() and len(cursor) < TITLE_CHARS):
        raise CallerError("bad_cursor", "The cursor is not one that this tool gave.", "Leave it out to start over.")
    return min(int(before), 1 << 60), min(int(shown), 1 << 30)


def _next_place(rows: Sequence[SessionRow], end: int) -> str:
    last = rows[end - 1].active_ms
    return f"{last}:{sum(row.active_ms == last for row in rows[:end])}"


def _shortened(line: SessionLine) -> SessionLine:
    return replace(line, title=line.title[:TITLE_CHARS])


async def list_boundaries(deps: Deps, key: SessionKey, cursor: str) -> BoundariesPage:
    """The markers of a session, the newest first: what each did, and whether it is in effect."""
    row = await deps.row(key)
    if cursor and not (cursor.isdecimal() and len(cursor) < TITLE_CHARS):
        raise CallerError("bad_cursor", "The cursor is not one that this tool gave.", "Leave it out to start over.")
    markers = await deps.store.markers(key)
    states = states_of(markers, row.marker_seq)
    left = [marker for marker in reversed(markers) if not cursor or marker.seq < int(cursor)]
    page = left[:MOST_BOUNDARIES]
    more = len(left) > len(page)
    lines = tuple(_line(marker, states[marker.seq]) for marker in page)
    return BoundariesPage(key.session_id, lines, len(markers), str(page[-1].seq) if more else "")


def states_of(markers: Sequence[Marker], current_seq: int) -> dict[int, str]:
    """What became of each marker, by seq; `current_seq` is the one in effect, 0 for none."""
    by_seq = {marker.seq: marker for marker in markers}
    in_effect = list(chain(by_seq.get(current_seq), by_seq))
    boundary = last_boundary(in_effect)
    floor = boundary.seq if boundary else 0
    states = {marker.seq: "current" if marker.seq >= floor else "earlier" for marker in in_effect}
    for marker in markers:
        if marker.kind is MarkerKind.UNDO:
            states[marker.seq] = "done"
            for seq in _undone_by(marker, by_seq):
                states.setdefault(seq, "undone")
    return {marker.seq: states.get(marker.seq, "rewound") for marker in markers}


def _undone_by(undo: Marker, by_seq: dict[int, Marker]) -> Collection[int]:
    """The markers that were in effect when it came, down to the one that it restored."""
    before = chain(by_seq.get(undo.parent_seq or 0), by_seq)
    return [marker.seq for marker in takewhile(lambda marker: marker.seq != undo.restores_seq, before)]


def _line(marker: Marker, state: str) -> BoundaryLine:
    said = marker.metadata
    before, after = _figure(marker, BEFORE), _figure(marker, AFTER)
    saved = _figure(marker, ("tokensSaved",))
    if after is None and before is not None and saved is not None:
        after = before - saved
    return BoundaryLine(
        uuid=marker.uuid,
        kind=marker.kind.value,
        state=state,
        native=marker.native,
        time=format_time(marker.at_ms) if marker.at_ms is not None else "",
        trigger=_text(said.get("trigger")),
        strategy=_text(said.get("strategy")),
        tokens_before=before,
        tokens_after=after,
        preserved=len(marker.preserved),
        cleared=len(marker.cleared),
        snipped=len(marker.snipped),
        undone_uuid=_text(said.get("undoneUuid")),
    )


def _figure(marker: Marker, names: Sequence[str]) -> int | None:
    found = (marker.metadata.get(name) for name in names)
    return next((value for value in found if isinstance(value, int) and not isinstance(value, bool)), None)


def _text(value: object) -> str:
    return value[:TITLE_CHARS] if isinstance(value, str) else ""
