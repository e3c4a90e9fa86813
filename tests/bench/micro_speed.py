"""CPU of micro-compaction: in the archive against plain SQL and by length, and the pure plan against other libraries.

    python tests/bench/micro_speed.py [1000 100000]

First part: sessions of so many messages, kept small by clearing. Again and again each gets 60 messages with 30
results, and the older results are cleared; a second archive of the same rows gets the same by the fewest plain
statements that leave the same rows behind (values known beforehand, no checks, nothing planned).
Second part: our plan, LangChain's `ClearToolUsesEdit` and compact-middleware's `microcompact_messages` on the same
10,000 messages (the extra `bench` installs the two; without them that part says so). Ours plans over facts that an
archive holds; `from bare messages` makes a conversation of them first: every text counted, instructions found,
bodies hashed, which the others do not do and an archive does once, when a message arrives.
Medians of alternated repeats of process time; ratios tell, absolute figures depend on the machine.
"""

from __future__ import annotations

import copy
import gc
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.in_memory import clearable_of, conversation
from mcp_compact.compaction.micro import Clearable, MicroMode, MicroRequest, plan_clearing
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.request import Surroundings
from mcp_compact.compaction.weighing import weigh_records
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.live import LiveContext, live_context
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.ports.store import Batch, Prepared, SessionFacts, Stamp
from mcp_compact.testing import Talk, tool_result
from tests.adapters.sqlite.builders import KEY, answer, record, text, use

REPEATS = 31
STEP = 60
POLICY = MicroPolicy()
ALL = MicroRequest(mode=MicroMode.ALL)
BY_TOKENS = MicroRequest(mode=MicroMode.TOKENS, trigger_tokens=100_000)
PLAN_MESSAGES = 10_000
PLAN_REPEATS = 9
LONG_AGO_S = 1_700_000_000


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of one call, from a swept heap on."""
    gc.collect()
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


# ---------------------------------------------------------------- the archive


def dialogue(number: int, start: int) -> list[Record]:
    """Calls and their results in turn, every tenth a prompt and an answer."""
    out: list[Record] = []
    for at in range(start, start + number):
        if at % 20 == 0:
            out.append(record(f"r{at}", "user", f"please do step {at}", at_ms=at))
        elif at % 20 == 19:
            out.append(record(f"r{at}", "assistant", [text(f"step {at} is done")], message_id=f"m{at}", at_ms=at))
        elif at % 2:
            block = use(f"t{at}", file_path=f"/src/file{at % 97}.py", offset=at, limit=40)
            out.append(record(f"r{at}", "assistant", [block], message_id=f"m{at}", at_ms=at))
        else:
            out.append(record(f"r{at}", "user", [answer(f"t{at - 1}", f"line {at} of the file\n" * 20)], at_ms=at))
    return out


def batch_of(records: list[Record]) -> Batch:
    weighed = weigh_records(records, None, ClearedText())
    items = [
        Prepared(item, own.estimate, None, own.results, own.cleared, media=own.media, inputs=own.inputs)
        for item, own in zip(records, weighed, strict=True)
    ]
    return Batch(tuple(items), SessionFacts(model="claude-sonnet-4-5"))


class Pair:
    """Two archives with the same session: one is micro-compacted by us, one by plain statements."""

    def __init__(self, folder: Path, messages: int) -> None:
        self.messages, self.numbers = messages, count(1)
        self.ours = operations.connect(folder / f"ours{messages}.db")
        for start in range(0, messages, 10_000):
            batch = batch_of(dialogue(min(10_000, messages - start), start))
            operations.append(self.ours, KEY, batch, 1)
            self.clear()
        self.raw = operations.connect(folder / f"raw{messages}.db")
        self.ours.backup(self.raw)
        self.times: dict[str, list[float]] = {}

    def step(self) -> None:
        """Both get the same messages, and then the same clearings, each in its way, in turn."""
        number = next(self.numbers)
        batch = batch_of(dialogue(STEP, self.messages + number * STEP * 10))
        for conn in (self.ours, self.raw):
            operations.append(conn, KEY, batch, 1)
        read = milliseconds(lambda: operations.clearable(self.ours, KEY))
        raw_read = milliseconds(lambda: read_plainly(self.raw))
        whole = milliseconds(self.clear)
        raw_whole = milliseconds(lambda: clear_plainly(self.raw, number))
        for name, value in (("read", read), ("plain read", raw_read), ("whole", whole), ("plain whole", raw_whole)):
            self.times.setdefault(name, []).append(value)

    def clear(self) -> None:
        """Read, plan and write, as the service does."""
        live = operations.clearable(self.ours, KEY)
        assert live is not None
        plan = plan_clearing(live, ALL, POLICY)
        committed = operations.commit(self.ours, KEY, plan, Stamp(1, (f"marker{live.base.last_seq}",)))
        assert committed.marker is not None

    def same(self) -> bool:
        """Did both clear the same places?"""
        sql = "SELECT seq, block, units FROM cleared ORDER BY seq, block"
        return self.ours.execute(sql).fetchall() == self.raw.execute(sql).fetchall()

    def median(self, name: str) -> float:
        return statistics.median(self.times[name])


READ = (
    "SELECT t.seq, t.block, t.tool_use_id, t.units, t.media, t.cleared_units, t.is_error, r.uuid, r.at_ms, r.body_hash, "
    "c.name, c.seq, c.block, c.path, c.first_line, c.end_line, c.input_hash, c.input_units, k.uuid, k.has_thinking "
    "FROM result t INDEXED BY result_uncleared JOIN record r ON r.session = t.session AND r.seq = t.seq "
    "JOIN call c ON c.session = t.session AND c.tool_use_id = t.tool_use_id "
    "JOIN record k ON k.session = c.session AND k.seq = c.seq "
    "WHERE t.session = ? AND t.cleared_by IS NULL AND r.active > 0 AND r.snipped_by = 0 ORDER BY t.seq, t.block"
)
NEWEST = (
    "SELECT at_ms, seq FROM record WHERE session = ? AND kind = 1 AND active > 0 AND role = 'assistant' "
    "AND snipped_by = 0 ORDER BY seq DESC LIMIT 1"
)


def read_plainly(conn: sqlite3.Connection) -> tuple[Any, list[Any]]:
    """The session's row, the uncleared results with their calls, media, the newest answer."""
    conn.execute("BEGIN")
    session = conn.execute("SELECT * FROM session WHERE namespace = ? AND session_id = ?", KEY_VALUES).fetchone()
    rows = conn.execute(READ, (session[0],)).fetchall()
    conn.execute("SELECT * FROM media WHERE session = ? AND cleared_by IS NULL", (session[0],)).fetchall()
    conn.execute(NEWEST, (session[0],)).fetchone()
    conn.execute("ROLLBACK")
    return session, rows


