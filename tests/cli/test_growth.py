"""`stats`, `retention` and `vacuum`: what the archive holds, what goes by age, what goes back to the disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_compact import ancestors
from mcp_compact.adapters.sqlite import hook_rows, operations
from mcp_compact.adapters.sqlite.operations.growth import past, session_sizes, sizes
from mcp_compact.cli.main import main
from mcp_compact.ports.store import SessionKey
from tests.adapters.sqlite.builders import batch, record

DAY_MS = 24 * 3600 * 1000
OLD_MS = 1_600_000_000_000
NOW_MS = int(time.time() * 1000)
SECRET = "correcthorsebattery"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive with an old session, its sub-agent, an old one that was imported today, and one of today."""
    path = tmp_path / "archive.db"
    monkeypatch.setenv("MCP_COMPACT_DB", str(path))
    conn = operations.connect(path)
    for name, at_ms, stored_ms, parent in (
        ("old", OLD_MS, OLD_MS, None),
        ("old/agent", OLD_MS, OLD_MS, "old"),
        ("imported", OLD_MS, NOW_MS, None),
        ("new", NOW_MS, NOW_MS, None),
        ("new/agent", OLD_MS, OLD_MS, "new"),
    ):
        items = [record(f"{name}{at}", "user", f"{SECRET} {name} " + "words " * 200, at_ms=at_ms) for at in range(50)]
        operations.append(conn, SessionKey("local", name), batch(*items, parent_session_id=parent), stored_ms)
    operations.search(conn, "local", operations_query("words"))
    conn.close()
    return path


def operations_query(text: str) -> Any:
    from mcp_compact.ports.search import SearchQuery

    return SearchQuery(text)


def names(path: Path) -> set[str]:
    conn = operations.connect(path)
    found = {item.session_id for item in session_sizes(conn)}
    conn.close()
    return found


def test_stats_tell_what_the_file_holds_and_which_sessions_hold_most(db, capsys):
    assert main(["stats", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sessions"] == 5
    assert told["messages"] == 250
    parts = told["bytes"]
    assert parts["file"] == db.stat().st_size or parts["wal"]
    assert sum(parts[name] for name in ("text", "index", "memory", "rest", "free")) == parts["file"]
    assert parts["text"] > 250 * 1200
    assert parts["index"] > 0
    assert [month["sessions"] for month in told["months"]] == [4, 1]
    assert main(["stats", "--limit", "2"]) == 0
    shown = capsys.readouterr().out
    assert "in 5 sessions, 250 messages" in shown
    assert "3 more" in shown
    assert "2020-09" in shown


def test_retention_is_off_unless_it_is_set(db, capsys):
    assert main(["retention", "--yes"]) == 2
    assert "MCP_COMPACT_RETENTION_DAYS" in capsys.readouterr().err
    assert len(names(db)) == 5


def test_retention_shows_what_would_go_and_asks_before_it_does(db, capsys, monkeypatch):
    monkeypatch.setenv("MCP_COMPACT_RETENTION_DAYS", "30")
    assert main(["retention", "--dry-run", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (set(told["would_forget"]), told["in_use"], told["records"]) == ({"old", "old/agent"}, ["new/agent"], 0)
    assert main(["retention"]) == 2
    assert "old/agent" in capsys.readouterr().out
    assert len(names(db)) == 5
    assert main(["retention", "--yes"]) == 0
    assert names(db) == {"imported", "new", "new/agent"}
    assert b"old words" not in db.read_bytes()
    assert main(["retention", "--yes"]) == 0
    assert "nothing goes" in capsys.readouterr().out


def test_a_session_that_a_client_is_at_stays_with_its_family(db):
    conn = operations.connect(db)
    hook_rows.bind(conn, ancestors.own(), ("local", "old/agent"), ("", ""), NOW_MS)
    going, used = past(conn, "local", NOW_MS - DAY_MS, ancestors.is_alive)
    assert (going, {item.session_id for item in used}) == ([], {"old", "old/agent", "new/agent"})
    going, _ = past(conn, "local", NOW_MS - DAY_MS, lambda _: False)
    assert {item.session_id for item in going} == {"old", "old/agent"}
    conn.close()


def test_vacuum_gives_back_what_was_removed_and_says_how_much(db, capsys):
    assert main(["forget", "old", "--yes"]) == 0
    capsys.readouterr()
    before = db.stat().st_size
    assert main(["vacuum", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rewritten"]
    assert (told["before"], told["after"]) == (before, db.stat().st_size)
    assert told["freed"] == before - db.stat().st_size > 50_000
    conn = operations.connect(db)
    assert sizes(conn).free == 0
    assert operations.check(conn).damage == ()
    assert len(operations.search(conn, "local", operations_query("words")).hits) == 20
    conn.close()
    assert main(["vacuum"]) == 0
    assert "no page of the file is free" in capsys.readouterr().out


@pytest.mark.process
def test_vacuum_leaves_a_large_file_that_others_have_open_as_it_is(db, capsys, monkeypatch, holder: Callable[..., Any]):
    assert main(["forget", "old", "--yes"]) == 0
    capsys.readouterr()
    monkeypatch.setattr("mcp_compact.cli.vacuum.QUICK_BYTES", 1)
    before = db.stat().st_size
    with holder(db):
        assert main(["vacuum"]) == 0
        assert "close them" in capsys.readouterr().out
        assert db.stat().st_size == before
        assert main(["vacuum", "--anyway"]) == 0
        assert "given back" in capsys.readouterr().out
    assert db.stat().st_size < before


@pytest.fixture
def holder() -> Callable[..., Any]:
    """A process that has the archive open, as a server has."""
    import subprocess
    import sys
    from contextlib import contextmanager

    code = (
        "import sys; from mcp_compact.adapters.sqlite import operations; "
        "conn = operations.connect(sys.argv[1]); conn.execute('SELECT 1 FROM session').fetchall(); "
        "print('open', flush=True); sys.stdin.read(); conn.close()"
    )

    @contextmanager
    def held(path: Path) -> Any:
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        try:
            yield
        finally:
            child.communicate("")
            assert child.returncode == 0

    return held
