"""Before and after a compaction of the client's own: what its summary must keep, and what is given back.

Everything is made ready before, from the transcript as it is then; the start after the compaction only hands it
over. Once the client's summary is known, what neither it nor that text holds follows with the next prompt, once. Where
a client tells of its summary before that start, the text is made anew with it. Gemini CLI tells of a compaction at no
hook: there the next prompt finds it, and everything is made then.
"""

from __future__ import annotations

import sqlite3

from mcp_compact import places
from mcp_compact.adapters.sqlite import hook_rows, operations
from mcp_compact.adapters.sqlite.operations.hook_state import hook_state, put_hook_state
from mcp_compact.compaction.injection import (
    REFINED_CHARS,
    InjectionFacts,
    injection_facts,
    must_keep_lines,
    refinement_facts,
    says_something,
)
from mcp_compact.compaction.rules import Rule
from mcp_compact.compaction.rules_matrix import KEPT, Column, fates
from mcp_compact.config import Settings
from mcp_compact.hooking import snapshots
from mcp_compact.hooking.catching_up import catch_up
from mcp_compact.hooking.given import CODEX, OPENCODE, PI, Given
from mcp_compact.hooking.held import HeldBack
from mcp_compact.hooking.noting import NAMESPACE
from mcp_compact.hooking.remembering import update_memory
from mcp_compact.hooking.session_facts import (
    Compacted,
    Reached,
    compacted,
    last_compacted,
    mark_of,
    note_reached,
    put_back,
    reached,
    rules_now,
    text_for,
)
from mcp_compact.ports.store import SessionKey
from mcp_compact.service import memory_text
from mcp_compact.service.keys import session_key

START_LAST = (CODEX, OPENCODE, PI)
"""They tell of the start after a compaction when its summary is known."""
BOUNDARY_FIRST = (CODEX, OPENCODE)
"""Their transcript has the boundary already when they tell that a compaction is done."""


