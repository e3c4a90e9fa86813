"""Rescue from files that are really damaged: whatever is left is there, byte for byte, and the new file works."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.failures import DamagedBodyError
from mcp_compact.adapters.sqlite.operations.backups import back_up
from mcp_compact.adapters.sqlite.operations.damaged_pages import Pages
from mcp_compact.adapters.sqlite.operations.damaged_rows import Walk, walk
from mcp_compact.adapters.sqlite.operations.deep_checks import deep_check
from mcp_compact.adapters.sqlite.operations.rescuing import Rescued, default_target, rescue
from mcp_compact.errors import CallerError, CompactError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.ports.search import SearchQuery
from mcp_compact.ports.store import SessionKey, Stamp
from tests.adapters.sqlite.builders import KEY, answer, batch, dialogue, record, text, use
from tests.adapters.sqlite.operations.test_deleting import FORK, fill

BIG = SessionKey("local", "big")
PAGE = 4096
LONG = "a line of a long result, "


Made = tuple[dict[str, bytes], dict[tuple[str, int], bytes]]
_made: dict[bool, Made] = {}


def make(path: Path, *, leave_wal: bool = False) -> dict[tuple[str, int], bytes]:
    """An archive with boundaries, clearings, a fork and large messages; the bytes of each record. Built once."""
    if leave_wal not in _made:
        bodies = _make(path, leave_wal=leave_wal)
        files = {suffix: path.with_name(path.name + suffix) for suffix in ("", "-wal")}
        _made[leave_wal] = ({suffix: file.read_bytes() for suffix, file in files.items() if file.exists()}, bodies)
    contents, bodies = _made[leave_wal]
    for suffix, data in contents.items():
        path.with_name(path.name + suffix).write_bytes(data)
    return bodies


def _make(path: Path, *, leave_wal: bool) -> dict[tuple[str, int], bytes]:
    conn = operations.connect(path)
    fill(conn, KEY)
    operations.fork_session(conn, KEY, FORK, None, 9)
    operations.append(conn, BIG, batch(*dialogue(200)), 1)
    items = [
        record("c", "assistant", [use("call", file_path="a.py")]),
        record("l", "user", [answer("call", LONG * 2000)]),
    ]
    operations.append(conn, BIG, batch(*items), 2)
    operations.write_memory(conn, BIG, "# M\nrename the gauges", MessageUuid("r3"), "agent", 5)
    bodies = bodies_of(conn)
    if leave_wal:
        wal = path.with_name(path.name + "-wal")
        kept = (path.read_bytes(), wal.read_bytes())
        conn.close()
        path.write_bytes(kept[0])
        wal.write_bytes(kept[1])
    else:
        conn.close()
    return bodies


def bodies_of(conn: sqlite3.Connection) -> dict[tuple[str, int], bytes]:
    rows = conn.execute(
        "SELECT s.session_id, r.seq, b.data FROM record r JOIN session s ON s.id = r.session "
        "JOIN body b ON b.id = r.body_id WHERE r.type <> 'lost'"
    )
    return {(session, seq): data for session, seq, data in rows}


def rescued(path: Path) -> Rescued:
    before = path.read_bytes()
    done = rescue(path, path.with_name("new.db"), lambda *_: None)
    assert path.read_bytes() == before
    assert done.checked.is_sound, done.checked
    return done


def new(path: Path) -> sqlite3.Connection:
    return operations.connect(path.with_name("new.db"))


def rows(conn: sqlite3.Connection) -> dict[str, list[object]]:
    tables = ("session", "record", "body", "call", "result", "media", "marker", "member", "cleared", "ledger", "memory",
              "pin", "conflict", "source")  # fmt: skip
    return {name: conn.execute(f"SELECT * FROM {name} ORDER BY 1, 2, 3").fetchall() for name in tables}


def page_of(path: Path, table: str, number: int = 0) -> int:
    """The number of a leaf page of a table, the first for 0; the root itself for -1."""
    conn = sqlite3.connect(path)
    root = conn.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    conn.close()
    if number < 0:
        return int(root)
    pages = Pages(path)
    seen = Walk()
    list(walk(pages, root, seen))
    leaves = [page for page in sorted(seen.pages) if pages.page(page)[0] in (10, 13)]
    pages.close()
    return leaves[number]


def spoil(path: Path, page: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(data)


@pytest.mark.parametrize("leave_wal", [False, True])
def test_of_a_sound_archive_everything_is_saved_row_by_row(path, leave_wal):
    make(path, leave_wal=leave_wal)
    done = rescued(path)
    assert (done.lost, [fate for fate in done.fates if not fate.is_whole]) == (0, [])
    saved = new(path)
    conn = operations.connect(path)
    assert rows(saved) == rows(conn)
    undone = operations.undo(saved, KEY, Stamp(20, ("u",)))
    assert undone.marker is not None
    saved.close()
    conn.close()


@pytest.mark.parametrize("header", [bytes(100), b"\xff" * 100, bytes(PAGE)])
def test_a_file_without_its_beginning_loses_nothing(path, header):
    bodies = make(path)
    spoil(path, 1, header)
    done = rescued(path)
    assert done.lost == 0
    saved = new(path)
    assert bodies_of(saved) == bodies
    session = operations.session(saved, KEY)
    assert session is not None
    saved.close()


@pytest.mark.parametrize(
    ("table", "leaf", "most_lost", "junk"),
    [
        ("body", 0, 40, "zeros"),
        ("body", 3, 40, "random"),
        ("body", -1, 0, "zeros"),
        ("record", 1, 0, "zeros"),
        ("record", -1, 0, "random"),
        ("session", 0, 0, "zeros"),
        ("session", 0, 0, "random"),
        ("call", -1, 0, "zeros"),
        ("cleared", 0, 0, "zeros"),
        ("marker", 0, 0, "random"),
        ("member", 0, 0, "zeros"),
        ("fts_data", 0, 0, "zeros"),
    ],
)
def test_a_damaged_page_costs_no_more_than_what_stood_on_it(path, table, leaf, most_lost, junk):
    bodies = make(path)
    data = bytes(PAGE) if junk == "zeros" else random.Random(1).randbytes(PAGE)
    spoil(path, page_of(path, table, leaf), data)
    done = rescued(path)
    saved = new(path)
    kept = bodies_of(saved)
    assert kept.items() <= bodies.items()
    assert len(bodies) - len(kept) == done.lost <= most_lost
    assert len(saved.execute("SELECT 1 FROM session").fetchall()) == 3
    for session_id, seq in bodies.keys() - kept.keys():
        [fate] = [fate for fate in done.fates if fate.session_id == session_id]
        assert seq in [lost for lost, _ in fate.lost]
    # Life goes on: what was lost is not in the way.
    for key in (KEY, FORK, BIG):
        operations.append(saved, key, batch(record("next", "user", "go on")), 50)
    assert deep_check(saved).is_sound
    saved.close()


@pytest.mark.parametrize("share", [0.4, 0.9])
def test_a_file_that_is_cut_short_keeps_what_is_before_the_cut(path, share):
    bodies = make(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    done = rescued(path)
    saved = new(path)
    kept = bodies_of(saved)
    named = {key: data for key, data in kept.items() if not key[0].startswith("rescued")}
    assert named.items() <= bodies.items()
    assert set(kept.values()) <= set(bodies.values())
    assert done.lost or share > 0.5
    saved.close()


def test_a_damaged_wal_costs_no_more_than_its_damaged_frames(path):
    bodies = make(path, leave_wal=True)
    wal = path.with_name(path.name + "-wal")
    data = bytearray(wal.read_bytes())
    data[:60] = bytes(60)
    middle = len(data) // 2
    data[middle : middle + 3000] = bytes(3000)
    wal.write_bytes(data)
    rescued(path)
    saved = new(path)
    kept = bodies_of(saved)
    assert kept.items() <= bodies.items()
    assert len(kept) > 0.7 * len(bodies)
    saved.close()


def test_a_transaction_that_a_killed_process_left_is_taken_back(path):
    """In a rollback journal, as on network folders: the file itself is half written."""
    make(path)
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA journal_mode=DELETE").fetchall()
    conn.execute("PRAGMA cache_size=5")
    conn.execute("BEGIN IMMEDIATE")
    conn.execute("UPDATE body SET data = zeroblob(length(data))")
    journal = path.with_name(path.name + "-journal")
    left = (path.read_bytes(), journal.read_bytes())
    conn.execute("ROLLBACK")
    conn.close()
    bodies = make(path)
    path.write_bytes(left[0])
    journal.write_bytes(left[1])
    assert rescued(path).lost == 0
    saved = new(path)
    assert bodies_of(saved) == bodies
    saved.close()


@pytest.mark.parametrize("table", ["body", "record"])
def test_what_a_backup_still_has_comes_from_there(path, table):
    bodies = make(path)
    backup, spoilt = path.with_name("backup.db"), path.with_name("no-backup.db")
    conn = operations.connect(path)
    back_up(conn, path, backup, lambda *_: None)
    operations.append(conn, BIG, batch(*dialogue(5, 300)), 9)
    bodies |= bodies_of(conn)
    conn.close()
    spoilt.write_bytes(backup.read_bytes()[:5000])
    spoil(path, page_of(path, table, 3), bytes(PAGE))
    done = rescue(path, path.with_name("new.db"), lambda *_: None, [backup, spoilt])
    assert done.from_backups > 0
    assert (done.lost, done.checked.is_sound) == (0, True)
    assert sum(fate.unproven for fate in done.fates) == 0
    saved = new(path)
    assert bodies_of(saved) == bodies
    saved.close()


def test_what_was_removed_does_not_come_back(path):
    conn = operations.connect(path)
    operations.append(conn, KEY, batch(*dialogue(300)), 1)
    operations.append(conn, BIG, batch(*dialogue(30)), 1)
    operations.delete_session(conn, KEY)
    conn.close()
    spoil(path, page_of(path, "body", 1), bytes(PAGE))
    done = rescued(path)
    assert [fate.session_id for fate in done.fates] == ["big"]
    saved = new(path)
    assert saved.execute("SELECT count(*) FROM record").fetchone() == (30,)
    saved.close()


@pytest.mark.parametrize("content", [b"somebody's notes\n" * 1000, bytes(PAGE * 20), b"x"])
def test_a_file_that_never_was_an_archive_gives_nothing(path, content):
    path.write_bytes(content)
    with pytest.raises(CallerError) as caught:
        rescued(path)
    assert caught.value.code == "nothing_readable"
    assert sorted(item.name for item in path.parent.iterdir()) == [path.name]


def test_a_file_of_a_later_release_and_a_target_that_is_there_are_refused(path):
    make(path)
    conn = sqlite3.connect(path)
    conn.execute("PRAGMA user_version=99")
    conn.close()
    with pytest.raises(CallerError) as caught:
        rescued(path)
    assert caught.value.code == "newer_schema"
    target = default_target(path)
    target.touch()
    with pytest.raises(CallerError) as caught:
        rescue(path, target, lambda *_: None)
    assert caught.value.code == "output_refused"
    assert default_target(path) != target


@pytest.mark.parametrize("seed", [3, 4, 7, 8, 12])
def test_whatever_is_damaged_what_is_saved_is_what_was_said(path, seed):
    chance = random.Random(seed)
    bodies = make(path, leave_wal=seed % 3 == 0)
    target = path.with_name(path.name + "-wal") if seed % 3 == 0 else path
    data = bytearray(target.read_bytes())
    for _ in range(chance.choice((1, 3, 30))):
        at, size = chance.randrange(len(data)), chance.choice((1, 100, PAGE))
        data[at : at + size] = chance.randbytes(min(size, len(data) - at))
    target.write_bytes(data)
    try:
        done = rescue(path, path.with_name("new.db"), lambda *_: None)
    except CompactError as error:
        assert error.hint  # noqa: PT017 - nothing at all may be left
        return
    assert done.checked.is_sound
    saved = new(path)
    unproven = sum(fate.unproven for fate in done.fates)
    strange = [data for data in bodies_of(saved).values() if data not in bodies.values()]
    assert len(strange) <= unproven
    saved.close()


# ---- reading a damaged archive without rescue


def test_a_damaged_message_is_named_and_the_others_can_be_read(path):
    make(path)
    conn = operations.connect(path)
    conn.execute("UPDATE body SET data = replace(data, 'step', 'stop') WHERE id = "
                 "(SELECT body_id FROM record WHERE uuid = 'r120')")  # fmt: skip
    with pytest.raises(DamagedBodyError) as caught:
        operations.record(conn, BIG, MessageUuid("r120"))
    assert caught.value.code == "body_damaged"
    assert "r120" in caught.value.message
    assert "'big'" in caught.value.message
    assert "mcp-compact rescue" in caught.value.hint
    with pytest.raises(DamagedBodyError):
        operations.records(conn, BIG, after_seq=100, up_to_seq=130, live_only=False)
    assert operations.record(conn, BIG, MessageUuid("r119")) is not None
    found = operations.search(conn, "local", operations_query("step 110"))
    assert [hit.uuid for hit in found.hits] == ["r110"]
    operations.append(conn, BIG, batch(record("t", "user", [text("one more")])), 9)
    assert [item[2] for item in deep_check(conn).wrong_bodies] == ["r120"]
    operations.delete_session(conn, BIG)
    assert deep_check(conn).is_sound
    conn.close()


def operations_query(words: str) -> SearchQuery:
    return SearchQuery(words, session_id="big")


LOOKS: list[Callable[[sqlite3.Connection], object]] = [
    lambda conn: conn.execute("UPDATE session SET live_units = live_units + 1"),
    lambda conn: conn.execute("DELETE FROM body WHERE id = 5"),
    lambda conn: conn.execute("DELETE FROM record WHERE seq = 7"),
    lambda conn: conn.execute("DELETE FROM marker"),
    lambda conn: conn.execute("INSERT INTO result SELECT session, 999, block, tool_use_id, units, answers, media, "
                              "cleared_units, cleared_answers, cleared_media, is_error, cleared_by FROM result "
                              "LIMIT 1"),
    lambda conn: conn.execute("UPDATE fts_data SET block = zeroblob(length(block)) WHERE id > 10"),
]  # fmt: skip


@pytest.mark.parametrize("harm", LOOKS)
def test_a_deep_look_finds_what_does_not_fit(path, harm):
    make(path)
    conn = operations.connect(path)
    operations.search(conn, "local", operations_query("step"))
    assert deep_check(conn).is_sound
    harm(conn)
    assert not deep_check(conn).is_sound
    conn.close()


def test_a_providers_count_goes_with_what_it_was_a_count_of(path):
    conn = operations.connect(path)
    said = [*dialogue(200), record("a", "assistant", "counted", usage=90_000)]
    operations.append(conn, KEY, batch(*said, owner="client", model="gpt-5"), 1)
    before = operations.session(conn, KEY)
    conn.close()
    spoil(path, page_of(path, "body", 1), bytes(PAGE))
    assert rescued(path).lost
    saved = new(path)
    after = operations.session(saved, KEY)
    saved.close()
    assert before is not None
    assert after is not None
    assert before.client_tokens is not None
    assert after.live_weight.units < before.live_weight.units
    assert (after.client_tokens, after.overhead_tokens) == (None, before.overhead_tokens)
