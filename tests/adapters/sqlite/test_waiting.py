"""Waiting for the write lock: as long as the connection says, and the more eagerly the longer it lasted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mcp_compact.adapters.sqlite import waiting
from mcp_compact.adapters.sqlite.waiting import begin_writing


def opened(path: Path, seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=seconds, isolation_level=None)


@pytest.mark.parametrize("seconds", [0.0, 0.05])
def test_a_lock_that_is_not_given_back_is_told_and_the_patience_stays_as_it_was(path: Path, seconds: float):
    with closing(opened(path, 1.0)) as holder, closing(opened(path, seconds)) as conn:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            begin_writing(conn)
        assert conn.execute("PRAGMA busy_timeout").fetchone() == (int(seconds * 1000),)
        assert not conn.in_transaction
        holder.execute("ROLLBACK")
        begin_writing(conn)
        assert conn.in_transaction


def test_who_waits_asks_until_the_lock_is_free(path: Path, monkeypatch: pytest.MonkeyPatch):
    """The holder gives it back at the hundredth try, and takes it again right after."""
    with closing(opened(path, 1.0)) as holder, closing(opened(path, 600.0)) as conn:
        holder.execute("BEGIN IMMEDIATE")
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 100:
                holder.execute("ROLLBACK")

        monkeypatch.setattr("mcp_compact.adapters.sqlite.waiting.time.sleep", sleep)
        begin_writing(conn)
        assert len(slept) == 100
        assert conn.execute("PRAGMA busy_timeout").fetchone() == (600_000,)


def test_the_longer_it_waited_the_sooner_it_asks_again():
    delays = [waiting._delay(99, waited) for waited in (0.01, 0.5, 2.0, 20.0)]
    assert delays == sorted(delays, reverse=True)
    assert delays[-1] < delays[0]
    assert waiting._delay(0, 0.0) < waiting._delay(99, 0.01)


def test_what_is_no_lock_is_not_waited_for(path: Path):
    with closing(opened(path, 600.0)) as conn:
        conn.execute("BEGIN")
        with pytest.raises(sqlite3.OperationalError, match="within a transaction"):
            begin_writing(conn)
