"""Copying what a fork begins with.

Its narrow rows are numbered anew in the order of the live context, each the next one's parent; bodies are
shared. Clearings stay in effect, under numbers below 0 that no marker of the fork can have.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from mcp_compact.adapters.sqlite.operations.encoding import ids_of, json_list, json_value
from mcp_compact.adapters.sqlite.operations.rows import CHAIN, MESSAGE, Narrow
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.adapters.sqlite.operations.writing_rows import reserve_ids
from mcp_compact.messages.codec import body_hash, well_formed
from mcp_compact.messages.weights import estimate_units

# What differs in the copy of a row: all other columns are the same.
_RECORD = {
    "id": "?", "session": "?", "seq": "?", "parent_uuid": "?", "parent_seq": "?", "is_root": "?", "need_seq": "?",
    "kind": str(MESSAGE), "active": str(CHAIN), "snipped_by": "0",
}  # fmt: skip
_ONE = "{table} t WHERE t.session = ? AND t.seq = ?"
_CALL = {"session": "?", "seq": "?"}
# `e` lists the old numbers in the new order.
_ALL = "json_each(:seqs) e CROSS JOIN {table} t ON t.session = :old AND t.seq = e.value"
_PLACE = {"session": ":new", "seq": "e.key + 1"}
_CLEARED_BY = {**_PLACE, "cleared_by": "t.cleared_by - :shift"}
_CLEARED = {**_PLACE, "marker": "t.marker - :shift"}
_LEDGER = (
    "SELECT l.kind, l.hash, l.first_seq, l.seq, l.text, n.active > 0 OR f.active > 0 OR l.first_seq <= :floor "
    "FROM ledger l LEFT JOIN record n ON n.session = l.session AND n.seq = l.seq "
    "LEFT JOIN record f ON f.session = l.session AND f.seq = l.first_seq "
    "WHERE l.session = :session AND l.first_seq <= :cut"
)
_MEMORY = (
    "SELECT m.version, m.text, m.mark_uuid, coalesce(m.mark_seq, r.seq) AS mark, m.covers_all, m.writer, m.at_ms "
    "FROM memory m LEFT JOIN record r ON r.session = m.session AND r.uuid = m.mark_uuid "
    "WHERE m.session = ? AND (mark IS NULL OR mark <= ?) ORDER BY m.version DESC LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork under way: the two sessions, and what the new one takes of the old one's live context."""

    old: Session
    new: Session
    rows: tuple[Narrow, ...]
    service: int
    """How many service records lead the rows."""
    cut: int
    """Newest number of the old session that the fork may know of."""

    def newest_up_to(self, seq: int) -> int:
        """The new number of the newest record, service records aside, that is no newer; 0 for none."""
        olds = [row.seq for row in self.rows[self.service :]]
        at = bisect_right(olds, seq)
        return self.service + at if at else 0


def copy_everything(conn: sqlite3.Connection, fork: Fork) -> None:
    """Everything but the session's own row."""
    _copy_records(conn, fork)
    _copy_ledger(conn, fork)
    _copy_memory(conn, fork)
    _copy_pins(conn, fork)


def _copy_records(conn: sqlite3.Connection, fork: Fork) -> None:
    old, new = fork.old.id, fork.new.id
    first = reserve_ids(conn, len(fork.rows))
    needs = _needs(fork.rows)
    parents = (None, *(row.uuid for row in fork.rows))
    conn.executemany(
        _copying(conn, "record", _RECORD, _ONE),
        [
            (first + at, new, at + 1, parents[at], at, at == 0, needs[at], old, row.seq)
            for at, row in enumerate(fork.rows)
        ],
    )
    conn.executemany(
        _copying(conn, "call", _CALL, _ONE + " AND t.tool_use_id = ?"),
        {(new, at, old, row.seq, call) for at, row in enumerate(fork.rows, start=1) for call in ids_of(row.calls)},
    )
    given = {
        "new": new,
        "old": old,
        "seqs": json_list(row.seq for row in fork.rows),
        "shift": fork.old.last_seq + 1,
    }
    conn.execute(_copying(conn, "result", _CLEARED_BY, _ALL), given)
    conn.execute(_copying(conn, "media", _CLEARED_BY, _ALL), given)
    conn.execute(_copying(conn, "cleared", _CLEARED, _ALL + " WHERE t.in_effect = 1"), given)


