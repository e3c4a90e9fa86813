"""Searching everything ever stored: what is asked for, checked, and the answer of a page."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anyio import move_on_after

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import clean, format_time, parse_time
from mcp_compact.ports.search import SEARCH_ROLES, SEARCH_SIDES, Found, Hit, SearchQuery
from mcp_compact.service.deps import Deps, session_key
from mcp_compact.service.prepare import Progress
from mcp_compact.service.results import SearchHit, SearchResult
from mcp_compact.service.sessions import check_limit

MAX_HITS = 100
INDEX_S = 1.0
NEWEST, BEST = "newest", "best"
ORDERS = (NEWEST, BEST)
MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What a caller asks for besides the words; an empty text is no condition."""

    role: str = ""
    """`user`, `assistant`, `tool` (results) or `system`."""
    tool: str = ""
    since: str = ""
    until: str = ""
    """ISO times, or milliseconds since 1970."""
    boundary: str = ""
    """`before` or `after` (the last boundary of each session), or with its uuid `before:UUID`, `after:UUID`."""
    order: str = NEWEST


@dataclass(frozen=True, slots=True)
class SearchCall:
    """A search as a caller states it."""

    text: str
    session_id: str = ""
    limit: int = 20
    cwd: str | None = None
    narrowed: Narrowed = Narrowed()


async def search_text(
    deps: Deps, namespace: str, call: SearchCall, cursor: str, progress: Progress | None = None
) -> SearchResult:
    """Messages that hold all words, newest or best first. The text is taken literally. Raises CallerError.

    `progress` counts the records that wait for the index, and one for the search itself.
    """
    query = _query(call)
    if query.session_id:
        await deps.row(session_key(namespace, query.session_id))
    before, skip = _place(cursor, best=query.best)
    waited = await _catch_up(deps, progress) if progress is not None else 0
    query = replace(query, before=before, skip=skip, catches_up=progress is None)
    found = await deps.store.search(namespace, query)
    if progress is not None:
        progress(waited + 1, waited + 1, "searching")
    return SearchResult(
        tuple(_hit(hit) for hit in found.hits), _next_cursor(found, best=query.best), found.complete, _note(found)
    )


async def _catch_up(deps: Deps, progress: Progress) -> int:
    """Index what waits for a second at most, as a search does; how many records waited."""
    total = 0
    with move_on_after(INDEX_S):
        while True:
            done, left = await deps.store.index_more()
            total = total or done + left
            progress(max(0, total - left), total + 1, "indexing what is new")
            if not done or not left:
                break
    return total


def _query(call: SearchCall) -> SearchQuery:
    if not call.text.strip():
        raise CallerError("empty_query", "There is nothing to search for.", "Pass a word, a path or a phrase.")
    check_limit(call.limit)
    narrowed = call.narrowed
    side, _, uuid = narrowed.boundary.strip().partition(":")
    _check("role", narrowed.role, SEARCH_ROLES)
    _check("order", narrowed.order, ORDERS)
    _check("boundary", side, SEARCH_SIDES)
    if uuid and not call.session_id:
        raise CallerError("which_session", "A boundary by its uuid needs its session.", "Pass session_id.")
    return SearchQuery(
        text=clean(call.text.strip()),
        session_id=call.session_id or None,
        limit=min(call.limit, MAX_HITS),
        cwd=call.cwd,
        role=narrowed.role,
        tool=clean(narrowed.tool.strip())[:MAX_NAME_CHARS],
        since_ms=_time("since", narrowed.since),
        until_ms=_time("until", narrowed.until),
        boundary=side,
        boundary_uuid=uuid[:MAX_NAME_CHARS],
        best=narrowed.order == BEST,
    )


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value and value not in known:
        raise CallerError(f"bad_{name}", f"{name} {value[:40]!r} is unknown.", f"Use one of {', '.join(known)}.")


def _time(name: str, text: str) -> int | None:
    said = text.strip()
    if not said:
        return None
    at_ms = parse_time(int(said) if said.isascii() and said.isdecimal() and len(said) < 20 else said)  # noqa: PLR2004
    if at_ms is None:
        raise CallerError("bad_time", f"{name} {said[:40]!r} is no time.", "Use ISO 8601, e.g. 2026-11-30T09:00Z.")
    return at_ms


def _place(cursor: str, *, best: bool) -> tuple[int | None, int]:
    if not cursor:
        return None, 0
    before, dash, skip = cursor.partition("-")
    is_whole = all(part.isascii() and part.isdecimal() and len(part) < 20 for part in (before, skip or "0"))  # noqa: PLR2004
    if not is_whole or bool(dash) != best or (dash and not skip):
        raise CallerError("bad_cursor", "The cursor is not one that this search gave.", "Leave it out to start over.")
    return int(before), int(skip or 0)


def _next_cursor(found: Found, *, best: bool) -> str:
    if found.next_before is None:
        return ""
    return f"{found.next_before}-{found.next_skip}" if best else str(found.next_before)


def _note(found: Found) -> str:
    notes: list[str] = []
    if found.unreadable:
        # Each of them might hold the words.
        notes.append(f"{found.unreadable} messages could not be read, for the store is damaged: `mcp-compact rescue`")
    if not found.complete:
        notes.append("not everything could be searched in time: repeat the search to go on")
    elif found.capped:
        notes.append("the best of the newest 1,000 that hold the words; older ones were not compared")
    return "; ".join(notes)


def _hit(hit: Hit) -> SearchHit:
    return SearchHit(
        session_id=hit.session_id,
        uuid=hit.uuid,
        role=hit.role or hit.type,
        time=format_time(hit.at_ms) if hit.at_ms is not None else "",
        tool=hit.tool,
        snippet=clean(hit.snippet),
        in_context=hit.is_live,
    )
