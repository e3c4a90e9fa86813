"""Archives as each schema made them: dumps of real rows, and the command that writes the newest schema's.

    python -m tests.adapters.sqlite.released_archives

writes `released/NNN.sql`: tables, indexes and rows as SQL, to be committed with the release and never changed again.
A dump holds the words of its schema itself, so a schema file that is changed after its release is noticed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.migrations import APPLICATION_ID, schema_versions
from mcp_compact.adapters.sqlite.operations import indexing, tokens
from mcp_compact.adapters.sqlite.operations.hook_state import put_hook_state
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, record_of_row
from mcp_compact.adapters.sqlite.operations.searchable import for_index, readable
from mcp_compact.compaction.plan import Cleared, ClearingPlan, MemoryUpdate
from mcp_compact.compaction.snapshot import Base, Reach
from mcp_compact.compaction.snip import SnipPlan
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Clearing, ClearKind
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.store import (
    Batch,
    NativeBoundary,
    Pending,
    Registered,
    SessionFacts,
    SessionKey,
    SourcePosition,
    Stamp,
)
from mcp_compact.ports.tokens import Token
from tests.adapters.sqlite.builders import IMAGE, KEY, answer, batch, dialogue, prepared, record, text, use
from tests.adapters.sqlite.model import plan_of

FOLDER = Path(__file__).with_name("released")
FORK = SessionKey("local", "fork")
CLIENTS = SessionKey("local", "client's own")
CHILD = SessionKey("local", "client's own/agent-1")
KEYS = (KEY, FORK, CLIENTS, CHILD)


def versions() -> list[int]:
    """The schemas of which there is a dump."""
    return sorted(int(path.stem) for path in FOLDER.glob("*.sql"))


def restore(version: int, path: Path) -> None:
    """The archive that a release with this schema left, in a file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("PRAGMA journal_mode=WAL")
        conn.executescript(FOLDER.joinpath(f"{version:03}.sql").read_text(encoding="utf-8"))


# ---------------------------------------------------------------- what the archives hold


def fill(conn: sqlite3.Connection) -> None:
    """Something in every table: two compactions, one of them undone, clearings, a snip, a fork, a client's session."""
    operations.append(conn, KEY, batch(*dialogue(12), title="t", model="claude-x", cwd="/project"), 1_000)
    _compact(conn, ("b1", "s1"), 2_000)
    operations.append(conn, KEY, batch(*dialogue(8, 12)), 3_000)
    operations.append(conn, KEY, batch(record("img", "user", [text("look"), IMAGE])), 3_001)
    _clear(conn, 4_000)
    _snip(conn, 5_000)
    _compact(conn, ("b2", "s2"), 6_000)
    operations.undo(conn, KEY, Stamp(7_000, ("u1",)))
    operations.append(conn, KEY, batch(record("r0", "user", "another first message")), 7_500)
    operations.write_memory(conn, KEY, "# Memory\n\nuse tabs", MessageUuid("r19"), "agent", 8_000)
    operations.register(conn, KEY, Registered("plan", "", "step 2 comes next"), 8_100)
    operations.put_pending(conn, Pending("c1", KEY, "{}", _base(conn), 8_200, 99_000))
    operations.note(conn, KEY, decline="gain_too_small", attempt="x")
    operations.fork_session(conn, KEY, FORK, None, 9_000)
    operations.append(conn, FORK, batch(record("f1", "user", "on its own way, halb \ud83d")), 9_100)
    _of_a_client(conn)
    indexing.index_batch(conn, 40)
    put_hook_state(conn, CLIENTS, injection="keep this", rules=2)
    conn.execute("INSERT INTO binding VALUES ('1:2', 'local', ?, '/t.jsonl', '/project', 9000)", (CLIENTS.session_id,))
    conn.execute("INSERT INTO follower VALUES ('1:2', '3:4', 9000)")
    tokens.add_tokens(conn, [(b"\x01" * 16, Token("laptop", "tenant", 1, None, None))])


