"""Processes that write, compact and read one archive are killed again and again: nothing acknowledged is lost.

For longer: `STORM_SECONDS=120 STORM_SEED=7 python -m pytest tests/faults/test_kill_storm.py`.
"""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from mcp_compact.adapters.sqlite import operations
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.jobs import CompactCall
from mcp_compact.wiring import open_service
from tests.faults.index_check import index_problems
from tests.faults.roles import (
    BY_CLIENT,
    COMPACTOR,
    FIRST,
    READERS,
    ROLES,
    SESSIONS,
    WRITERS,
    everything,
    lines_of,
    settings_of,
    transcript_of,
)
from tests.problems import problems

ROOT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("STORM_SECONDS", "8"))
SEED = int(os.environ.get("STORM_SEED", "1"))
LONGEST = 5
"""A slow machine may take so many times the seconds until the storm has shown anything."""
MARK = re.compile(r"<(w\d-\d+\.\d)>")


class Storm:
    """The roles, and the processes that play them now."""

    def __init__(self, folder: Path, helper: subprocess.Popen[str]) -> None:
        self.folder, self.helper = folder, helper
        self.starts: Counter[str] = Counter()
        self.processes: dict[str, str] = {}
        self.log_sizes: dict[str, int] = {}
        for name in ROLES:
            self.start(name)

    def ask(self, line: str) -> str:
        assert self.helper.stdin is not None
        assert self.helper.stdout is not None
        self.helper.stdin.write(line + "\n")
        self.helper.stdin.flush()
        return self.helper.stdout.readline().strip()

    def start(self, name: str) -> None:
        self.starts[name] += 1
        self.log_sizes[name] = len(self.log(name))
        self.processes[name] = self.ask(f"start {name} {SEED}-{name}-{self.starts[name]}")

    def log(self, name: str) -> bytes:
        path = self.folder / f"{name}.log"
        return path.read_bytes() if path.exists() else b""

    def has_worked(self, name: str) -> bool:
        """Has it done something since it was started? Start and intention are a line each."""
        return self.log(name)[self.log_sizes[name] :].count(b"\n") >= 3

    def go_on(self, seconds: float) -> None:
        """Let all of them run for so long."""
        with suppress(subprocess.TimeoutExpired):
            raise AssertionError(f"the helper ended with {self.helper.wait(seconds)}")

    def kill(self, name: str) -> None:
        """In the middle of whatever it does now; none ever ends by itself."""
        answer = self.ask(f"kill {self.processes[name]}")
        assert answer == "killed", f"{name} {answer}: {(self.folder / f'{name}.err').read_text()[-3000:]}"


def storm(folder: Path) -> int:
    """Kill and restart for the seconds given, and until every role has done something; the number of kills."""
    chance = random.Random(SEED)
    command = [sys.executable, "-m", "tests.faults.storm_child", str(folder)]
    kills = 0
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as helper:
        storm = Storm(folder, helper)
        begin = time.monotonic()
        while (passed := time.monotonic() - begin) < SECONDS or (passed < LONGEST * SECONDS and not shown(folder)):
            storm.go_on(chance.uniform(0.1, 0.4))
            victim = chance.choice(ROLES)
            # Now and then one dies while it opens the archive; all others have done something since their start.
            if chance.random() < 0.05 or storm.has_worked(victim):
                storm.kill(victim)
                storm.start(victim)
                kills += 1
        for name in ROLES:
            storm.kill(name)
    return kills


def shown(folder: Path) -> bool:
    """Has the storm seen compactions, clearings, snips and undos, and acknowledged appends of every writer?"""
    did = {line.get("did") for line in lines_of(folder / f"{COMPACTOR}.log")}
    writers = [any("acknowledged" in line for line in lines_of(folder / f"{name}.log")) for name in WRITERS]
    return {"compacted", "undone", "cleared compacted", "snipped compacted"} <= did and all(writers)


