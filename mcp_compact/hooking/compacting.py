"""Before and after a compaction of the client's own: what its summary must keep, and what is given back.

Everything is made ready before, from the transcript as it is then; the start after the compaction only hands it
over. Once the client's summary is known, what neither it nor that text holds follows with the next prompt, once.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations.hook_state import hook_state, put_hook_state
from mcp_compact.compaction.extract import Material
from mcp_compact.compaction.injection import (
    REFINED_CHARS,
    InjectionFacts,
    injection_facts,
    injection_text,
    must_keep_lines,
    refinement_facts,
    says_something,
)
from mcp_compact.compaction.rules import DROPPED, Rule, rules_of, with_choices
from mcp_compact.compaction.rules_matrix import KEPT, Column, fates
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.config import Settings
from mcp_compact.hooking.catching_up import catch_up, update_memory
from mcp_compact.hooking.given import Given
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service import memory_text

INSTRUCTION = "instruction"
"""The kind of pins that are rules."""
HELD = (
    "mcp-compact: held back once, as MCP_COMPACT_HOLD_MANUAL asks for. Let the agent bring its notes up to date, "
    "then compact again."
)


class HeldBack(Exception):  # noqa: N818 - no error: the setting asks for it
    """A compaction that was asked for by hand is refused this once."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """A session as its client compacts it."""

    session_id: str
    rules: tuple[Rule, ...]
    """Those of all its records that hold, as a person chose."""
    material: Material
    """What the client compacts; empty where the extractor is switched off, so that the rules stand alone."""


def announced(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> str:
    """A compaction comes: bring everything up to date, make ready what is given back; the lines that must be kept.

    Raises HeldBack where a setting asks for it: by hand, and once a session.
    """
    key = catch_up(conn, given, settings, now_ms)
    if key is None:
        return ""
    update_memory(conn, key, settings, now_ms)
    state = hook_state(conn, key)
    if settings.hold_manual and given.trigger == "manual" and not state.held:
        put_hook_state(conn, key, held=state.held + 1)
        raise HeldBack
    facts = _facts(conn, key, settings)
    if facts is None:
        return ""
    text = injection_text(facts, settings.injection_chars)
    put_hook_state(conn, key, injection=text, given="", refinement="", rules=len(facts.rules), rules_told=0)
    return "\n".join(must_keep_lines(facts))


def started_anew(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> str:
    """What is given back where nothing was made ready: the compaction was not announced, or its hook was stopped."""
    key = catch_up(conn, given, settings, now_ms)
    facts = _facts(conn, key, settings) if key is not None else None
    if key is None or facts is None:
        return ""
    text = injection_text(facts, settings.injection_chars)
    put_hook_state(conn, key, injection="", given=text, refinement="", rules=len(facts.rules), rules_told=0)
    return text


def done(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> None:
    """The client's summary is known: what it lost, and was not given back yet, is made ready for the next prompt.

    The boundary itself comes with the transcript, which the client writes after this hook: so it is there once.
    """
    key = catch_up(conn, given, settings, now_ms)
    if key is None or not given.summary.strip():
        return
    own = _compacted(conn, key, settings)
    if own is None:
        return
    before, limit = hook_state(conn, key).given, min(REFINED_CHARS, settings.injection_chars)
    left = refinement_facts(own.rules, own.material, own.session_id, given.summary, before, limit)
    text = injection_text(left, limit) if says_something(left) else ""
    told = sum(fate == KEPT for _, fate in fates(Column(own.rules, given.summary, before)))
    put_hook_state(conn, key, refinement=text, rules=len(own.rules), rules_told=told)


def ended(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> None:
    """The session ends: what came last is taken, and its rules are counted for the line of its next start."""
    key = catch_up(conn, given, settings, now_ms)
    snapshot = operations.snapshot(conn, key, memory_text.NEWEST) if key is not None else None
    if key is not None and snapshot is not None:
        put_hook_state(conn, key, rules=len(_rules(conn, key, snapshot)))


def _facts(conn: sqlite3.Connection, key: SessionKey, settings: Settings) -> InjectionFacts | None:
    """Facts of the session as the archive has it; None where it has none."""
    own = _compacted(conn, key, settings)
    if own is None:
        return None
    limit = settings.injection_chars
    return injection_facts(own.rules, own.material, session_id=own.session_id, limit_chars=limit)


def _compacted(conn: sqlite3.Connection, key: SessionKey, settings: Settings) -> Compacted | None:
    snapshot = operations.snapshot(conn, key, memory_text.NEWEST)
    if snapshot is None:
        return None
    material = _material(conn, key, snapshot) if settings.policy.session_memory else Material(())
    return Compacted(key.session_id, _rules(conn, key, snapshot), material)


def _rules(conn: sqlite3.Connection, key: SessionKey, snapshot: Snapshot) -> tuple[Rule, ...]:
    """The rules of the whole session with what a person pinned, and without what they dropped."""
    everything = operations.records(conn, key, after_seq=0, up_to_seq=snapshot.base.last_seq, live_only=False)
    pinned = [item.text for item in snapshot.registered if item.kind == INSTRUCTION]
    dropped = [item.text for item in snapshot.registered if item.kind == DROPPED]
    return with_choices(rules_of(everything), pinned, dropped)


def _material(conn: sqlite3.Connection, key: SessionKey, snapshot: Snapshot) -> Material:
    """What the client compacts: everything live, and what the compaction before said."""
    newest = snapshot.base.last_seq
    live: list[Record] = operations.records(conn, key, after_seq=0, up_to_seq=newest, live_only=True)
    return Material(tuple(live), summaries=tuple(item.text for item in snapshot.service if item.text))
