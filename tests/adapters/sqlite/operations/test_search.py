"""Search: any text is taken literally, everything ever stored is found, no query is an error."""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection, check_point
from mcp_compact.adapters.sqlite.operations import indexing, searchable
from mcp_compact.adapters.sqlite.operations.searchable import query_of, readable, snippet
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.errors import ServerError
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.masking import MASK
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.search import Found, SearchQuery
from mcp_compact.ports.store import SessionKey, Stamp
from tests.adapters.sqlite.builders import IMAGE, KEY, answer, batch, dialogue, record, text, use
from tests.adapters.sqlite.model import plan_of

TEXTS = {
    "path": "see src/foo/bar.py, line 12",
    "quote": 'it\'s what they said: "never" again',
    "number": "38.101 seconds, issue #12 and 50% done",
    "dash": "a multi-agent set-up for @nasa (NEAR the end*)",
    "snake": "call get_running_loop() AND wait",
    "shout": "ÜBER die Straße, КОДЕКС",
    "chinese": "处理数据库的函数 parse_items 失败了",
    "japanese": "データベースを開く",
    "korean": "데이터베이스 오류",
    "thai": "ฐานข้อมูลเสีย",
    "nul": "before\0after needle",
    "emoji": "all good 🎉 now",
    "escape": "tab\tand C:\\temp\\new and {'key': [1, 2]}",
    "accent": "the café is open",
    "arrows": "a -> b => c != d",
}
FINDS = [
    ("foo/bar.py", {"path"}),
    ("SRC/FOO/BAR.PY", {"path"}),
    ("bar.py 12", {"path"}),
    ("12", {"path", "number"}),
    ("it's", {"quote"}),
    ('"never"', {"quote"}),
    ('said: "never"', {"quote"}),
    ("38.101", {"number"}),
    ("#12", {"number"}),
    ("50%", {"number"}),
    ("multi-agent", {"dash"}),
    ("@nasa", {"dash"}),
    ("(NEAR", {"dash"}),
    ("end*)", {"dash"}),
    ("get_running_loop()", {"snake"}),
    ("running", set()),
    ("get_running_loop", {"snake"}),
    ("AND", {"snake", "escape", "number"}),
    ("über STRASSE", set()),
    ("über straße", {"shout"}),
    ("кодекс", {"shout"}),
    ("数据库", {"chinese"}),
    ("处理 失败", {"chinese"}),
    ("parse_items", {"chinese"}),
    ("函数 parse_items", {"chinese"}),
    ("数据车", set()),
    ("ベース", {"japanese"}),
    ("데이터", {"korean"}),
    ("ข้อมูล", {"thai"}),
    ("needle", {"nul"}),
    ("before", {"nul"}),
    ("🎉", {"emoji"}),
    ("good 🎉", {"emoji"}),
    ("C:\\temp\\new", {"escape"}),
    ("{'key':", {"escape"}),
    ("café", {"accent"}),
    ("cafe", set()),
    ("->", {"arrows"}),
    ("!= d", {"arrows"}),
    ("nowhere", set()),
    ("see nowhere", set()),
    ("oo/bar.p", set()),
]


def find(conn: sqlite3.Connection, words: str, **fields: Any) -> Found:
    return operations.search(conn, "local", SearchQuery(words, **fields))


def uuids(found: Found) -> list[str]:
    return [hit.uuid for hit in found.hits]


@pytest.fixture(scope="module", params=["indexed", "read through"])
def stored(request: pytest.FixtureRequest) -> Iterator[tuple[sqlite3.Connection, bool]]:
    conn = operations.connect(":memory:")
    operations.append(conn, KEY, batch(*[record(uuid, "user", words) for uuid, words in TEXTS.items()]), 1)
    is_indexed = request.param == "indexed"
    if is_indexed:
        indexing.catch_up(conn, 10)
        assert indexing.waiting(conn) == 0
    yield conn, is_indexed
    conn.close()


