"""Whole sessions as lines of JSON: every row that the archive has of them, and every byte of their messages.

The first line says which release's tables these are, the last how many lines there must be and their hash. Numbers
that only this archive knows (of sessions, records and bodies) stay out; bodies stand beside their records.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from hashlib import blake2b

from mcp_compact.adapters.sqlite.connection import reading
from mcp_compact.adapters.sqlite.operations import state
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import SessionKey

MARK = "mcp_compact_raw_export"
"""The first name in the first line: by it an export is known."""
FORM = 1
LEFT_HERE = ("pending", "hook_state", "source")
"""What belongs to this machine: compactions that wait, what hooks have ready, places in clients' files."""
OWN_NUMBERS = {"session": ("id", "namespace"), "record": ("id", "body_id")}
TEXTS = ("data", "message")
"""Bodies: text wherever they are UTF-8; all other bytes are written in hexadecimal digits."""
HASH_BYTES = 16

_plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def tables(conn: sqlite3.Connection) -> tuple[str, ...]:
    """The tables with rows of single sessions that go along, apart from `session`, `record` and `body`."""
    names = [row[0] for row in conn.execute("SELECT name FROM main.sqlite_master WHERE type = 'table' ORDER BY name")]
    return tuple(
        name for name in names if name not in (*LEFT_HERE, "record") and "session" in dict(columns(conn, name))
    )


def columns(conn: sqlite3.Connection, table: str) -> list[tuple[str, tuple[str, bool]]]:
    """Names of a table's columns in order, each with its type and whether it must have a value."""
    return [(row[1], (row[2], bool(row[3]))) for row in conn.execute(f"PRAGMA main.table_info({table})")]


def written_columns(conn: sqlite3.Connection, table: str) -> list[str]:
    """Those that are written down, of a record with its body's."""
    own = [name for name, _ in columns(conn, table) if name not in OWN_NUMBERS.get(table, ())]
    return [*own, *TEXTS] if table == "record" else own


def export_lines(conn: sqlite3.Connection, keys: Sequence[SessionKey], program: str) -> Generator[bytes, None, None]:
    """The lines of an export of these sessions, all of one moment. Raises CallerError `no_such_session`."""
    digest, number = blake2b(digest_size=HASH_BYTES), 0
    with reading(conn):
        for line in _lines(conn, keys, program):
            data = _plain(line).encode() + b"\n"
            digest.update(data)
            number += 1
            yield data
    yield _plain(["end", number, digest.hexdigest()]).encode() + b"\n"


def _lines(conn: sqlite3.Connection, keys: Sequence[SessionKey], program: str) -> Iterator[object]:
    others = tables(conn)
    yield {
        MARK: FORM,
        "schema": conn.execute("PRAGMA user_version").fetchone()[0],
        "program": program,
        "sessions": [key.session_id for key in keys],
        "columns": {name: written_columns(conn, name) for name in ("session", "record", *others)},
    }
    for number, key in enumerate(keys, 1):
        found = state.load(conn, key)
        if found is None:
            raise CallerError("no_such_session", f"There is no session {key.session_id!r}.", "Name another.")
        yield from _rows(conn, "session", f"FROM session t WHERE t.id = {found.id}")
        yield from _rows(
            conn,
            "record",
            f"FROM record t JOIN body b ON b.id = t.body_id WHERE t.session = {found.id} ORDER BY t.seq",
            number,
        )
        for table in others:
            yield from _rows(conn, table, f"FROM {table} t WHERE t.session = {found.id} ORDER BY 1, 2, 3", number)


def _rows(conn: sqlite3.Connection, table: str, source: str, number: int = 0) -> Iterator[list[object]]:
    names = written_columns(conn, table)
    asked = [
        str(number) if name == "session" else f"b.{name}" if table == "record" and name in TEXTS else f"t.{name}"
        for name in names
    ]
    are_texts = [name in TEXTS for name in names]
    for row in conn.execute(f"SELECT {', '.join(asked)} {source}"):
        yield [table, *map(_written, row, are_texts)]


def _written(value: object, is_text: bool) -> object:  # noqa: FBT001 - by place: `map` calls it
    if not isinstance(value, bytes):
        return value
    if not is_text:
        return value.hex()
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