KEY_VALUES = (KEY.namespace, KEY.session_id)


def clear_plainly(conn: sqlite3.Connection, number: int) -> None:
    """The rows that a clearing of all but the newest five results writes."""
    session, rows = read_plainly(conn)
    sid = session[0]
    old = rows[: -POLICY.keep_recent]
    conn.execute("BEGIN IMMEDIATE")
    last = conn.execute("SELECT last_seq FROM session WHERE id = ?", (sid,)).fetchone()[0] + 1
    row_id = conn.execute("SELECT last_record FROM archive").fetchone()[0] + 1
    conn.execute("UPDATE archive SET last_record = ?", (row_id,))
    conn.executemany(
        "INSERT INTO cleared VALUES (?, ?, ?, -1, 'result', ?, ?, ?, 0, ?, 0, 1)",
        [(sid, row[0], row[1], last, row[2], row[3] - row[5], row[4]) for row in old],
    )
    conn.executemany(
        "UPDATE result SET cleared_by = ? WHERE session = ? AND seq = ? AND block = ?",
        [(last, sid, row[0], row[1]) for row in old],
    )
    conn.executemany(
        "UPDATE record SET cleared = cleared + 1 WHERE session = ? AND seq = ?", [(sid, row[0]) for row in old]
    )
    conn.execute(
        "INSERT INTO marker VALUES (?, ?, ?, 'microcompact_boundary', 0, NULL, ?, NULL, 0, 0, 0, 0, 0, 0, 0, ?, ?)",
        (sid, last, f"plain{number}", last, b"h" * 16, "{}"),
    )
    conn.execute("INSERT INTO body (id, data) VALUES (?, ?)", (row_id, b"x" * 1500))
    conn.execute(
        "INSERT INTO record (id, session, seq, uuid, parent_seq, is_root, kind, type, subtype, at_ms, units, answers, "
        "media, messages, text_holding, has_thinking, is_meta, is_summary, active, need_seq, body_hash, body_id) "
        "VALUES (?, ?, ?, ?, 0, 0, 2, 'system', 'microcompact_boundary', 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, ?, ?, ?)",
        (row_id, sid, last, f"plain{number}", last, b"h" * 16, row_id),
    )
    freed = sum(row[3] - row[5] for row in old)
    conn.execute(
        "UPDATE session SET last_seq = ?, marker_seq = ?, live_units = live_units - ?, updated_ms = 1 WHERE id = ?",
        (last, last, freed, sid),
    )
    conn.execute("COMMIT")