def _copying(conn: sqlite3.Connection, table: str, changed: Mapping[str, str], source: str) -> str:
    """The statement that copies rows of a table."""
    same = [row[1] for row in conn.execute(f"PRAGMA table_info({table})") if row[1] not in changed]
    columns = ", ".join([*changed, *same])
    values = ", ".join([*changed.values(), *(f"t.{name}" for name in same)])
    return f"INSERT INTO {table} ({columns}) SELECT {values} FROM {source.format(table=table)}"  # noqa: S608 - our own names


def _needs(rows: tuple[Narrow, ...]) -> list[int]:
    """For each record the oldest one that has to stay with it: of its message id, or of its results' calls."""
    first: dict[str, int] = {}
    needs: dict[str, int] = {}
    out: list[int] = []
    for seq, row in enumerate(rows, start=1):
        need = first.setdefault(row.message_id, seq) if row.message_id is not None else seq
        need = min([need, *(needs[call] for call in ids_of(row.results) if call in needs)])
        needs.update(dict.fromkeys(ids_of(row.calls), need))
        out.append(need)
    return out


def _copy_ledger(conn: sqlite3.Connection, fork: Fork) -> None:
    """Instructions and tools of the records, and those still in force of records that left; these get number 0.

    The fork has no boundary of its own: tools that the last one tells of are noted too.
    """
    places = {row.seq: at for at, row in enumerate(fork.rows, start=1)}
    floor = fork.old.base_seq if fork.old.natives else 0
    rows = conn.execute(_LEDGER, {"session": fork.old.id, "floor": floor, "cut": fork.cut}).fetchall()
    noted: list[tuple[object, ...]] = []
    for kind, digest, first, last, text, in_force in rows:
        found = [places[seq] for seq in (first, last) if seq in places]
        if found or in_force or kind == "tool":
            noted.append((fork.new.id, kind, digest, min(found, default=0), max(found, default=0), text))
    noted += [(fork.new.id, "tool", body_hash(name.encode()), 0, 0, name) for name in _told_tools(conn, fork.old)]
    conn.executemany("INSERT OR IGNORE INTO ledger VALUES (?, ?, ?, ?, ?, ?)", noted)


def _told_tools(conn: sqlite3.Connection, old: Session) -> list[str]:
    """Names of tools that the last boundary tells of; a client's own may hold anything there."""
    row = conn.execute(
        "SELECT metadata FROM marker WHERE session = ? AND seq = ?", (old.id, old.boundary_seq)
    ).fetchone()
    told = json_value(row[0]).get("preCompactDiscoveredTools") if row else None
    return [well_formed(name) for name in told if isinstance(name, str)] if isinstance(told, list) else []


def _copy_memory(conn: sqlite3.Connection, fork: Fork) -> None:
    """The newest version that covers nothing newer than the fork; what it covers is found again among its records."""
    row = conn.execute(_MEMORY, (fork.old.id, fork.cut)).fetchone()
    if row is None:
        return
    version, text, mark_uuid, mark, covers_all, writer, at_ms = row
    new_mark = None
    if mark is not None:
        new_mark = fork.newest_up_to(mark) or None
        mark_uuid = fork.rows[new_mark - 1].uuid if new_mark else None
    conn.execute(
        "INSERT INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (fork.new.id, version, text, mark_uuid, new_mark, covers_all, writer, at_ms),
    )
    fork.new.memory_version, fork.new.memory_mark_seq = version, new_mark
    fork.new.memory_units = estimate_units(text)


def _copy_pins(conn: sqlite3.Connection, fork: Fork) -> None:
    rows = conn.execute("SELECT kind, name, ordinal, text, seq, at_ms FROM pin WHERE session = ?", (fork.old.id,))
    conn.executemany(
        "INSERT INTO pin VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (fork.new.id, kind, name, ordinal, text, fork.newest_up_to(seq), at_ms)
            for kind, name, ordinal, text, seq, at_ms in rows.fetchall()
        ],
    )