def announced(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> str:
    """A compaction comes: bring everything up to date, make ready what is given back; the lines that must be kept.

    Nothing is made again while nothing is new. Raises HeldBack where a setting asks for it: by hand, once a session.
    """
    key = catch_up(conn, given, settings, now_ms)
    if key is None:
        return ""
    before, state = operations.snapshot(conn, key, memory_text.NEWEST), hook_state(conn, key)
    update_memory(conn, key, settings, now_ms)
    if settings.hold_manual and given.trigger == "manual" and not state.held:
        put_hook_state(conn, key, held=state.held + 1)
        raise HeldBack
    if before is None:
        return ""
    made, mark = reached(conn, key), mark_of(before, settings, given)
    if made is not None and state.injection and (made.seq, made.mark) == (before.base.last_seq, mark):
        return made.lines
    own = compacted(conn, key, settings)
    if own is None:
        return ""
    lines = "\n".join(must_keep_lines(_made_ready(conn, key, own, given, settings)))
    note_reached(conn, key, Reached(before.base.last_seq, mark, lines))
    return lines


def started_anew(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> str:
    """What is given back where nothing was made ready: the compaction was not announced, or its hook was stopped."""
    key = catch_up(conn, given, settings, now_ms)
    own = compacted(conn, key, settings) if key is not None else None
    if key is None or own is None:
        return ""
    summary = ""
    if given.client in BOUNDARY_FIRST and (found := last_compacted(conn, key)) is not None:
        own, summary = Compacted(own.session_id, own.rules, found[0]), found[1]
    return _given_at_once(conn, key, own, summary, given, settings)


def done(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> None:
    """The client's summary is known: what it lost, and was not given back yet, is made ready for what comes next.

    Of Claude Code the boundary itself comes with the transcript, which it writes after this hook: so it is there once.
    """
    before = _before_boundary(conn, given, settings) if given.client in BOUNDARY_FIRST else None
    key = catch_up(conn, given, settings, now_ms)
    if key is None:
        return
    own, summary = compacted(conn, key, settings), given.summary
    if own is not None and given.client in BOUNDARY_FIRST and (found := last_compacted(conn, key)) is not None:
        # Whoever picked the boundary up before, a server or the end of a turn, what was compacted is behind it.
        is_new = before is not None and before[0] != _marker(conn, key)
        material = before[1].material if before is not None and is_new else found[0]
        own, summary = Compacted(own.session_id, own.rules, material), summary or found[1]
    if own is None or not summary.strip():
        return
    state = hook_state(conn, key)
    if given.client in START_LAST and state.injection:
        _made_ready(conn, key, own, given, settings, summary)
        return
    limit = min(REFINED_CHARS, settings.injection_chars)
    left, text = text_for(
        given, limit, lambda room: refinement_facts(own.rules, own.material, own.session_id, summary, state.given, room)
    )
    told = _told(own.rules, summary, state.given)
    put_hook_state(conn, key, refinement=text if says_something(left) else "", rules=len(own.rules), rules_told=told)


def _before_boundary(conn: sqlite3.Connection, given: Given, settings: Settings) -> tuple[int, Compacted] | None:
    """The newest marker, and the session while the archive does not know the new one yet; None for no session."""
    key = session_key(NAMESPACE, given.session_id)
    own = compacted(conn, key, settings)
    return (_marker(conn, key), own) if own is not None else None


def _marker(conn: sqlite3.Connection, key: SessionKey) -> int:
    snapshot = operations.snapshot(conn, key, memory_text.NEWEST)
    return snapshot.base.marker_seq if snapshot is not None else 0


def found_done(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> str:
    """The chat says that its client compacted it: what is given back, once; empty where it does not say so."""
    path = places.readable_transcript(given.transcript)
    key = catch_up(conn, given, settings, now_ms)
    if key is None or not path:
        return ""
    found = snapshots.newest(conn, given, path, NAMESPACE)
    hook_rows.note_place(conn, (key.namespace, key.session_id), snapshots.source_of(given), (found.end, found.mark))
    own = compacted(conn, key, settings) if found.text else None
    if own is None:
        return ""
    if (before := last_compacted(conn, key, answered=True)) is not None:
        own = Compacted(own.session_id, own.rules, before[0])
    text = _given_at_once(conn, key, own, found.text, given, settings)
    update_memory(conn, key, settings, now_ms)
    return text


def ended(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> None:
    """The session ends: what came last is taken, and its rules are counted for the line of its next start."""
    key = catch_up(conn, given, settings, now_ms)
    snapshot = operations.snapshot(conn, key, memory_text.NEWEST) if key is not None else None
    if key is not None and snapshot is not None:
        put_hook_state(conn, key, rules=len(rules_now(conn, key, snapshot)))


def _facts(own: Compacted, summary: str, given: Given, limit_chars: int) -> InjectionFacts:
    return injection_facts(
        own.rules, own.material, session_id=own.session_id, native_summary=summary, restored=put_back(given),
        limit_chars=limit_chars,
    )  # fmt: skip


def _made_ready(
    conn: sqlite3.Connection, key: SessionKey, own: Compacted, given: Given, settings: Settings, summary: str = ""
) -> InjectionFacts:
    """Make ready what the start after the compaction is given; the facts that it is made of."""
    facts, text = text_for(given, settings.injection_chars, lambda limit: _facts(own, summary, given, limit))
    told = _told(own.rules, summary, "") if summary else 0
    put_hook_state(conn, key, injection=text, given="", refinement="", rules=len(own.rules), rules_told=told)
    return facts


def _given_at_once(
    conn: sqlite3.Connection, key: SessionKey, own: Compacted, summary: str, given: Given, settings: Settings
) -> str:
    """What is given back in the answer to this very hook."""
    _, text = text_for(given, settings.injection_chars, lambda limit: _facts(own, summary, given, limit))
    told = _told(own.rules, summary, "") if summary else 0
    put_hook_state(conn, key, injection="", given=text, refinement="", rules=len(own.rules), rules_told=told)
    return text


def _told(rules: tuple[Rule, ...], summary: str, given: str) -> int:
    """Rules that the client's summary holds."""
    return sum(fate == KEPT for _, fate in fates(Column(rules, summary, given)))