@pytest.fixture
def texts(stored: tuple[sqlite3.Connection, bool], monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    """The same answers, whether the index knows the texts or not."""
    conn, is_indexed = stored
    if not is_indexed:
        monkeypatch.setattr(indexing, "index_batch", lambda _: 0)
    return conn


@pytest.mark.parametrize(("words", "expected"), FINDS)
def test_words_are_found_as_they_are_written(texts, words, expected):
    found = find(texts, words)
    assert set(uuids(found)) == expected
    assert found.complete


NASTY = ["", " ", "\0", "*", '"', '""', "'", "AND", "OR NOT", "NEAR(", "NEAR(a b, 3)", "text:x", "^a", "a*", "-a", "(", ")(", "\ud83d", "a" * 5000, "字" * 500, "x " * 3000, "{}[]", "\\", "%", "_", "\u2028", "a\0b", "\U0001f600", "´`~"]  # fmt: skip


@pytest.mark.parametrize("words", NASTY)
def test_no_query_is_an_error(texts, words):
    assert find(texts, words).complete


@given(st.text(st.characters(codec=None, exclude_categories=()), max_size=30))
@example("\u00f7")  # no letter, though it stands among letters
@example("0\u1c90")  # a letter that the index does not know, and whose small form it does
def test_any_query_over_any_text_is_answered_and_finds_the_text_itself(words):
    """Index and reading agree: what the text holds word for word is found, before and after it is indexed."""
    conn = operations.connect(":memory:")
    operations.append(conn, KEY, batch(record("a", "user", f"first {words} last"), record("b", "user", "other")), 1)
    expected = ["a"] if words.replace("\0", " ").split() else []
    query = query_of(words)
    assert [
        uuid for uuid in ("a",) if query.words and query.find(f"first {readable_text(words)} last") is not None
    ] == expected
    found = find(conn, words)
    assert set(expected) <= set(uuids(found))
    assert find(conn, "last") == find(conn, "LAST")
    conn.close()


def readable_text(words: str) -> str:
    return readable(record("x", "user", words))


def test_everything_that_can_be_read_is_found(conn):
    deep = {"a": [{"b": ["nested needle1", 4711, True, None]}], "needle2": 1.5}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [text("needle4"), IMAGE]}
    items = [
        record("thinks", "assistant", [{"type": "thinking", "thinking": "needle0", "signature": "s"}]),
        record("calls", "assistant", [use("t", "Grep_needle3", **deep)]),
        record("result", "user", [result]),
        record("other", "assistant", [{"type": "server_thing", "payload": {"words": "needle5"}}]),
        record(
            "titled",
            "user",
            [{"type": "document", "title": "needle6", "source": {"type": "base64", "data": "bmVlZGxl"}}],
        ),
    ]
    line = record("line", "system", None, type="summary")
    line.raw["summary"] = "needle7"  # type: ignore[index]
    operations.append(conn, KEY, batch(*items, replace(line, body=canonical(line.raw))), 1)
    wanted = {
        "needle0": "thinks",
        "needle1": "calls",
        "4711": "calls",
        "needle2": "calls",
        "Grep_needle3": "calls",
        "needle4": "result",
        "needle5": "other",
        "needle6": "titled",
        "needle7": "line",
    }
    assert {word: uuids(find(conn, word)) for word in wanted} == {word: [uuid] for word, uuid in wanted.items()}


def test_data_and_copies_beside_the_content_are_no_reading_matter(conn):
    blob = "QUJD" * 500
    items = [record("a", "user", [text(f"word {blob}"), answer("t", blob)])]
    items[0].raw["toolUseResult"] = {"stdout": "copied"}  # type: ignore[index]
    operations.append(conn, KEY, batch(*items), 1)
    assert uuids(find(conn, "copied")) == []
    assert len(readable(items[0])) < 2100


def test_hits_say_where_they_stand(conn):
    operations.append(
        conn,
        KEY,
        batch(*dialogue(30), record("last", "assistant", [use("z", "Bash", command="ls needle")], at_ms=77)),
        1,
    )
    snapshot = operations.snapshot(conn, KEY, Reach(10, 1, 30))
    assert snapshot is not None
    operations.commit(conn, KEY, plan_of(snapshot, snapshot.tail, Weight(9, 0, 0, 1)), Stamp(1, ("b", "s")))
    (hit,) = find(conn, "needle").hits
    assert (hit.session_id, hit.uuid, hit.seq, hit.role, hit.type, hit.tool, hit.at_ms, hit.is_live) == (
        "s",
        "last",
        31,
        "assistant",
        "assistant",
        "Bash",
        77,
        True,
    )
    assert not find(conn, "/src/file1.py").hits[0].is_live
    result = find(conn, "line 2 of").hits[0]
    assert (result.tool, result.is_live) == ("Read", False)
    summary = find(conn, "story").hits[0]
    assert (summary.uuid, summary.is_live) == ("s", True)


def test_hits_are_newest_first_and_pages_together_are_all(conn):
    operations.append(conn, KEY, batch(*[record(f"r{at}", "user", f"needle {at}") for at in range(25)]), 1)
    indexing.index_batch(conn, 10)
    seen: list[str] = []
    before = None
    while True:
        found = find(conn, "needle", limit=4, before=before)
        assert found.total_at_least == len(found.hits) + (found.next_before is not None)
        seen += uuids(found)
        before = found.next_before
        if before is None:
            break
    assert seen == [f"r{at}" for at in range(24, -1, -1)]


