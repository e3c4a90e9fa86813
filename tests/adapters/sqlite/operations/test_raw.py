"""Whole sessions out of one archive and into another: byte for byte, or not at all."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection
from mcp_compact.adapters.sqlite.migrations import migrate, schema_versions
from mcp_compact.adapters.sqlite.operations.deep_checks import deep_check
from mcp_compact.adapters.sqlite.operations.deleting import TABLES
from mcp_compact.adapters.sqlite.operations.raw_reading import read_export
from mcp_compact.adapters.sqlite.operations.raw_rows import LEFT_HERE, export_lines, tables
from mcp_compact.adapters.sqlite.operations.raw_storing import Taken, take_sessions
from mcp_compact.errors import CallerError
from mcp_compact.ports.search import SearchQuery
from mcp_compact.ports.store import SessionKey, Stamp
from tests.adapters.sqlite.builders import KEY, batch, dialogue, record
from tests.adapters.sqlite.operations.test_deleting import FORK, fill

CHILD = SessionKey("local", "s/agent")


@pytest.fixture
def source(conn: ArchiveConnection) -> ArchiveConnection:
    fill(conn, KEY)
    lines = [replace(item, body=item.body + b" \xff") if at == 4 else item for at, item in enumerate(dialogue(12))]
    operations.append(conn, CHILD, batch(*lines, parent_session_id="s", agent_id="agent"), 7)
    operations.fork_session(conn, KEY, FORK, None, 9)
    return conn


@pytest.fixture
def other(tmp_path: Path) -> Iterator[ArchiveConnection]:
    made = operations.connect(tmp_path / "other.db")
    operations.append(made, SessionKey("local", "mine"), batch(*dialogue(30)), 1)
    yield made
    made.close()


def exported(conn: sqlite3.Connection, *keys: SessionKey) -> bytes:
    return b"".join(export_lines(conn, keys, "0"))


def taken(conn: sqlite3.Connection, data: bytes, folder: Path, rename: dict[str, str] | None = None) -> Taken:
    path = folder / f"staged-{len(list(folder.iterdir()))}.db"
    staged = sqlite3.connect(path, isolation_level=None)
    try:
        read_export(io.BytesIO(data), len(data), staged, lambda *_: None)
    finally:
        staged.close()
    return take_sessions(conn, path, "local", rename or {})


def signed(lines: Sequence[Any]) -> bytes:
    """Lines as an export, with an end that fits: what somebody could write on purpose."""
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return body + json.dumps(["end", len(lines), blake2b(body, digest_size=16).hexdigest()]).encode() + b"\n"


def test_every_table_of_sessions_goes_along_but_what_belongs_to_the_machine(conn):
    assert set(tables(conn)) | {"record", *LEFT_HERE} == set(TABLES)


def test_an_export_of_the_import_is_the_export(source, other, tmp_path):
    data = exported(source, KEY, CHILD, FORK)
    assert taken(other, data, tmp_path).sessions == ("s", "s/agent", "fork")
    assert exported(other, KEY, CHILD, FORK) == data
    assert deep_check(other).is_sound
    for key in (KEY, CHILD, FORK):
        there, here = operations.session(source, key), operations.session(other, key)
        assert here is not None
        assert here == there
        assert operations.markers(other, key) == operations.markers(source, key)
        assert operations.memory(other, key) == operations.memory(source, key)
        assert operations.registered(other, key) == operations.registered(source, key)


def test_life_goes_on_there_as_it_would_have_here(source, other, tmp_path):
    operations.append(source, SessionKey("local", "before"), batch(*dialogue(20)), 1)
    taken(other, exported(source, KEY), tmp_path)
    for number, archive in enumerate((source, other)):
        undone = operations.undo(archive, KEY, Stamp(20, (f"u{number}",)))
        assert undone.marker is not None
        operations.append(archive, KEY, batch(record("next", "user", "zanzibarite")), 21)
        assert operations.check(archive, bodies=True).wrong_totals == ()
        hit = operations.search(archive, "local", SearchQuery("zanzibarite")).hits[0]
        assert (hit.session_id, hit.uuid) == ("s", "next")
        assert operations.search(archive, "local", SearchQuery("/src/file3.py", session_id="s")).hits
    assert operations.session(source, KEY) == operations.session(other, KEY)


def test_what_is_there_already_is_left_alone_and_another_content_is_refused(source, other, tmp_path):
    data = exported(source, KEY, CHILD)
    taken(other, data, tmp_path)
    assert taken(other, data, tmp_path) == Taken(("s", "s/agent"), ("s", "s/agent"), 0)
    operations.append(other, CHILD, batch(record("more", "user", "more")), 9)
    before = exported(other, KEY, CHILD)
    with pytest.raises(CallerError) as caught:
        taken(other, data, tmp_path)
    assert caught.value.code == "session_exists"
    assert exported(other, KEY, CHILD) == before
    renamed = taken(other, data, tmp_path, {"s": "s2", "s/agent": "s2/agent"})
    assert renamed.sessions == ("s2", "s2/agent")
    child = operations.session(other, SessionKey("local", "s2/agent"))
    assert child is not None
    assert child.parent_session_id == "s2"
    assert deep_check(other).is_sound


def test_an_export_of_an_older_release_is_migrated(source, tmp_path):
    path = tmp_path / "old.db"
    old = sqlite3.connect(path, isolation_level=None)
    migrate(old, schema_versions()[:1])
    rows = {name: source.execute(f"SELECT * FROM {name}").fetchall() for name in ("session", "record", "body")}
    for name, found in rows.items():
        width = len(old.execute(f"PRAGMA table_info({name})").fetchall())
        marks = ", ".join("?" * width)
        old.executemany(f"INSERT INTO {name} VALUES ({marks})", [row[:width] for row in found if row])
    old.execute("DELETE FROM session WHERE session_id <> 's/agent'")
    data = exported(old, CHILD) if len(schema_versions()) == 1 else _exported_by_sql(old)
    old.close()
    new = operations.connect(tmp_path / "new.db")
    assert taken(new, data, tmp_path).records == 12
    assert operations.check(new, bodies=True).wrong_bodies == ()
    new.close()


def _exported_by_sql(old: sqlite3.Connection) -> bytes:
    """An export of an old schema: today's session columns cannot be asked of it."""
    from mcp_compact.adapters.sqlite.operations import raw_rows

    number = old.execute("SELECT id FROM session").fetchone()[0]
    names = ("session", "record", *tables(old))
    head = {
        "mcp_compact_raw_export": 1,
        "schema": 1,
        "program": "0",
        "sessions": ["s/agent"],
        "columns": {name: raw_rows.written_columns(old, name) for name in names},
    }
    lines: list[object] = [head, *raw_rows._rows(old, "session", f"FROM session t WHERE t.id = {number}")]
    source = f"FROM record t JOIN body b ON b.id = t.body_id WHERE t.session = {number} ORDER BY t.seq"
    lines += raw_rows._rows(old, "record", source, 1)
    return signed(lines)


