"""Reading an export of whole sessions into an archive of its own, where all of it is checked before anything is taken.

The lines are somebody's file: every value is checked against its column, every body against its hash, every live
context by building it. An export of an older release is read with that release's tables, which are then migrated.
"""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from mcp_compact.adapters.sqlite.connection import failing_clearly
from mcp_compact.adapters.sqlite.migrations import migrate, schema_versions
from mcp_compact.adapters.sqlite.operations.deep_checks import UNREADABLE, Progress, deep_check
from mcp_compact.adapters.sqlite.operations.encoding import MAX_INT
from mcp_compact.adapters.sqlite.operations.raw_rows import (
    FORM,
    HASH_BYTES,
    MARK,
    OWN_NUMBERS,
    TEXTS,
    columns,
    tables,
    written_columns,
)
from mcp_compact.errors import CallerError

HEAD = b'{"' + MARK.encode() + b'":'
MOST_LINE_BYTES = 2 << 30
PROGRESS_LINES = 2_000
_LISTS = ("SELECT 1 FROM record WHERE (calls IS NOT NULL AND NOT json_valid(calls)) "
          "OR (results IS NOT NULL AND NOT json_valid(results)) OR kind NOT BETWEEN 0 AND 4 "
          "OR active NOT BETWEEN 0 AND 3 OR seq < 1 LIMIT 1")  # fmt: skip
_STRINGS = (
    "SELECT 1 FROM record r, json_each(coalesce(r.calls, r.results)) e WHERE e.type <> 'text' LIMIT 1",
    "SELECT 1 FROM record r, json_each(r.results) e WHERE e.type <> 'text' LIMIT 1",
    "SELECT 1 FROM marker WHERE NOT json_valid(metadata) OR json_type(metadata) <> 'object' LIMIT 1",
    "SELECT 1 FROM session WHERE NOT json_valid(declines) OR json_type(declines) <> 'object' LIMIT 1",
)


@dataclass(frozen=True, slots=True)
class _Table:
    """How lines of a table become rows."""

    insert: str
    names: tuple[str, ...]
    types: tuple[tuple[str, bool], ...]


def is_export(path: Path) -> bool:
    """Does the file begin as an export does? False for what cannot be read, and for what is no plain file."""
    try:
        if not path.is_file():
            # To open a named pipe waits for somebody who writes.
            return False
        with path.open("rb") as stream:
            return stream.read(len(HEAD)) == HEAD
    except (OSError, ValueError):
        return False


def read_export(stream: BinaryIO, size: int, staged: sqlite3.Connection, progress: Progress) -> tuple[str, ...]:
    """Fill `staged`, a new and empty database, with the export's sessions; their ids, the main one first.

    Raises CallerError `bad_export`, `newer_schema` or `damaged_export`; the database is then of no use.
    """
    reader = _Reader(stream, size, progress)
    head = reader.head()
    schema = head["schema"]
    with failing_clearly():
        migrate(staged, schema_versions()[:schema])
        staged.execute("PRAGMA synchronous=OFF")
        staged.execute("BEGIN")
        _fill(staged, reader, head)
        staged.execute("COMMIT")
        migrate(staged)
        _check(staged, progress)
    return tuple(head["sessions"])


class _Reader:
    """The lines, counted and hashed as they come."""

    def __init__(self, stream: BinaryIO, size: int, progress: Progress) -> None:
        self._stream, self._size, self._progress = stream, size, progress
        self._digest, self._done = blake2b(digest_size=HASH_BYTES), 0
        self.number = 0

    def head(self) -> dict[str, Any]:
        """The first line. Raises CallerError."""
        head = self._next()
        if not isinstance(head, dict) or head.get(MARK) != FORM:
            raise CallerError("bad_export", "The export has a form that this release does not know.",
                              "Upgrade mcp-compact, or export again.")  # fmt: skip
        schema, sessions = head.get("schema"), head.get("sessions")
        newest = schema_versions()[-1][0]
        if isinstance(schema, int) and schema > newest:
            raise CallerError("newer_schema", f"The export has schema {schema}; this release knows {newest}.",
                              "Upgrade mcp-compact first.")  # fmt: skip
        texts = isinstance(sessions, list) and all(isinstance(item, str) for item in sessions)
        if not isinstance(schema, int) or schema < 1 or not texts or not isinstance(head.get("columns"), dict):
            raise self.bad("the first line is not what an export begins with")
        return head

    def rows(self) -> Iterator[list[Any]]:
        """The lines between the first and the last. Raises CallerError where the file ends before it is whole."""
        while True:
            digest = self._digest.hexdigest()
            line = self._next()
            if not isinstance(line, list) or not line or not isinstance(line[0], str):
                raise self.bad("it is no list that begins with a table's name")
            if line[0] == "end":
                if line[1:] != [self.number - 1, digest]:
                    raise CallerError("damaged_export", "The export is not as it was written: its hash differs.",
                                      "Nothing was stored. Fetch or export it again.")  # fmt: skip
                return
            yield line

    def _next(self) -> Any:  # noqa: ANN401 - JSON
        data = self._stream.readline(MOST_LINE_BYTES)
        if not data.endswith(b"\n"):
            raise CallerError("damaged_export", f"The export is cut short in line {self.number + 1}.",
                              "Nothing was stored. Fetch or export it again.")  # fmt: skip
        self.number += 1
        self._done += len(data)
        if self.number % PROGRESS_LINES == 0:
            self._progress(self._done, self._size, "reading")
        self._digest.update(data)
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise self.bad("it is no JSON") from None

    def bad(self, why: str) -> CallerError:
        """What is wrong with the line that was read last."""
        return CallerError("bad_export", f"Line {self.number} of the export is wrong: {why}.", "Nothing was stored.")