def test_only_sessions_of_the_tenant_and_the_project_are_searched(conn):
    keys = {
        "mine": SessionKey("local", "mine"),
        "far": SessionKey("local", "far"),
        "theirs": SessionKey("tenant", "mine"),
    }
    for name, key in keys.items():
        operations.append(conn, key, batch(record(name, "user", "needle"), cwd=f"/srv/{name}"), 1)
    assert uuids(find(conn, "needle")) == ["far", "mine"]
    assert uuids(find(conn, "needle", session_id="mine")) == ["mine"]
    assert uuids(find(conn, "needle", cwd="/srv/far")) == ["far"]
    assert uuids(find(conn, "#", session_id="nowhere")) == []
    assert uuids(operations.search(conn, "tenant", SearchQuery("needle"))) == ["theirs"]


def test_a_search_that_ran_out_of_time_says_so_and_can_go_on(conn, monkeypatch):
    operations.append(conn, KEY, batch(*[record(f"r{at}", "user", "->" if at == 0 else "x") for at in range(10)]), 1)
    indexing.catch_up(conn, 10)
    module = importlib.import_module("mcp_compact.adapters.sqlite.operations.search")
    monkeypatch.setattr(module, "READ_SECONDS", -1.0)
    first = find(conn, "->")
    assert (first.hits, first.complete) == ((), False)
    steps, found = 0, first
    while not found.hits:
        assert found.next_before is not None
        found = find(conn, "->", before=found.next_before)
        steps += 1
    assert (uuids(found), steps) == (["r0"], 9)


def work_of(conn: sqlite3.Connection, words: str, **fields: Any) -> int:
    """What SQLite does for a search, in steps of its machine: no clock, so the same on every computer."""
    steps = [0]

    def step() -> int:
        steps[0] += 1
        return 0

    conn.set_progress_handler(step, 10)
    try:
        assert find(conn, words, **fields).complete
    finally:
        conn.set_progress_handler(None, 0)
    return steps[0]


def test_what_a_search_costs_does_not_grow_with_the_archive():
    searches: list[tuple[str, dict[str, Any]]] = [
        ("needle", {}),
        ("common", {"limit": 5}),
        ("the common word", {"limit": 5}),
        ("absent", {}),
        ("common", {"session_id": "mine"}),
        ("common needle", {"cwd": "/other"}),
    ]
    costs = []
    for size in (300, 6_000):
        conn = operations.connect(":memory:")
        words = [f"the common word {at}" + (" needle" if at == 5 else "") for at in range(size)]
        records = [record(f"r{at}", "user", text) for at, text in enumerate(words)]
        operations.append(conn, KEY, batch(*records, cwd="/other"), 1)
        operations.append(conn, SessionKey("local", "mine"), batch(record("m", "user", "mine alone")), 1)
        indexing.catch_up(conn, 60)
        assert indexing.waiting(conn) == 0
        costs.append([work_of(conn, words, **fields) for words, fields in searches])
        conn.close()
    small, large = costs
    # Twenty times the records: a tree of the index is one level deeper.
    assert all(b <= 2 * a + 50 for a, b in zip(small, large, strict=True)), costs


def test_what_is_not_indexed_yet_comes_before_what_is(conn, monkeypatch):
    operations.append(conn, KEY, batch(record("old", "user", "needle")), 1)
    indexing.catch_up(conn, 10)
    operations.append(conn, KEY, batch(record("new", "user", "needle")), 2)
    monkeypatch.setattr(indexing, "index_batch", lambda _: 0)
    assert uuids(find(conn, "needle")) == ["new", "old"]


def test_a_search_does_not_wait_for_a_writer(path, conn):
    operations.append(conn, KEY, batch(record("a", "user", "needle")), 1)
    other = operations.connect(path)
    other.execute("BEGIN IMMEDIATE")
    assert uuids(find(conn, "needle")) == ["a"]
    assert conn.execute("PRAGMA busy_timeout").fetchone() == (30_000,)
    other.execute("ROLLBACK")
    other.close()


def test_two_that_index_at_once_index_each_record_once(path, conn, monkeypatch):
    operations.append(conn, KEY, batch(*dialogue(20)), 1)
    other = operations.connect(path)
    real = searchable.for_index

    def race(words: str) -> str:
        monkeypatch.setattr(indexing, "for_index", real)
        assert indexing.index_batch(other) == 20
        return real(words)

    monkeypatch.setattr(indexing, "for_index", race)
    assert indexing.index_batch(conn) == 0
    assert len(find(conn, "please").hits) == 2
    other.close()