def archive_part(folder: Path, lengths: list[int]) -> None:
    pairs = [Pair(folder, length) for length in lengths]
    for _ in range(REPEATS):
        for pair in pairs:
            pair.step()
    for pair in pairs:
        assert pair.same(), "the two archives have not cleared the same"
        parts = []
        for name in ("read", "whole"):
            ours, plain = pair.median(name), pair.median(f"plain {name}")
            parts.append(f"{name} {ours:.2f} ms, plain SQL {plain:.2f} ms: {ours / plain:.2f}x")
        print(f"{pair.messages:>9,} messages, {STEP // 2} results: " + "; ".join(parts))
    for name in ("read", "whole"):
        first = pairs[0].median(name)
        ratios = ", ".join(f"{pair.messages:,}: {pair.median(name) / first:.2f}x" for pair in pairs[1:])
        print(f"{name} by length against {lengths[0]:,} messages: {ratios}")


# ---------------------------------------------------------------- the plan


def corpus() -> list[tuple[str, str, str]]:
    """Messages as (role, call id, text): prompts, calls, their results, answers."""
    words = [f"word{at}" for at in range(2000)]
    rng = random.Random(7)
    out = []
    for at in range(PLAN_MESSAGES):
        match at % 4:
            case 0:
                out.append(("user", "", " ".join(rng.choices(words, k=30))))
            case 1:
                out.append(("call", f"t{at}", f"src/module_{at % 97}.py"))
            case 2:
                out.append(("result", f"t{at - 1}", " ".join(rng.choices(words, k=300))))
            case _:
                out.append(("assistant", "", " ".join(rng.choices(words, k=40))))
    return out


def our_context(messages: Iterable[tuple[str, str, str]]) -> LiveContext:
    talk = Talk()
    for role, call, said in messages:
        match role:
            case "user":
                talk.user(said)
            case "call":
                talk.add("assistant", [{"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": said}}])
            case "result":
                talk.add("user", [tool_result(call, said)])
            case _:
                talk.assistant(said)
    return live_context(talk.records, [])


def langchain_messages(messages: Iterable[tuple[str, str, str]]) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    out: list[Any] = []
    for role, call, said in messages:
        match role:
            case "user":
                out.append(HumanMessage(said))
            case "call":
                out.append(AIMessage("", tool_calls=[{"name": "read_file", "args": {"file_path": said}, "id": call}]))
            case "result":
                out.append(ToolMessage(said, tool_call_id=call, name="read_file"))
            case _:
                # compact-middleware acts where the newest answer is an hour old.
                out.append(AIMessage(said, additional_kwargs={"timestamp": LONG_AGO_S}))
    return out


def peers(messages: list[tuple[str, str, str]]) -> dict[str, Callable[[], Callable[[], object]]]:
    """Each other library: a function that makes a fresh copy of the messages and gives what is measured."""
    try:
        from compact_middleware.config import MicrocompactConfig
        from compact_middleware.microcompact import microcompact_messages
        from langchain.agents.middleware.context_editing import ClearToolUsesEdit
        from langchain_core.messages.utils import count_tokens_approximately
    except ImportError as error:
        print(f"other libraries are not measured: {error}; install the extra `bench`")
        return {}
    theirs = langchain_messages(messages)

    def langchain() -> Callable[[], object]:
        fresh, edit = copy.deepcopy(theirs), ClearToolUsesEdit(trigger=100_000, keep=3)

        def run() -> None:
            edit.apply(fresh, count_tokens=count_tokens_approximately)
            assert _cleared(fresh) > PLAN_MESSAGES // 5

        return run

    def middleware() -> Callable[[], object]:
        fresh, config = copy.deepcopy(theirs), MicrocompactConfig()

        def run() -> None:
            out, _ = microcompact_messages(fresh, config)
            assert _cleared(out) > PLAN_MESSAGES // 5

        return run

    return {"LangChain ClearToolUsesEdit": langchain, "compact-middleware": middleware}


def _cleared(messages: Iterable[Any]) -> int:
    """Results whose text is gone (a cheap walk)."""
    return sum(message.type == "tool" and len(message.content) < 100 for message in messages)


def plan_part() -> None:
    messages = corpus()
    context = our_context(messages)
    facts = clearable_of(conversation(context, CLAUDE, Surroundings()))

    def planned(live: Clearable) -> None:
        assert len(plan_clearing(live, BY_TOKENS, POLICY).cleared) > PLAN_MESSAGES // 5

    def anew() -> None:
        planned(clearable_of(conversation(context, CLAUDE, Surroundings())))

    work: dict[str, Callable[[], Callable[[], object]]] = {
        "our plan": lambda: lambda: planned(facts),
        "our plan, from bare messages": lambda: anew,
        **peers(messages),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(PLAN_REPEATS):
        for name, prepare in work.items():
            times[name].append(milliseconds(prepare()))
    ours = statistics.median(times["our plan"])
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"{name:30} {middle:8.2f} ms CPU for {PLAN_MESSAGES:,} messages, {middle / ours:6.1f}x our plan")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive_part(Path(folder), [int(number) for number in sys.argv[1:]] or [1_000, 100_000])
    plan_part()


if __name__ == "__main__":
    main()
