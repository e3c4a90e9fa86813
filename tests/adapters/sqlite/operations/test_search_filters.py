"""Narrowed searches against a plain list of records; pages that hold while others append."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations import indexing
from mcp_compact.adapters.sqlite.operations.searchable import readable, readable_content
from mcp_compact.compaction.snapshot import Reach
from mcp_compact.errors import CallerError
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.search import Found, SearchQuery
from mcp_compact.ports.store import Stamp
from tests.adapters.sqlite.builders import KEY, answer, batch, dialogue, record, text, use
from tests.adapters.sqlite.model import plan_of

TOOLS = ("Read", "Bash", "mcp__x")
WORDS = ("alpha", "beta", "foo/bar.py", "it's", "38.101", "数据", "->", "get_running_loop")


@dataclass(frozen=True)
class Said:
    """A record as it is expected to be found."""

    uuid: str
    role: str
    tool: str
    at_ms: int | None
    words: tuple[str, ...]


@st.composite
def talks(draw: st.DrawFn) -> list[Said]:
    """Prompts, answers, calls and their results, some without a time."""
    out: list[Said] = []
    for at in range(draw(st.integers(1, 12))):
        words = tuple(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)))
        time_ms = draw(st.sampled_from([None, 10, 20, 30]))
        kind = draw(st.sampled_from(["user", "assistant", "call"]))
        if kind == "call":
            tool = draw(st.sampled_from(TOOLS))
            out += [Said(f"c{at}", "assistant", tool, time_ms, words), Said(f"r{at}", "tool", tool, time_ms, words)]
        else:
            out.append(Said(f"m{at}", kind, "", time_ms, words))
    return out


def record_of(said: Said) -> Record:
    words = " ".join(said.words)
    number = said.uuid[1:]
    if said.uuid.startswith("c"):
        block = use(f"t{number}", said.tool, command=words)
        return record(said.uuid, "assistant", [block], at_ms=said.at_ms)
    if said.uuid.startswith("r"):
        return record(said.uuid, "user", [answer(f"t{number}", words)], at_ms=said.at_ms)
    return record(said.uuid, said.role, words, at_ms=said.at_ms)


def expected(talk: list[Said], query: SearchQuery) -> list[str]:
    found = []
    for said in reversed(talk):
        if not set(query.text.split()) <= set(said.words):
            continue
        if query.role and said.role != query.role:
            continue
        if query.tool and said.tool.lower() != query.tool.lower():
            continue
        if query.since_ms is not None and (said.at_ms is None or said.at_ms < query.since_ms):
            continue
        if query.until_ms is not None and (said.at_ms is None or said.at_ms >= query.until_ms):
            continue
        found.append(said)
    if query.best:
        found.sort(key=lambda said: -sum(said.words.count(word) for word in query.text.split()))
    return [said.uuid for said in found]


QUERIES = st.builds(
    SearchQuery,
    text=st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True).map(" ".join),
    session_id=st.sampled_from([None, KEY.session_id]),
    limit=st.just(100),
    role=st.sampled_from(["", "user", "assistant", "tool", "system"]),
    tool=st.sampled_from(["", "read", "Bash", "MCP__X", "%", "Re_d"]),
    since_ms=st.sampled_from([None, 10, 20]),
    until_ms=st.sampled_from([None, 20, 31]),
    best=st.booleans(),
)


def uuids(found: Found) -> list[str]:
    return [hit.uuid for hit in found.hits]


@settings(max_examples=60)
@given(talks(), st.lists(QUERIES, min_size=1, max_size=6), st.integers(0, 20))
def test_a_narrowed_search_finds_what_a_look_at_every_record_finds(talk, queries, indexed):
    conn = operations.connect(":memory:")
    operations.append(conn, KEY, batch(*map(record_of, talk)), 1)
    indexing.index_batch(conn, indexed + 1)
    for query in queries:
        assert uuids(operations.search(conn, "local", query)) == expected(talk, query), query
    conn.close()


@settings(max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=15), st.integers(1, 4), st.booleans(), st.integers(0, 15))
def test_pages_hold_while_others_append(counts, limit, best, indexed):
    conn = operations.connect(":memory:")
    items = [record(f"r{at}", "user", "needle " * number) for at, number in enumerate(counts)]
    operations.append(conn, KEY, batch(*items), 1)
    indexing.index_batch(conn, indexed + 1)
    whole = uuids(operations.search(conn, "local", SearchQuery("needle", limit=100, best=best)))
    seen: list[str] = []
    before, skip, turn = None, 0, 0
    while True:
        query = SearchQuery("needle", limit=limit, best=best, before=before, skip=skip)
        found = operations.search(conn, "local", query)
        seen += uuids(found)
        before, skip = found.next_before, found.next_skip
        if before is None:
            break
        operations.append(conn, KEY, batch(record(f"late{turn}", "user", "needle " * 9)), 2)
        turn += 1
    assert seen == whole
    if best:
        given = [counts[int(uuid[1:])] for uuid in seen]
        assert given == sorted(counts, reverse=True)
    conn.close()


def test_a_boundary_parts_what_it_knew_of_from_what_came_since(conn):
    operations.append(conn, KEY, batch(*dialogue(20), record("old", "user", "needle")), 1)
    compact(conn, "b1")
    operations.append(conn, KEY, batch(record("between", "user", "needle")), 1)
    compact(conn, "b2")
    operations.append(conn, KEY, batch(record("new", "user", "needle")), 1)
    sides: dict[tuple[str, str], list[str]] = {
        ("before", ""): ["between", "old"],
        ("after", ""): ["new"],
        ("before", "b1"): ["old"],
        ("after", "b1"): ["new", "between"],
    }
    for (side, uuid), wanted in sides.items():
        query = SearchQuery("needle", session_id=KEY.session_id, boundary=side, boundary_uuid=uuid)
        assert uuids(operations.search(conn, "local", query)) == wanted, (side, uuid)
    assert uuids(operations.search(conn, "local", SearchQuery("needle", boundary="after"))) == ["new"]
    with pytest.raises(CallerError, match="no boundary"):
        operations.search(
            conn, "local", SearchQuery("needle", session_id=KEY.session_id, boundary="after", boundary_uuid="old")
        )


def compact(conn: sqlite3.Connection, name: str) -> None:
    snapshot = operations.snapshot(conn, KEY, Reach(10, 1, 30))
    assert snapshot is not None
    plan = plan_of(snapshot, snapshot.tail[-1:], Weight(9, 0, 0, 1))
    assert operations.commit(conn, KEY, plan, Stamp(1, (name, f"s{name}"))).marker is not None


def test_without_an_indexed_word_a_session_is_read_from_its_newest_record(conn):
    operations.append(conn, KEY, batch(*dialogue(300), record("arrow", "user", "a -> b")), 1)
    indexing.catch_up(conn, 10)
    query = SearchQuery("->", session_id=KEY.session_id)
    assert uuids(operations.search(conn, "local", query)) == ["arrow"]


BLOCKS: st.SearchStrategy[Any] = st.one_of(
    st.text(max_size=5),
    st.fixed_dictionaries({"type": st.just("text"), "text": st.one_of(st.text(max_size=5), st.integers())}),
    st.fixed_dictionaries(
        {"type": st.just("tool_use"), "id": st.sampled_from(["t", "", None]), "name": st.sampled_from(["Read", 1]),
         "input": st.recursive(st.one_of(st.text(max_size=3), st.integers(), st.none(), st.booleans()),
                               lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=2), max_leaves=4)}
    ),
    st.fixed_dictionaries(
        {"type": st.just("tool_result"), "tool_use_id": st.sampled_from(["t", ""]),
         "content": st.one_of(st.none(), st.text(max_size=5), st.just([text("x"), {"type": "image"}, "bare"]))}
    ),
    st.fixed_dictionaries({"type": st.sampled_from(["thinking", "image", "server", None]), "thinking": st.just("deep")}),
)  # fmt: skip


@given(st.one_of(st.none(), st.text(max_size=9), st.lists(BLOCKS, max_size=4)))
def test_what_is_read_of_plain_messages_is_what_is_read_of_their_blocks(content):
    short = readable_content(content)
    assert short is None or short == readable(record("x", "user", content))