def test_an_index_that_cannot_be_filled_does_not_take_back_what_was_appended(conn, monkeypatch):
    def full(_: Any) -> int:
        raise ServerError("disk_full", "The disk is full.")

    operations.append(conn, KEY, batch(*dialogue(210)), 1)
    monkeypatch.setattr(indexing, "index_batch", full)
    assert indexing.append_and_index(conn, KEY, batch(record("more", "user", "needle")), 2).new == 1
    monkeypatch.setattr(indexing, "index_batch", unreachable)
    with pytest.raises(ServerError, match="another"):
        find(conn, "needle")
    monkeypatch.undo()
    assert uuids(find(conn, "needle")) == ["more"]


def unreachable(_: Any) -> int:
    raise ServerError("store_io", "another failure")


@pytest.mark.parametrize("is_indexed", [True, False])
def test_what_stands_beside_a_damaged_page_is_found(path: Path, conn, is_indexed):
    """Also where the index ends before it, and within one session."""
    said = [record(f"m{at}", "user", f"needle number{at} " + "blank " * 150) for at in range(30)]
    operations.append(conn, KEY, batch(*said), 1)
    if is_indexed:
        indexing.catch_up(conn, 10)
    gone = damage_page_of(path, conn, b"number17 ")
    assert 0 < len(gone) < 10
    other = operations.connect(path)
    there = [f"m{at}" for at in reversed(range(30)) if f"m{at}" not in gone]
    for query in (SearchQuery("needle", limit=100), SearchQuery("needle", limit=100, session_id=KEY.session_id)):
        found = operations.search(other, KEY.namespace, query)
        assert (uuids(found), found.unreadable, found.complete) == (there, len(gone), True)
    best = operations.search(other, KEY.namespace, SearchQuery("needle", limit=100, best=True))
    assert (sorted(uuids(best)), best.unreadable) == (sorted(there), len(gone))
    page = operations.search(other, KEY.namespace, SearchQuery("needle", limit=20))
    rest = operations.search(other, KEY.namespace, SearchQuery("needle", limit=20, before=page.next_before))
    assert uuids(page) + uuids(rest) == there
    other.close()


def test_a_damaged_index_is_told(path: Path, conn):
    operations.append(conn, KEY, batch(*dialogue(300)), 1)
    indexing.catch_up(conn, 10)
    conn.execute("UPDATE fts_data SET block = x'ff' WHERE id > 10")
    with pytest.raises(ServerError) as told:
        find(conn, "please")
    assert told.value.code == "store_damaged"


def damage_page_of(path: Path, conn: ArchiveConnection, words: bytes) -> set[str]:
    """Damage the page that holds these words; the uuids of the records on it."""
    (size,) = conn.execute("PRAGMA page_size").fetchone()
    assert check_point(conn, "TRUNCATE")
    conn.close()
    data = path.read_bytes()
    start = data.index(words) // size * size
    page = data[start : start + size]
    path.write_bytes(data[:start] + b"\xff" * size + data[start + size :])
    return {f"m{number.decode()}" for number in re.findall(rb"number(\d+) ", page)}


def test_ids_that_no_record_has_do_not_wait_for_ever(conn):
    operations.append(conn, KEY, batch(*dialogue(5)), 1)
    conn.execute("DELETE FROM record WHERE seq > 3")
    indexing.catch_up(conn, 10)
    assert indexing.waiting(conn) == 0


@pytest.mark.parametrize(
    ("whole", "at", "expected"),
    [
        ("short", 0, "short"),
        ("a" * 300, 150, "…" + "a" * 200 + "…"),
        ("x\n\n  y\0z", 4, "x y z"),
        ("b" * 300, 299, "…" + "b" * 67),
    ],
)
def test_a_snippet_shows_what_stands_around(whole, at, expected):
    assert snippet(whole, at) == expected
    assert len(snippet(whole, at)) <= searchable.SNIPPET_CHARS + 2


@pytest.mark.parametrize("word", ["needle", "Bearer", "a1B2a1B2"])
def test_a_key_that_the_cut_would_halve_is_masked_whole(word):
    key = "ghp_" + "a1B2" * 9
    pem = "-----BEGIN PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEAvVQ9d4x8kq1J\n" * 50 + "-----END PRIVATE KEY-----\n"
    for words in (
        f"{key} " + "x " * 20 + "needle Bearer a1B2a1B2",
        "needle Bearer a1B2a1B2 " + "x " * 55 + key,
        f"Authorization: Bearer {'a1B2' * 90} needle a1B2a1B2",
        f"{pem}needle Bearer a1B2a1B2",
        f"needle Bearer a1B2a1B2 {pem}",
    ):
        conn = operations.connect(":memory:")
        operations.append(conn, KEY, batch(record("r", "user", words)), 1)
        shown = find(conn, word).hits[0].snippet
        conn.close()
        assert MASK in shown, words
        assert not any(part in shown for part in ("ghp_", "a1B2a1B2a1B2", "MIIE")), shown
