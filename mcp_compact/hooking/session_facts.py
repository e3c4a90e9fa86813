"""What a text for a client's compaction is made of, read from the archive without reading all of it.

The rules come from the few records that hold the user's words. The rest comes from the session memory and the records
behind it: what a hook or the server has extracted before is not extracted again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from mcp_compact.adapters.sqlite import hook_rows, operations
from mcp_compact.compaction.extract import Material
from mcp_compact.compaction.injection import (
    SEARCH_BY_WORDS,
    SEARCH_HOW,
    InjectionFacts,
    injection_text,
    recent_tokens,
)
from mcp_compact.compaction.rules import DROPPED, Rule, rules_of, with_choices
from mcp_compact.compaction.snapshot import Reach, Snapshot
from mcp_compact.config import Settings
from mcp_compact.hooking.given import CLAUDE_CODE, CODEX, PI, Given
from mcp_compact.messages.memory_document import is_empty, parse
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service import memory_text
from mcp_compact.transcripts.native import native_boundary, summary_of

INSTRUCTION = "instruction"
"""The kind of pins that are rules."""
CODEX_BYTES = 9_900
"""Codex puts a hook's text into a file above 2,500 tokens, which it reckons at four bytes each."""
TRIES = 6


@dataclass(frozen=True, slots=True)
class Compacted:
    """A session as its client compacts it."""

    session_id: str
    rules: tuple[Rule, ...]
    """Those of all its records that hold, as a person chose."""
    material: Material
    """What the client compacts; empty where the extractor is switched off, so that the rules stand alone."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What was made ready for a compaction, and of what: nothing is made again while that is the same."""

    seq: int
    """The newest record."""
    mark: str
    """Of everything else that counts: limits, pins, what was dropped."""
    lines: str
    """The must-keep lines."""


def compacted(conn: sqlite3.Connection, key: SessionKey, settings: Settings) -> Compacted | None:
    """The session as it is now; None where there is none."""
    snapshot = operations.snapshot(conn, key, memory_text.NEWEST)
    if snapshot is None:
        return None
    material = _material(conn, key, snapshot) if settings.policy.session_memory else Material(())
    return Compacted(key.session_id, rules_now(conn, key, snapshot), material)


def last_compacted(conn: sqlite3.Connection, key: SessionKey, *, answered: bool = False) -> tuple[Material, str] | None:
    """What the client's own last compaction was of, and its summary.

    None where there is none, and unless `answered` also where the model has answered since: then it is an earlier one.
    """
    row = operations.session(conn, key)
    everything = operations.records(conn, key, after_seq=0, up_to_seq=row.last_seq, live_only=False) if row else []
    places = [at for at, record in enumerate(everything) if native_boundary(record) is not None]
    if not places or (not answered and any(map(_is_answer, everything[places[-1] + 1 :]))):
        return None
    before, at = ([-1, *places])[-2:]
    told = _summary(everything, before) if before >= 0 else ""
    material = Material(tuple(everything[before + 1 : at]), summaries=(told,) if told else ())
    return material, _summary(everything, at)


def _is_answer(record: Record) -> bool:
    return record.message is not None and record.message.role == "assistant"


def _summary(records: Sequence[Record], at: int) -> str:
    found = summary_of(records[at], records[at + 1 :])
    return found.text if found is not None else ""


def rules_now(conn: sqlite3.Connection, key: SessionKey, snapshot: Snapshot) -> tuple[Rule, ...]:
    """The rules of the whole session with what a person pinned, and without what they dropped."""
    said = operations.spoken(conn, key, up_to_seq=snapshot.base.last_seq)
    pinned = [item.text for item in snapshot.registered if item.kind == INSTRUCTION]
    dropped = [item.text for item in snapshot.registered if item.kind == DROPPED]
    return with_choices(rules_of(said), pinned, dropped)


def _material(conn: sqlite3.Connection, key: SessionKey, snapshot: Snapshot) -> Material:
    """What the client compacts: the memory, what it does not cover, and in any case the newest part of what is live.

    Without a memory it is everything live, and what the compaction before said.
    """
    newest, memory = snapshot.base.last_seq, snapshot.memory
    summaries = tuple(item.text for item in snapshot.service if item.text)
    if memory is None or not memory.mark_seq or is_empty(memory.text):
        live = operations.records(conn, key, after_seq=0, up_to_seq=newest, live_only=True)
        return Material(tuple(live), summaries=summaries)
    tokens = recent_tokens(snapshot.live_tokens)
    reached = operations.snapshot(conn, key, Reach(tokens, 0, tokens))
    first = reached.tail[0].seq if reached is not None and reached.tail else newest
    after = min(memory.mark_seq, first - 1)
    live = operations.records(conn, key, after_seq=after, up_to_seq=newest, live_only=True)
    return Material(tuple(live), previous=parse(memory.text), summaries=_not_covered(snapshot))


def _not_covered(snapshot: Snapshot) -> tuple[str, ...]:
    mark = (snapshot.memory.mark_seq or 0) if snapshot.memory is not None else 0
    return tuple(item.text for item in snapshot.service if item.text and item.seq > mark)


def put_back(given: Given) -> tuple[str, ...] | None:
    """Paths that the client puts back itself: None for those that Claude Code does, none for any other client."""
    return None if given.client == CLAUDE_CODE else ()


def text_for(given: Given, limit_chars: int, make: Callable[[int], InjectionFacts]) -> tuple[InjectionFacts, str]:
    """Facts and text for a client, as long as it takes one: `make` gives the facts for a limit in characters."""
    limit = limit_chars
    for _ in range(TRIES):
        facts = make(limit)
        text = injection_text(facts, limit, SEARCH_BY_WORDS if given.client == PI else SEARCH_HOW)
        size = len(text.encode())
        if given.client != CODEX or size <= CODEX_BYTES:
            return facts, text
        # A little less than the share: what is left out first may hold more bytes in a character than the rest.
        limit = limit * CODEX_BYTES * 19 // (size * 20)
    return facts, ""


# ---------------------------------------------------------------- what is ready


def reached(conn: sqlite3.Connection, key: SessionKey) -> Reached | None:
    """What was made ready for the last compaction that was announced; None where nothing was."""
    seq, state = hook_rows.place_read(conn, key.namespace, _source(key))
    try:
        data = json.loads(state)
        return Reached(seq, str(data["mark"]), str(data["lines"]))
    except (ValueError, KeyError, TypeError):
        return None


def note_reached(conn: sqlite3.Connection, key: SessionKey, made: Reached) -> None:
    """Keep it."""
    state = json.dumps({"mark": made.mark, "lines": made.lines})
    hook_rows.note_place(conn, (key.namespace, key.session_id), _source(key), (made.seq, state))


def mark_of(snapshot: Snapshot, settings: Settings, given: Given) -> str:
    """Of what a text depends on beside the records."""
    pins = [(item.kind, item.name, item.text) for item in snapshot.registered]
    told = json.dumps(
        [given.client, settings.injection_chars, settings.policy.session_memory, snapshot.base.live_hash, pins]
    )
    return blake2b(told.encode("utf-8", "replace"), digest_size=16).hexdigest()


def _source(key: SessionKey) -> str:
    return f"{key.session_id}|ready"
