"""Taking whole sessions from another archive into this one: one transaction, every row and byte as it is there."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.adapters.sqlite.connection import writing
from mcp_compact.adapters.sqlite.operations.raw_rows import columns, tables
from mcp_compact.errors import CallerError

_CONTENT = "SELECT r.seq, r.uuid, r.body_hash FROM {name}.record r WHERE r.session = ?"
_MARKERS = "SELECT m.seq, m.uuid, m.kind FROM {name}.marker m WHERE m.session = ?"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of the sessions: the ids they have here, which were there already, and how many records came."""

    sessions: tuple[str, ...]
    known: tuple[str, ...]
    records: int


def take_sessions(conn: sqlite3.Connection, source: Path, namespace: str, rename: Mapping[str, str]) -> Taken:
    """Copy every session of the archive `source`, which nobody else uses and which has this release's schema.

    `rename` gives some of them other ids. A session that is here with the same content is left alone; raises
    CallerError `session_exists` where it has other content, and nothing is stored.
    """
    conn.execute("ATTACH ? AS taken", (str(source),))
    try:
        with writing(conn):
            return _taken(conn, namespace, rename)
    finally:
        conn.execute("DETACH taken")


def _taken(conn: sqlite3.Connection, namespace: str, rename: Mapping[str, str]) -> Taken:
    rows = conn.execute("SELECT id, session_id FROM taken.session ORDER BY id").fetchall()
    named = [(number, rename.get(session_id, session_id)) for number, session_id in rows]
    known = [session_id for number, session_id in named if _is_known(conn, namespace, session_id, number)]
    new = [number for number, session_id in named if session_id not in known]
    session_shift = conn.execute("SELECT coalesce(max(id), 0) FROM main.session").fetchone()[0]
    record_shift = conn.execute("SELECT last_record FROM main.archive").fetchone()[0]
    ids = {
        "id": f"id + {record_shift}",
        "body_id": f"body_id + {record_shift}",
        "session": f"session + {session_shift}",
    }
    for number in new:
        _copy_session(conn, number, session_shift, namespace, rename)
        of = {"number": number}
        _copy(conn, "record", ids, "session = :number", of)
        own = "id IN (SELECT body_id FROM taken.record WHERE session = :number)"
        _copy(conn, "body", {"id": ids["id"]}, own, of)
        for table in tables(conn):
            _copy(conn, table, {"session": ids["session"]}, "session = :number", of)
    last = conn.execute("SELECT coalesce(max(id), 0) FROM taken.record").fetchone()[0]
    conn.execute("UPDATE main.archive SET last_record = last_record + ?", (last,))
    counted = conn.execute("SELECT count(*) FROM main.record WHERE id > ?", (record_shift,)).fetchone()[0]
    return Taken(tuple(session_id for _, session_id in named), tuple(known), counted)


def _is_known(conn: sqlite3.Connection, namespace: str, session_id: str, number: int) -> bool:
    """Is a session of this id here with just this content? Raises CallerError where its content is another."""
    row = conn.execute(
        "SELECT id FROM main.session WHERE namespace = ? AND session_id = ?", (namespace, session_id)
    ).fetchone()
    if row is None:
        return False
    for query in (_CONTENT, _MARKERS):
        here = conn.execute(query.format(name="main") + " ORDER BY 1", (row[0],)).fetchall()
        if here != conn.execute(query.format(name="taken") + " ORDER BY 1", (number,)).fetchall():
            raise CallerError(
                "session_exists",
                f"There is a session {session_id!r} with other content.",
                "--session ID stores it under another id.",
            )
    return True


def _copy_session(conn: sqlite3.Connection, number: int, shift: int, namespace: str, rename: Mapping[str, str]) -> None:
    row = conn.execute("SELECT session_id, parent_session_id FROM taken.session WHERE id = ?", (number,)).fetchone()
    changed = {"id": f"id + {shift}", "namespace": ":namespace", "session_id": ":own", "parent_session_id": ":parent"}
    own, parent = (rename.get(name, name) for name in row)
    _copy(conn, "session", changed, "id = :number",
          {"number": number, "namespace": namespace, "own": own, "parent": parent})  # fmt: skip


def _copy(
    conn: sqlite3.Connection, table: str, changed: Mapping[str, str], where: str, values: Mapping[str, object]
) -> None:
    names = [name for name, _ in columns(conn, table)]
    asked = ", ".join(changed.get(name, name) for name in names)
    conn.execute(
        f"INSERT INTO main.{table} ({', '.join(names)}) SELECT {asked} FROM taken.{table} WHERE {where} ORDER BY 1, 2",  # noqa: S608 - our own names
        dict(values),
    )