async def begin(folder: Path) -> None:
    """Every session with its first words: the client's own in its transcript."""
    path = transcript_of(folder)
    path.parent.mkdir(parents=True)
    line: dict[str, Any] = {
        "type": "user",
        "uuid": "first",
        "parentUuid": None,
        "sessionId": BY_CLIENT,
        "cwd": str(folder),
    }
    line["message"] = {"role": "user", "content": f"{FIRST} {BY_CLIENT}"}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    async with open_service(settings_of(folder)) as service:
        await service.import_file(path)
        for session in SESSIONS:
            if session != BY_CLIENT:
                await service.append_messages([{"role": "user", "content": f"{FIRST} {session}"}], session)


async def test_a_storm_of_kills_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    await begin(tmp_path)
    kills = storm(tmp_path)
    assert kills >= 5
    assert shown(tmp_path), Counter(line.get("did") for line in lines_of(tmp_path / f"{COMPACTOR}.log"))
    assert [(name, (tmp_path / f"{name}.err").read_text()) for name in ROLES] == [(name, "") for name in ROLES]
    assert not (tmp_path / "hook-notes.jsonl").exists()
    reads = [line for name in READERS for line in lines_of(tmp_path / f"{name}.log") if "problems" in line]
    assert [line for line in reads if line["problems"]] == []
    written = [line for name in WRITERS for line in lines_of(tmp_path / f"{name}.log")]
    check_archive(tmp_path / "a.db", written)
    await check_contexts(tmp_path)
    account = {name: sum("acknowledged" in line for line in lines_of(tmp_path / f"{name}.log")) for name in WRITERS}
    did = Counter(line.get("did", "") for line in lines_of(tmp_path / f"{COMPACTOR}.log"))
    sys.stdout.write(f"{kills} kills; acknowledged {account}; {len(reads)} contexts read; {dict(did)}\n")


def check_archive(path: Path, written: list[dict[str, Any]]) -> None:
    """Structure, totals and bytes are sound; each append is there once and whole, or not at all if unacknowledged."""
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    raw.close()
    conn = operations.connect(path)
    health = operations.check(conn, bodies=True)
    assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
    for session in SESSIONS:
        records = operations.records(
            conn, SessionKey("local", session), after_seq=0, up_to_seq=1 << 40, live_only=False
        )
        # Summaries, and what is restored after them, quote messages and are meta records.
        own = [record for record in records if record.is_message and not (record.is_summary or record.is_meta)]
        assert FIRST in own[0].text
        place: dict[str, tuple[int, str]] = {}
        for record in own[1:]:
            found = MARK.findall(record.body.decode())
            assert len(found) == 1
            assert found[0] not in place, f"{found[0]} is stored twice"
            place[found[0]] = (record.seq, record.uuid)
        check_appends([line for line in written if line.get("session") == session], place)
    assert index_problems(conn) == []
    conn.close()


def check_appends(lines: list[dict[str, Any]], place: dict[str, tuple[int, str]]) -> None:
    """Acknowledged appends are there under the uuids that were answered, each writer's in its order."""
    newest: dict[str, int] = {}
    known: set[str] = set()
    for line in lines:
        if "acknowledged" in line:
            assert [place[mark][1] for mark in line["acknowledged"]] == line["uuids"]
            continue
        marks = line["about_to"]
        known.update(marks)
        stored = [place[mark][0] for mark in marks if mark in place]
        assert len(stored) in (0, len(marks)), f"half of {marks} is stored"
        writer = marks[0].split("-")[0]
        for seq in stored:
            assert seq > newest.get(writer, 0)
            newest[writer] = seq
    assert set(place) <= known


async def check_contexts(folder: Path) -> None:
    """What is left can be read, and goes on: nobody left a lock, and an append and a compaction work."""
    async with open_service(settings_of(folder)) as service:
        # What the client wrote before its hook was killed is still in its transcript.
        await service.import_file(transcript_of(folder))
        again = await service.import_file(transcript_of(folder))
        assert again.stored == 0
        for session in SESSIONS:
            assert problems(await everything(service, session)) == []
            await service.append_messages([{"role": "user", "content": "after the storm"}], session)
            before = await service.status(session)
            done = await service.compact(session, CompactCall(trigger="manual", force=True, target_tokens=1_000))
            messages = await everything(service, session)
            assert problems(messages) == []
            assert "after the storm" in str(messages[-1])
            if done.boundary_uuid:
                assert (await service.undo(session)).live_hash == before.live_hash
