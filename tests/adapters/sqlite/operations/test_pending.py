"""Compactions that wait for their summary: kept across restarts, apart by namespace, used once."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.snapshot import Base
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import Pending, SessionKey
from tests.adapters.sqlite.builders import KEY, batch, record

HOUR = 3_600_000
WAITING = Pending(
    "c1", KEY, '{"trigger": "agent", "custom": "\u4fdd\u7559 it\'s"}', Base(7, 3, "ab" * 16), 1000, 1000 + HOUR
)


@pytest.fixture
def there(conn: sqlite3.Connection) -> sqlite3.Connection:
    operations.append(conn, KEY, batch(record("a", "user", "x")), 1)
    operations.append(conn, SessionKey("tenant", "s"), batch(record("a", "user", "x")), 1)
    return conn


def test_what_waits_is_there_after_a_restart(there, path):
    operations.put_pending(there, WAITING)
    there.close()
    again = operations.connect(path)
    assert operations.pending(again, "local", "c1") == WAITING
    again.close()


def test_another_namespace_sees_and_uses_nothing_of_it(there):
    operations.put_pending(there, WAITING)
    assert operations.pending(there, "tenant", "c1") is None
    assert not operations.use_pending(there, "tenant", "c1", 2000)
    theirs = replace(WAITING, key=SessionKey("tenant", "s"), request="{}")
    operations.put_pending(there, theirs)
    assert operations.pending(there, "tenant", "c1") == theirs
    assert operations.pending(there, "local", "c1") == WAITING


def test_it_works_once_and_says_afterwards_that_it_was_used(there):
    operations.put_pending(there, WAITING)
    assert operations.use_pending(there, "local", "c1", 2000)
    assert not operations.use_pending(there, "local", "c1", 2000)
    assert operations.pending(there, "local", "c1") == replace(WAITING, used=True)


def test_of_many_that_use_it_at_once_one_does(there, path):
    operations.put_pending(there, WAITING)
    done: list[bool] = []

    def use() -> None:
        own = operations.connect(path)
        done.append(operations.use_pending(own, "local", "c1", 2000))
        own.close()

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [False] * 5 + [True]


@pytest.mark.parametrize(("now", "works"), [(1000 + HOUR, True), (1001 + HOUR, False)])
def test_it_works_until_it_expires(there, now, works):
    operations.put_pending(there, WAITING)
    assert operations.use_pending(there, "local", "c1", now) is works


def test_expired_ones_are_forgotten_when_a_new_one_comes(there):
    operations.put_pending(there, WAITING)
    operations.put_pending(there, replace(WAITING, compaction_id="c2", created_ms=1000 + HOUR, expires_ms=9 * HOUR))
    assert operations.pending(there, "local", "c1") == WAITING
    operations.put_pending(there, replace(WAITING, compaction_id="c3", created_ms=1001 + HOUR, expires_ms=9 * HOUR))
    assert operations.pending(there, "local", "c1") is None
    assert operations.pending(there, "local", "c2") is not None


def test_the_same_id_again_replaces_it_but_never_makes_a_used_one_new(there):
    operations.put_pending(there, WAITING)
    other = replace(WAITING, request="{}", base=Base(8, 3, "cd" * 16))
    operations.put_pending(there, other)
    assert operations.pending(there, "local", "c1") == other
    assert operations.use_pending(there, "local", "c1", 2000)
    operations.put_pending(there, WAITING)
    assert operations.pending(there, "local", "c1") == replace(other, used=True)


def test_a_session_that_is_not_there_can_wait_for_nothing(there):
    with pytest.raises(CallerError) as caught:
        operations.put_pending(there, replace(WAITING, key=SessionKey("local", "nowhere")))
    assert caught.value.code == "no_such_session"
    assert operations.pending(there, "local", "c1") is None
