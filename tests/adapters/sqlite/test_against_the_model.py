"""The archive is kept step by step; after every step it equals the pure model over everything stored.

What happens inside of a session stands in `archive_machine`; here is what happens to it as a whole: imports of a file
that grows, pins and memories, processes that are killed, and sessions that are deleted or forgotten. For longer: `MODEL_EXAMPLES=1000`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.operations.forgetting import forget, keys_of_session
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Registered, SessionKey, SourcePosition
from mcp_compact.service import import_batches
from mcp_compact.service.prepare import prepare
from tests.adapters.sqlite.archive_machine import Archive, Spec, specs
from tests.adapters.sqlite.builders import KEY, answer, text, use
from tests.adapters.sqlite.model import Model
from tests.faults.index_check import index_problems

KINDS = ("instruction", "plan", "todos")
EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "25"))


def import_file(conn: sqlite3.Connection, path: Path, now: int) -> list[Record]:
    """Import what a file has that was not read yet, as hooks and the service do; the records that were read."""
    head = import_batches.head_of(path, 1 << 30, format_name="claude-code", session_id=KEY.session_id)
    position = operations.position(conn, KEY.namespace, head.source)
    work = import_batches.work_at(head, path.stem, KEY.session_id, position)
    found: list[Record] = []
    with path.open("rb") as stream:
        stream.seek(work.offset)
        for read in import_batches.batches(work, import_batches.chunks(stream)):
            for item in import_batches.ready(work, KEY.namespace, path.stem, read):
                records = [parsed.record for parsed in item.parsed]
                given = prepare(records, None, with_content_hash=False)
                for key, batch in import_batches.parted(work, item, given, []):
                    work.took(operations.append(conn, key, batch, now))
                found += records
    assert work.conflicts == 0
    return found


class WholeArchive(Archive):
    def __init__(self) -> None:
        super().__init__()
        self.transcript = self.folder / "s.jsonl"
        self.lines: list[str] = []
        """The uuids in the transcript, in order."""
        self.pins: dict[tuple[str, str], str] = {}
        self.memories: list[tuple[str, str | None]] = []
        self.crashes = 0

    def teardown(self) -> None:
        if self.model.archive:
            assert index_problems(self.conn) == []
        super().teardown()

    # ---- transcripts

    @rule(number=st.integers(1, 5), torn=st.booleans(), rewind=st.booleans())
    def a_transcript_grows_and_is_imported(self, number: int, torn: bool, rewind: bool) -> None:
        """Its last line may be half written: it is taken when it is whole. The same again stores nothing."""
        data = b""
        for _ in range(number):
            data += self._line(rewind=rewind)
        end = len(data) - (len(data.splitlines()[-1]) // 2 if torn else 0)
        self._written(data[:end])
        self._written(data[end:])
        known = len(self.model.archive)
        import_file(self.conn, self.transcript, self.now)
        row = operations.session(self.conn, KEY)
        assert row is not None
        assert row.last_seq == known
        position = operations.position(self.conn, KEY.namespace, f"{KEY.session_id}|{self.transcript.resolve()}")
        assert isinstance(position, SourcePosition)
        assert position.offset == self.transcript.stat().st_size

    def _line(self, *, rewind: bool) -> bytes:
        uuid = self._uuid("l")
        parent = (self.lines[len(self.lines) // 2] if rewind else self.lines[-1]) if self.lines else None
        role = ("user", "assistant", "user")[self.made % 3]
        content = (f"line {uuid}, please", [text("here"), use(f"t{uuid}")], [answer(f"t{parent}", "word " * 9)])
        message: dict[str, Any] = {"role": role, "content": content[self.made % 3]}
        if role == "assistant":
            message["id"] = f"m{uuid}"
        line = {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": KEY.session_id, "message": message}
        self.lines.append(uuid)
        return json.dumps(line).encode() + b"\n"

    def _written(self, data: bytes) -> None:
        if not data:
            return
        with self.transcript.open("ab") as stream:
            stream.write(data)
        self.now += 1
        before = operations.session(self.conn, KEY)
        known = set(self.model.uuids)
        for record in import_file(self.conn, self.transcript, self.now):
            if record.uuid not in known:
                [item] = prepare([record], None, with_content_hash=False)
                self.model.add(item)
        after = operations.session(self.conn, KEY)
        if before is None or after is None or before.last_seq != after.last_seq:
            self.before_boundary = None

    # ---- pins and memories

    @precondition(lambda self: self.model.archive)
    @rule(kind=st.sampled_from(KINDS), name=st.sampled_from(["", "a", "b"]), words=st.text(max_size=5))
    def pin(self, kind: str, name: str, words: str) -> None:
        operations.register(self.conn, KEY, Registered(kind, name, words), self.now)
        self.pins[kind, name] = words

    @rule(kind=st.sampled_from(KINDS), name=st.sampled_from(["", "a", "b"]))
    def unpin(self, kind: str, name: str) -> None:
        known = self.pins.pop((kind, name), None) is not None
        assert operations.unregister(self.conn, KEY, kind, name) is known

    @precondition(lambda self: self.model.archive)
    @rule(pick=st.integers(0, 99), marked=st.booleans())
    def write_a_memory(self, pick: int, marked: bool) -> None:
        mark = self.model.uuids[pick % len(self.model.uuids)] if marked else None
        written = operations.write_memory(self.conn, KEY, f"# Memory {pick}", mark, "agent", self.now)
        self.memories.append((written.text, mark))
        assert written.version == len(self.memories)

    @invariant()
    def holds_the_pins_and_memories(self) -> None:
        found = [(item.kind, item.name, item.text) for item in operations.registered(self.conn, KEY)]
        assert found == [(*key, words) for key, words in self.pins.items()]
        for version, (words, mark) in enumerate(self.memories, start=1):
            memory = operations.memory(self.conn, KEY, version)
            assert memory is not None
            assert (memory.text, memory.mark_uuid) == (words, mark)
        assert operations.memory(self.conn, KEY, len(self.memories) + 1) is None

    # ---- deleting and forgetting

    @precondition(lambda self: self.model.archive)
    @rule(chance=st.integers(0, 5), way=st.sampled_from(["delete", "forget"]))
    def the_session_goes(self, chance: int, way: str) -> None:
        """Seldom: what follows begins anew. Its forks stay, with the bodies that they share."""
        if chance:
            return
        number = len(self.model.archive)
        if way == "delete":
            assert operations.delete_session(self.conn, KEY) == number
        else:
            assert keys_of_session(self.conn, KEY) == [KEY]
            assert forget(self.conn, [KEY]) == number
        self.model, self.late, self.old_plans, self.pins, self.memories = Model(), [], [], {}, []
        self.before_boundary = None
        assert operations.session(self.conn, KEY) is None
        assert operations.position(self.conn, KEY.namespace, f"{KEY.session_id}|{self.transcript.resolve()}") is None
        for key in self.forks:
            assert operations.session(self.conn, key) is not None

    @precondition(lambda self: self.forks)
    @rule()
    def forget_a_fork(self) -> None:
        key = self.forks.pop()
        row = operations.session(self.conn, key)
        assert row is not None
        assert forget(self.conn, [key]) == row.last_seq
        assert operations.session(self.conn, key) is None
        assert operations.check(self.conn, bodies=True).wrong_bodies == ()

    # ---- crashes

    @rule(drawn=st.lists(specs, min_size=1, max_size=4), at=st.integers(1, 60))
    def crash_in_an_append(self, drawn: list[Spec], at: int) -> None:
        self._crash_in(partial(self.append, drawn), at)

    @precondition(lambda self: self.model.archive)
    @rule(what=st.sampled_from(["compact", "clear", "snip", "undo", "fork", "pin"]), at=st.integers(1, 60))
    def crash_in_something_else(self, what: str, at: int) -> None:
        if what == "fork" and len(self.forks) > 2:
            return
        doing: dict[str, Callable[[], None]] = {
            "compact": lambda: self.compact(100, 1, 500, True, False),
            "clear": lambda: self.clear(1, "both"),
            "snip": lambda: self.snip(0, 2, False),
            "undo": self.undo,
            "fork": lambda: self.fork(0, True, False),
            "pin": lambda: self.pin("plan", "", "crashed"),
        }
        self._crash_in(doing[what], at)

    def _crash_in(self, work: Callable[[], None], at: int) -> None:
        """Do it; what a kill before one of its statements would have left is what is gone on with.

        That is what was before, or what was acknowledged, and never anything between.
        """
        self.crashes += 1
        before, left = self._kept(), at
        target = self.folder / f"crash-{self.crashes}" / "a.db"
        target.parent.mkdir()

        def count(_: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._copy_to(target)

        self.conn.set_trace_callback(count)
        try:
            work()
        finally:
            self.conn.set_trace_callback(None)
        if left > 0:
            self._copy_to(target)
        self.conn.close()
        self.conn = operations.connect(target)
        row = operations.session(self.conn, KEY)
        is_done = row is not None and row.last_seq == len(self.model.archive)
        if not is_done or not self._holds_all():
            self._restore(before)
        assert operations.check(self.conn, bodies=True).damage == ()

    def _holds_all(self) -> bool:
        """Did what changes no record get as far as its commit?"""
        pins = {(item.kind, item.name): item.text for item in operations.registered(self.conn, KEY)}
        return pins == self.pins and all(operations.session(self.conn, key) for key in self.forks)

    def _copy_to(self, target: Path) -> None:
        source = Path(self.conn.path)
        for suffix in ("", "-wal"):
            path = source.with_name(source.name + suffix)
            if path.exists():
                target.with_name(target.name + suffix).write_bytes(path.read_bytes())

    def _kept(self) -> tuple[Any, ...]:
        model = self.model
        copied = replace(
            model,
            archive=list(model.archive),
            markers=list(model.markers),
            weights=dict(model.weights),
            results=dict(model.results),
            freed=dict(model.freed),
        )
        return copied, list(self.old_plans), list(self.forks), dict(self.pins), self.before_boundary

    def _restore(self, kept: tuple[Any, ...]) -> None:
        self.model, self.old_plans, forks, self.pins, self.before_boundary = kept
        self.forks: list[SessionKey] = forks

    @rule()
    def reopen(self) -> None:
        self.conn.close()
        self.conn = operations.connect(self.conn.path)


TestArchive = WholeArchive.TestCase
TestArchive.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=20, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