def test_a_release_that_is_newer_is_refused(source, other, tmp_path):
    head, *rest = exported(source, KEY).splitlines()
    newer = json.dumps({**json.loads(head), "schema": 99}).encode()
    with pytest.raises(CallerError) as caught:
        taken(other, b"\n".join([newer, *rest]) + b"\n", tmp_path)
    assert caught.value.code == "newer_schema"


@pytest.mark.parametrize("spoil", ["cut", "cut_line", "byte", "no_end", "order"])
def test_an_export_that_is_not_whole_is_refused(source, other, tmp_path, spoil):
    data = exported(source, KEY)
    lines = data.splitlines(keepends=True)
    spoilt = {
        "cut": data[: len(data) // 2],
        "cut_line": b"".join(lines[:-3]),
        "byte": data.replace(b"file3.py", b"file5.py"),
        "no_end": b"".join(lines[:-1]),
        "order": b"".join([lines[0], *lines[2:4], lines[1], *lines[4:]]),
    }[spoil]
    with pytest.raises(CallerError) as caught:
        taken(other, spoilt, tmp_path)
    assert caught.value.code in ("damaged_export", "bad_export")
    assert operations.session(other, KEY) is None


def _changed(table: str, column: str, value: object) -> Any:
    def change(lines: list[Any]) -> list[Any]:
        at = lines[0]["columns"][table].index(column) + 1
        first = next(number for number, line in enumerate(lines) if number and line[0] == table)
        lines[first][at] = value
        return lines

    return change


@pytest.mark.parametrize(
    "change",
    [
        _changed("record", "data", "something else"),
        _changed("record", "units", "many"),
        _changed("record", "seq", 1 << 70),
        _changed("record", "uuid", None),
        _changed("record", "parent_seq", 77),
        _changed("record", "calls", "no json"),
        _changed("record", "calls", "[1]"),
        _changed("record", "seq", 2),
        _changed("session", "live_units", 1),
        _changed("session", "last_seq", 9),
        _changed("session", "declines", "[]"),
        _changed("session", "boundary_seq", 1),
        _changed("marker", "metadata", "7"),
        _changed("member", "marker", 5),
        _changed("call", "session", 2),
        lambda lines: [*lines, ["sqlite_master", 1]],
        lambda lines: [*lines, ["record"]],
        lambda lines: [*lines, "end"],
        lambda lines: [{**lines[0], "sessions": ["t"]}, *lines[1:]],
        lambda lines: [{**lines[0], "columns": {}}, *lines[1:]],
        lambda lines: [{**lines[0], "schema": 0}, *lines[1:]],
        lambda lines: [lines[0]],
        lambda lines: [[], *lines],
    ],
)
def test_what_does_not_fit_together_is_refused_though_its_hash_fits(source, other, tmp_path, change):
    lines = [json.loads(line) for line in exported(source, KEY).splitlines()[:-1]]
    with pytest.raises(CallerError) as caught:
        taken(other, signed(change(lines)), tmp_path)
    assert caught.value.code == "bad_export"
    assert operations.session(other, KEY) is None
