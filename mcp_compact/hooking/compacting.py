"""Before and after a compaction of the client's own: what its summary must keep, and what is given back.

Everything is made ready before, from the transcript as it is then; the start after the compaction only hands it
over. Once the client's summary is known, what neither it nor that text holds follows with the next prompt, once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations.hook_state import hook_state, put_hook_state
from mcp_compact.compaction.extract import Material
from mcp_compact.compaction.injection import InjectionFacts, injection_facts, injection_text, must_keep_lines
from mcp_compact.compaction.rules import DROPPED, Rule, rules_of, with_choices
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.config import Settings
from mcp_compact.hooking.catching_up import catch_up, update_memory
from mcp_compact.hooking.given import Given
from mcp_compact.messages.memory_document import REQUESTS, MemoryDocument
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service import memory_text

INSTRUCTION = "instruction"
"""The kind of pins that are rules."""
REFINED_CHARS = 4_000
"""Of what follows with the next prompt."""
HELD = (
    "mcp-compact: held back once, as MCP_COMPACT_HOLD_MANUAL asks for. Let the agent bring its notes up to date, "
    "then compact again."
)


class HeldBack(Exception):  # noqa: N818 - no error: the setting asks for it
    """A compaction that was asked for by hand is refused this once."""


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
    state = hook_state(conn, key)
    known = f"{given.summary}\n{state.given}"
    facts = _facts(conn, key, settings, known)
    if facts is None:
        return
    told = sum(_holds(given.summary, rule.text) for rule in facts.rules)
    lost = tuple(rule for rule in facts.rules if not _holds(known, rule.text))
    open_work = tuple(line for line in facts.open_work if line not in state.given)
    notes = _without(facts.notes, state.given, known) if facts.notes else None
    left = replace(facts, rules=lost, open_work=open_work, notes=notes)
    text = injection_text(left, min(REFINED_CHARS, settings.injection_chars)) if _says_something(left) else ""
    put_hook_state(conn, key, refinement=text, rules=len(facts.rules), rules_told=told)


def ended(conn: sqlite3.Connection, given: Given, settings: Settings, now_ms: int) -> None:
    """The session ends: what came last is taken, and its rules are counted for the line of its next start."""
    key = catch_up(conn, given, settings, now_ms)
    snapshot = operations.snapshot(conn, key, memory_text.NEWEST) if key is not None else None
    if key is not None and snapshot is not None:
        rules = _chosen(rules_of(_everything(conn, key, snapshot)), snapshot)
        put_hook_state(conn, key, rules=len(rules))


def _facts(
    conn: sqlite3.Connection, key: SessionKey, settings: Settings, native_summary: str = ""
) -> InjectionFacts | None:
    """Facts of the session as the archive has it; of rules alone where the extractor is switched off."""
    snapshot = operations.snapshot(conn, key, memory_text.NEWEST)
    if snapshot is None:
        return None
    everything = _everything(conn, key, snapshot)
    if settings.policy.session_memory:
        material, limit = _material(conn, key, snapshot), settings.injection_chars
        facts = injection_facts(
            everything, material, session_id=key.session_id, native_summary=native_summary, limit_chars=limit
        )
    else:
        facts = InjectionFacts(key.session_id, rules_of(everything), native_summary=native_summary)
    return replace(facts, rules=_chosen(facts.rules, snapshot))


def _everything(conn: sqlite3.Connection, key: SessionKey, snapshot: Snapshot) -> list[Record]:
    return operations.records(conn, key, after_seq=0, up_to_seq=snapshot.base.last_seq, live_only=False)


def _chosen(rules: Sequence[Rule], snapshot: Snapshot) -> tuple[Rule, ...]:
    """The rules with what a person pinned, and without what they dropped."""
    pinned = [item.text for item in snapshot.registered if item.kind == INSTRUCTION]
    dropped = [item.text for item in snapshot.registered if item.kind == DROPPED]
    return with_choices(rules, pinned, dropped)


def _material(conn: sqlite3.Connection, key: SessionKey, snapshot: Snapshot) -> Material:
    """What the client compacts: everything live, and what the compaction before said."""
    newest = snapshot.base.last_seq
    live: list[Record] = operations.records(conn, key, after_seq=0, up_to_seq=newest, live_only=True)
    return Material(tuple(live), summaries=tuple(item.text for item in snapshot.service if item.text))


def _holds(text: str, sentence: str) -> bool:
    """Does a text hold a sentence word for word, white space and case aside?"""
    return " ".join(sentence.split()).casefold() in " ".join(text.split()).casefold()


def _without(notes: MemoryDocument, given: str, known: str) -> MemoryDocument:
    """The notes without the lines that were `given`, the user's words that are `known`, and heads over nothing."""
    lines = {line.strip() for line in given.splitlines()}
    sections = []
    for section in notes.sections:
        if section.heading == REQUESTS:
            kept = [line for line in section.body.splitlines() if not _holds(known, line.removeprefix("- "))]
        else:
            kept = _under_heads([line for line in section.body.splitlines() if line.strip() not in lines])
        sections.append(replace(section, body="\n".join(kept)))
    return replace(notes, sections=tuple(section for section in sections if section.body.strip()))


def _under_heads(lines: list[str]) -> list[str]:
    """The lines without heads (a file, a command) that nothing stands under any more."""
    return [
        line
        for at, line in enumerate(lines)
        if not _is_head(line) or any(below.startswith("  ") for below in lines[at + 1 : at + 2])
    ]


def _is_head(line: str) -> bool:
    return line.startswith("- `") and line.endswith("`")


def _says_something(facts: InjectionFacts) -> bool:
    notes = facts.notes
    return bool(facts.rules or facts.open_work or (notes and any(section.body.strip() for section in notes.sections)))
