"""The rows of a damaged archive into a new one: along the trees, and where a tree is broken from whatever page is left.

What a broken tree does not reach is told by its shape. Only tables that are damaged get rows from such pages: elsewhere
these are older versions, or what was removed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from mcp_compact.adapters.sqlite.migrations import migrate, schema_versions
from mcp_compact.adapters.sqlite.operations.damaged_pages import Pages
from mcp_compact.adapters.sqlite.operations.damaged_rows import Row, Value, Walk, strays, walk
from mcp_compact.adapters.sqlite.operations.deep_checks import Progress
from mcp_compact.adapters.sqlite.operations.raw_rows import tables
from mcp_compact.adapters.sqlite.operations.rows import is_intact
from mcp_compact.messages.codec import body_hash

ROOT_OF_SCHEMA = 1
ALSO = ("source", "token")
"""Places in clients' files, and who may call over a network."""
FIRST = ("session", "record", "body")
SEQ_INDEX, UUID_INDEX, NAME_INDEX = "record_seq", "record_uuid", "sqlite_autoindex_session_1"
"""Indexes that say of a lost record where it stood and which it was, and of a lost session its id."""
PROGRESS_ROWS = 5_000
_TYPES: dict[str, tuple[type, ...]] = {"INTEGER": (int,), "TEXT": (str,), "BLOB": (bytes,)}
_KNOWN = "CREATE TEMP TABLE {name} (id INTEGER PRIMARY KEY, session, value)"
_UNPROVEN = (
    "SELECT r.body_hash, b.data FROM record r LEFT JOIN body b ON b.id = r.body_id"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """A table's columns in the order of its rows in the file."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    may_be_null: tuple[bool, ...]
    least: int
    """Columns that its oldest rows have."""
    has_number: bool
    """Its first column is the number of the row, which is not stored among the values."""
    is_keyed: bool
    """Its rows have no numbers at all."""

    def fits(self, row: Row) -> bool:
        """Could it be a row of this table?"""
        if not self.least <= len(row.values) <= len(self.columns) or self.is_keyed != (row.rowid == 0):
            return False
        checked = zip(row.values, self.types, self.may_be_null, strict=False)
        return all(
            (value is None and null) or type(value) in _TYPES.get(kind, ())
            for at, (value, kind, null) in enumerate(checked)
            if not (at == 0 and self.has_number)
        ) and not (self.has_number and row.values[0] is not None)


@dataclass(slots=True)
class Filled:
    """What came out of the file."""

    damaged_pages: int = 0
    damaged_rows: int = 0
    damaged: set[str] = field(default_factory=set)
    """Tables of which something may be missing."""


def fill(conn: sqlite3.Connection, pages: Pages, schema: int, progress: Progress) -> Filled:
    """Put every readable row into `conn`, which has the empty tables of that schema. Inside a transaction."""
    shapes = shapes_of(conn, schema)
    done, seen = Filled(), set[int]()
    top = Walk()
    roots = {str(row.values[1]): row.values[3] for row in walk(pages, ROOT_OF_SCHEMA, top) if len(row.values) == 5}  # noqa: PLR2004 - as SQLite's list of tables has
    seen |= top.pages
    for at, shape in enumerate(shapes.values()):
        progress(at, len(shapes), "reading tables")
        own = _along(conn, pages, roots.get(shape.name), shape)
        _count(done, own, shape.name)
        seen |= own.pages
    if not done.damaged & {"record", "body"} and _has_unproven(conn):
        done.damaged.add("body")
    _indexes(conn, pages, roots, done, seen)
    if done.damaged:
        _from_strays(conn, pages, shapes, done, seen, progress)
    return done


def shapes_of(conn: sqlite3.Connection, schema: int) -> dict[str, Shape]:
    """The tables that are rescued, sessions, records and bodies first."""
    least = _least_columns(schema)
    found = {}
    there = {row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    for name in (*FIRST, *tables(conn), *ALSO):
        if name not in there:
            continue
        info = conn.execute(f"PRAGMA table_info({name})").fetchall()
        numbered = bool(info[0][5] == 1 and info[0][2] == "INTEGER" and sum(bool(row[5]) for row in info) == 1)
        without = "WITHOUT ROWID" in conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
        # Without a number of its own, a row begins with the columns of its key.
        order = sorted(info, key=lambda row: (row[5] == 0, row[5])) if without else info
        found[name] = Shape(
            name,
            tuple(row[1] for row in order),
            tuple(row[2] for row in order),
            tuple(not row[3] and not (row[5] and without) for row in order),
            least.get(name, len(order)),
            numbered,
            without,
        )
    return found


def _least_columns(schema: int) -> dict[str, int]:
    """How many columns each table had in the first release that had it."""
    least: dict[str, int] = {}
    for upto in range(1, schema + 1):
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
            migrate(conn, schema_versions()[:upto])
            for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                least.setdefault(name, len(conn.execute(f"PRAGMA table_info({name})").fetchall()))
    return least


def _along(conn: sqlite3.Connection, pages: Pages, root: object, shape: Shape) -> Walk:
    seen = Walk()
    if not isinstance(root, int) or root < 1:
        seen.damaged_pages += 1
        return seen
    for row in walk(pages, root, seen):
        # A damaged pointer may lead into another table.
        if not shape.fits(row) or not _insert(conn, shape, row):
            seen.damaged_rows += 1
    return seen


def _count(done: Filled, seen: Walk, table: str) -> None:
    done.damaged_pages += seen.damaged_pages
    done.damaged_rows += seen.damaged_rows
    if seen.is_damaged:
        done.damaged.add(table)


def _insert(conn: sqlite3.Connection, shape: Shape, row: Row) -> bool:
    """Add a row unless it is there or cannot be; was it added?"""
    values: Sequence[Value] = (row.rowid, *row.values[1:]) if shape.has_number else row.values
    names = ", ".join(shape.columns[: len(values)])
    marks = ", ".join("?" * len(values))
    try:
        done = conn.execute(f"INSERT OR IGNORE INTO {shape.name} ({names}) VALUES ({marks})", values)  # noqa: S608 - our own names
    except (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, UnicodeError, OverflowError):
        return False
    return done.rowcount == 1


def _has_unproven(conn: sqlite3.Connection) -> bool:
    return any(not is_intact(data, digest) for digest, data in conn.execute(_UNPROVEN))


def _indexes(conn: sqlite3.Connection, pages: Pages, roots: dict[str, Value], done: Filled, seen: set[int]) -> None:
    """Which session, place and uuid a record has whose row is lost: two indexes say so too."""
    wanted: tuple[tuple[str, str, list[type]], ...] = (
        (SEQ_INDEX, "record_seq", [int, int, int]),
        (UUID_INDEX, "record_uuid", [int, str, int]),
        (NAME_INDEX, "session", [str, str, int]),
    )
    for index, name, types in wanted:
        conn.execute(_KNOWN.format(name=f"{name}_known"))
        own, root = Walk(), roots.get(index)
        if not isinstance(root, int) or root < 1:
            continue
        for row in walk(pages, root, own):
            if name.split("_")[0] in done.damaged:
                _note_place(conn, name, row, types)
        seen |= own.pages
        done.damaged_pages += own.damaged_pages


def _note_place(conn: sqlite3.Connection, name: str, row: Row, types: list[type]) -> None:
    """An entry of an index: session (or namespace), place or uuid (or id), and the row's number."""
    if [type(value) for value in row.values] != types:
        return
    session, value, number = row.values
    conn.execute(f"INSERT OR IGNORE INTO {name}_known VALUES (?, ?, ?)", (number, session, value))  # noqa: S608 - our own names


def _from_strays(
    conn: sqlite3.Connection, pages: Pages, shapes: dict[str, Shape], done: Filled, seen: set[int], progress: Progress
) -> None:
    wanted = [shape for name, shape in shapes.items() if name in done.damaged]
    own = Walk()
    for number, row in enumerate(strays(pages, seen, own)):
        if number % PROGRESS_ROWS == 0:
            progress(number, 0, "looking through pages that no table reaches")
        fitting = [shape for shape in wanted if shape.fits(row)]
        if len(fitting) == 1:
            _take_stray(conn, fitting[0], row)
        elif not fitting and "record" in done.damaged:
            _note_place(conn, "record_seq", row, [int, int, int])


def _take_stray(conn: sqlite3.Connection, shape: Shape, row: Row) -> None:
    """Add it; of a body that is there already, the version whose bytes fit counts."""
    if _insert(conn, shape, row) or shape.name != "body" or not isinstance(row.values[1], bytes):
        return
    needed = conn.execute("SELECT body_hash FROM record WHERE body_id = ?", (row.rowid,)).fetchone()
    if needed is not None and body_hash(row.values[1]) == needed[0]:
        conn.execute("UPDATE body SET data = ?, message = ? WHERE id = ?", (*_two(row), row.rowid))


def _two(row: Row) -> Iterator[Value]:
    yield row.values[1]
    yield row.values[2] if len(row.values) > 2 else None  # noqa: PLR2004 - number, data, message