def _fill(staged: sqlite3.Connection, reader: _Reader, head: Mapping[str, Any]) -> None:
    known = {name: _table(staged, name) for name in ("session", "record", *tables(staged))}
    if {name: list(table.names) for name, table in known.items()} != head["columns"]:
        raise reader.bad("its tables are not those of the release that it names")
    sessions = records = 0
    for name, *values in reader.rows():
        table = known.get(name)
        if table is None or len(values) != len(table.names):
            raise reader.bad(f"it is no row of a table {name[:40]!r}")
        row = [_value(reader, *item) for item in zip(values, table.names, table.types, strict=True)]
        sessions += name == "session"
        if name == "session":
            own: tuple[object, ...] = (sessions, "local")
        elif row[table.names.index("session")] != sessions:
            raise reader.bad("it belongs to another session than those before it")
        elif name == "record":
            records += 1
            staged.execute("INSERT INTO body (id, data, message) VALUES (?, ?, ?)", (records, *row[-2:]))
            own, row = (records, records), row[:-2]
        else:
            own = ()
        try:
            staged.execute(table.insert, (*own, *row))
        except sqlite3.IntegrityError as error:
            raise reader.bad(str(error)) from error
    staged.execute("UPDATE archive SET last_record = ?", (records,))
    listed = [row[0] for row in staged.execute("SELECT session_id FROM session ORDER BY id")]
    if listed != head["sessions"] or not listed:
        raise reader.bad("its sessions are not those that the first line names")


def _table(staged: sqlite3.Connection, name: str) -> _Table:
    kinds = {**dict(columns(staged, "body")), **dict(columns(staged, name))}
    names = written_columns(staged, name)
    own = OWN_NUMBERS.get(name, ())
    stored = [*own, *(names[:-2] if name == "record" else names)]
    insert = f"INSERT INTO {name} ({', '.join(stored)}) VALUES ({', '.join('?' * len(stored))})"  # noqa: S608 - our own names
    return _Table(insert, tuple(names), tuple(kinds[item] for item in names))


def _value(reader: _Reader, value: object, name: str, kind: tuple[str, bool]) -> object:
    """A value of a line as its column takes it."""
    declared, needed = kind
    if value is None and not needed:
        return None
    match declared:
        case "INTEGER" if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INT:
            return value
        case "TEXT" if isinstance(value, str):
            return value
        case "BLOB":
            found = _bytes(value, is_text=name in TEXTS)
            if found is not None:
                return found
    raise reader.bad(f"{name} has a value that it cannot have")


def _bytes(value: object, *, is_text: bool) -> bytes | None:
    try:
        match value:
            case str():
                return value.encode() if is_text else bytes.fromhex(value)
            case {"base64": str() as text}:
                return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        pass
    return None


def _check(staged: sqlite3.Connection, progress: Progress) -> None:
    """Is it an archive that works? Raises CallerError."""
    if any(staged.execute(query).fetchone() for query in (_LISTS, *_STRINGS)):
        raise CallerError("bad_export", "The export holds lists or states that cannot be.", "Nothing was stored.")
    try:
        found = deep_check(staged, progress)
    except UNREADABLE as error:
        raise CallerError("bad_export", f"The export does not fit together: {error}.", "Nothing was stored.") from error
    if not found.is_sound:
        faults = [
            *found.damage,
            *found.lost_references,
            *(f"message {uuid} is not as it was stored" for _, _, uuid in found.wrong_bodies),
            *(f"session {key.session_id!r} does not add up" for key in found.wrong_totals),
            *(f"session {key.session_id!r}: {why}" for key, why in found.wrong_contexts),
        ]
        raise CallerError("bad_export", f"The export does not fit together: {faults[0]}.", "Nothing was stored.")