def _of_a_client(conn: sqlite3.Connection) -> None:
    """An import: a rewind, the client's own boundary of which a member is missing still, a sub-agent."""
    lines = [
        prepared(record("c1", "user", "please mend it, never touch main.py"), instructions=["never touch main.py"]),
        prepared(record("c2", "assistant", [use("k1", "Grep")], parent="c1", message_id="m1", usage=1234)),
        prepared(record("c3", "user", [answer("k1", "found")], parent="c2"), tools=["WebFetch"]),
        prepared(record("c4", "user", "no, the other way", parent="c1")),
        prepared(record("n1", "system", None, type="system", subtype="compact_boundary", root=True)),
        prepared(record("n2", "user", "the client's summary", parent="n1")),
    ]
    native = NativeBoundary(MessageUuid("n1"), (MessageUuid("n2"),), (MessageUuid("c4"), MessageUuid("late")))
    position = SourcePosition("|/t.jsonl", 4_096, 7, 0, "ab", '{"v": 1}')
    facts = SessionFacts(cwd="/project", owner="client")
    operations.append(conn, CLIENTS, Batch(tuple(lines), facts, (native,), position), 9_200)
    facts = SessionFacts(parent_session_id=CLIENTS.session_id, agent_id="1")
    operations.append(conn, CHILD, Batch((prepared(record("a1", "user", "look for it")),), facts), 9_300)


def _base(conn: sqlite3.Connection) -> Base:
    snapshot = operations.snapshot(conn, KEY, Reach(0, 0, 0))
    assert snapshot is not None
    return snapshot.base


def _compact(conn: sqlite3.Connection, uuids: tuple[str, ...], now: int) -> None:
    snapshot = operations.snapshot(conn, KEY, Reach(100, 2, 300))
    assert snapshot is not None
    memory = MemoryUpdate("# Memory", None, None, "extractor")
    plan = plan_of(snapshot, snapshot.tail, Weight(9, 0, 0, 1), memory=memory)
    assert operations.commit(conn, KEY, plan, Stamp(now, uuids)).marker


def _clear(conn: sqlite3.Connection, now: int) -> None:
    live = operations.clearable(conn, KEY)
    assert live is not None
    items = [Cleared(Clearing(ClearKind.RESULT, at.uuid, at.block), NOTHING) for at in live.results[:2]]
    items += [Cleared(Clearing(ClearKind.MEDIA, at.uuid, at.block, at.part), NOTHING) for at in live.media]
    assert operations.commit(conn, KEY, ClearingPlan(live.base, tuple(items), 0, 0), Stamp(now, ("m1",))).marker


def _snip(conn: sqlite3.Connection, now: int) -> None:
    plan = SnipPlan(_base(conn), (MessageUuid("r15"), MessageUuid("r16")), NOTHING, 0, 0)
    assert operations.commit(conn, KEY, plan, Stamp(now, ("x1",))).marker


# ---------------------------------------------------------------- writing a dump


def dump(full: sqlite3.Connection, version: int) -> Iterator[str]:
    """SQL that makes the archive under a schema; `full` is filled and has that schema or a later one."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as bare:
        for number, script in schema_versions():
            if number <= version:
                bare.executescript(script)
        yield "BEGIN;"
        made = bare.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
        made = [(name, sql) for name, sql in made if not name.startswith(("sqlite_", "fts_"))]
        yield from (f"{sql};" for _, sql in made)
        yield "ANALYZE sqlite_schema;"
        yield from _rows(bare, bare, "sqlite_stat1")
        for name, sql in made:
            if sql.startswith("CREATE TABLE"):
                yield from _rows(full, bare, name)
        yield from _index(full)
    yield f"PRAGMA user_version={version};"
    yield f"PRAGMA application_id={APPLICATION_ID};"
    yield "COMMIT;"


def _rows(source: sqlite3.Connection, shape: sqlite3.Connection, table: str) -> Iterator[str]:
    columns = [row[1] for row in shape.execute(f"PRAGMA table_info({table})")]
    values = ", ".join(f"quote({column})" for column in columns)
    for row in source.execute(f"SELECT {values} FROM {table}"):
        yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(row)});"


def _index(full: sqlite3.Connection) -> Iterator[str]:
    rows = full.execute(
        f"SELECT r.id, {WHOLE} FROM record r JOIN body b ON b.id = r.body_id "
        "WHERE r.id <= (SELECT indexed_record FROM archive) ORDER BY r.id"
    )
    for row in rows.fetchall():
        quoted = full.execute("SELECT quote(?)", (for_index(readable(record_of_row(row[1:]))),)).fetchone()[0]
        yield f"INSERT INTO fts (rowid, text) VALUES ({row[0]}, {quoted});"


def write(version: int) -> Path:
    """Write the dump of a schema."""
    path = FOLDER / f"{version:03}.sql"
    with closing(operations.connect(":memory:")) as full:
        fill(full)
        path.write_text("\n".join(dump(full, version)) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    write(schema_versions()[-1][0])
