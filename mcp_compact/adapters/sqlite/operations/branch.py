"""The active branch, kept while records come: what a new head takes off the branch and brings back.

The law is `messages.branch`: the parents of the newest record, the records that share a message id
with them, and the records that answer calls of these. Here only what a change of the head touches is
looked at again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

from mcp_compact.adapters.sqlite.operations.encoding import ids_of, json_list
from mcp_compact.adapters.sqlite.operations.rows import ANSWERS, CHAIN, SHARES

MOST_AHEAD = 1024
"""Rows that are read at once, at most, to walk up a chain of parents."""


@dataclass(frozen=True, slots=True)
class Switch:
    """Old records that left the chain of parents, and those that came back to it."""

    removed: tuple[int, ...] = ()
    added: tuple[int, ...] = ()


def switch(conn: sqlite3.Connection, session: int, old_head: int, new_parent: int) -> Switch:
    """Walk both chains up to where they meet (0: nowhere). A parent always stands before its child."""
    parents = _Parents(conn, session)
    removed, added = [], []
    while old_head != new_parent:
        if old_head > new_parent:
            removed.append(old_head)
            old_head = parents.of(old_head)
        else:
            added.append(new_parent)
            new_parent = parents.of(new_parent)
    return Switch(tuple(removed), tuple(added))


@dataclass(slots=True)
class _Parents:
    """Parents of older records. Most follow the record before them, so ever more are read ahead."""

    conn: sqlite3.Connection
    session: int
    known: dict[int, int] = field(default_factory=dict)
    ahead: int = 1

    def of(self, seq: int) -> int:
        if seq not in self.known:
            self.ahead = min(self.ahead * 4, MOST_AHEAD)
            rows = self.conn.execute(
                "SELECT seq, parent_seq FROM record WHERE session = ? AND seq > ? AND seq <= ?",
                (self.session, seq - self.ahead, seq),
            )
            self.known.update(rows)
        return self.known[seq]


@dataclass(slots=True)
class _Settling:
    """Levels (`record.active`) of the records that a change may touch."""

    conn: sqlite3.Connection
    session: int
    before: dict[int, int] = field(default_factory=dict)
    after: dict[int, int] = field(default_factory=dict)
    ids: dict[int, str | None] = field(default_factory=dict)
    calls: dict[int, tuple[str, ...]] = field(default_factory=dict)
    results: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def load(self, where: str, values: Iterable[object]) -> None:
        rows = self.conn.execute(
            f"SELECT seq, active, message_id, calls, results FROM record WHERE session = ? AND kind IN (0, 1, 4) "  # noqa: S608 - `where` is one of ours
            f"AND {where} (SELECT value FROM json_each(?))",
            (self.session, json_list(values)),
        )
        for seq, active, message_id, calls, results in rows:
            # One that was loaded before keeps the level that it has been given meanwhile.
            if seq not in self.before:
                self.before[seq] = self.after[seq] = active
                self.ids[seq], self.calls[seq], self.results[seq] = message_id, ids_of(calls), ids_of(results)

    def answerable(self) -> set[str]:
        """Calls, answered off the chain, of a record of the chain or of one that shares a message id with it."""
        asked = {call for seq, level in self.after.items() if level < SHARES for call in self.results[seq]}
        rows = self.conn.execute(
            "SELECT c.tool_use_id, c.seq, r.active FROM call c JOIN record r ON r.session = c.session "
            "AND r.seq = c.seq WHERE c.session = ? AND c.tool_use_id IN (SELECT value FROM json_each(?))",
            (self.session, json_list(asked)),
        )
        return {call for call, seq, active in rows if self.after.get(seq, active) >= SHARES}


def settle(conn: sqlite3.Connection, session: int, change: Switch, extra: Iterable[int]) -> list[tuple[int, int, int]]:
    """Give every record that the change touches its level anew; seq, old and new level of those it changed for.

    `extra` are records to look at besides: new ones off the chain, and old ones that new ones may bring in.
    """
    work = _Settling(conn, session)
    work.load("seq IN", [*change.removed, *change.added, *extra])
    work.load("message_id IN", {item for item in work.ids.values() if item is not None})
    work.after.update(dict.fromkeys(change.removed, 0))
    work.after.update(dict.fromkeys(change.added, CHAIN))
    on_chain = {work.ids[seq] for seq, level in work.after.items() if level == CHAIN} - {None}
    for seq, level in work.after.items():
        if level != CHAIN:
            work.after[seq] = SHARES if work.ids[seq] in on_chain else 0
    touched_calls = {call for seq in work.after for call in work.calls[seq]}
    answers = conn.execute(
        "SELECT DISTINCT seq FROM result WHERE session = ? AND tool_use_id IN (SELECT value FROM json_each(?))",
        (session, json_list(touched_calls)),
    )
    work.load("seq IN", [seq for (seq,) in answers if seq not in work.before])
    answerable = work.answerable()
    for seq, level in work.after.items():
        if level < SHARES:
            work.after[seq] = 0 if answerable.isdisjoint(work.results[seq]) else ANSWERS
    changed = [(seq, work.before[seq], level) for seq, level in work.after.items() if level != work.before[seq]]
    for level in {level for _, _, level in changed}:
        conn.execute(
            "UPDATE record SET active = ? WHERE session = ? AND seq IN (SELECT value FROM json_each(?))",
            (level, session, json_list([seq for seq, _, now in changed if now == level])),
        )
    return changed
