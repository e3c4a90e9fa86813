"""Faults that people reported of compaction by a written summary, run through the service with a scripted writer.

The cases are tiny and the product is honest: a summary that is longer than what it stands for is refused. So a
long exchange stands before them, and the policy lets a compaction gain nothing; `SUMFAIL-10`, which is about just
that rule, runs as it stands.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_compact.adapters.hooks import load_hooks
from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.policy import Policy, SessionMemoryCompactConfig
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.config import load_settings
from mcp_compact.ports.hooks import Hooks
from mcp_compact.ports.store import SessionFacts, SessionKey
from mcp_compact.ports.summarizer import TooLong, WriterFailed, Written
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.results import CompactResult
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service
from tests.problems import problems
from tests.service.test_every_transcript import everything, referee

CaseOf = Callable[[str], dict[str, Any]]
KEY = SessionKey("local", "s")
SUMMARY = "## Requests and intent\nWhat was asked for so far is done."
TAIL = SessionMemoryCompactConfig(1, 1, 40_000)
TINY = Policy(sm_compact=False, tail=TAIL, min_gain_percent=-1000)
"""Only a written summary is left as a path, and it need gain nothing."""
HONEST = replace(TINY, min_gain_percent=5)
REAL = Policy(tail=TAIL)
CALL = CompactCall(trigger="manual", force=True, keep_tail=False)


@pytest.fixture(scope="module")
def case_of(shared: Path) -> CaseOf:
    lines = (shared / "cases" / "cases.jsonl").read_text("utf-8").split("\n")
    inputs = {case["id"]: case["input"] for case in map(json.loads, filter(None, lines))}
    expand = referee(shared).expand
    return lambda name: expand(inputs[name])


@dataclass
class Writer:
    """Answers as a case's script says, and keeps what it was asked. Its delays end when the test lets them."""

    script: Any
    limit: int | None = None
    asked: list[SummaryRequest] = field(default_factory=list)
    busy: anyio.Event = field(default_factory=anyio.Event)
    go_on: anyio.Event = field(default_factory=anyio.Event)
    name: str = "scripted"

    async def write(self, request: SummaryRequest) -> Written | TooLong | WriterFailed:
        self.asked.append(request)
        if self.limit is not None and request.material_tokens > self.limit:
            return TooLong(Overrun(request.material_tokens, self.limit))
        match self.script:
            case "echo-summary":
                return self._text(request.material[-500:])
            case list():
                return await self._answer(self.script[min(len(self.asked), len(self.script)) - 1])
            case _:
                return self._text(SUMMARY)

    async def _answer(self, said: Any) -> Written | TooLong | WriterFailed:
        match said:
            case str():
                return self._text(said)
            case {"error": "prompt_too_long"}:
                return TooLong(Overrun())
            case {"error": error}:
                return WriterFailed("unavailable", f"the provider answered {error}")
            case {"delay_s": _, "text": text}:
                self.busy.set()
                await self.go_on.wait()
                return self._text(text)
            case {"content": content}:
                return Written(SummaryAnswer(content, said.get("stop_reason", "end_turn")), self.name)
        raise AssertionError(said)

    def _text(self, text: str) -> Written:
        return Written(SummaryAnswer(text, "end_turn"), self.name)


@asynccontextmanager
async def opened(
    tmp_path: Path, writer: Writer, policy: Policy = TINY, hooks: Hooks | None = None
) -> AsyncIterator[Service]:
    settings = replace(load_settings({}), db=tmp_path / "a.db", hook_entry_points=False, policy=policy)
    async with open_service(replace(settings, summarizers=("provider",))) as service:
        yield replace(service, deps=replace(service.deps, writers={"provider": writer}, hooks=hooks))


async def archive(service: Service) -> list[Any]:
    """What was appended, as it was received."""
    records = await service.deps.store.records(KEY, after_seq=0, up_to_seq=1 << 40, live_only=False)
    own = [r for r in records if r.type in ("user", "assistant") or r.body.startswith(b'{"role":"system"')]
    return [json.loads(record.body) for record in own if not (record.is_summary or record.is_meta)]


LONG = "word " * 600


def padded(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A long exchange before those of a case: what leaves is more than what comes in its place."""
    asked, told = {"role": "user", "content": "Look around."}, {"role": "assistant", "content": LONG}
    if "type" in messages[0]:
        first = {"type": "user", "uuid": "p1", "message": asked}
        return [first, {"type": "assistant", "uuid": "p2", "message": told}, *messages]
    return [asked, told, *messages]


@dataclass(frozen=True)
class Run:
    """A case that was run."""

    case: dict[str, Any]
    sent: list[dict[str, Any]]
    result: CompactResult
    writer: Writer
    view: list[dict[str, Any]]
    archive: list[Any]
    compactions: int

    @property
    def asked(self) -> str:
        return "\n".join(request.text for request in self.writer.asked)


async def run(tmp_path: Path, case: dict[str, Any], call: CompactCall, policy: Policy = TINY) -> Run:
    writer = Writer(case.get("llm"))
    sent = case["messages"] if policy in (HONEST, REAL) else padded(case["messages"])
    async with opened(tmp_path, writer, policy) as service:
        await service.append_messages(sent, "s")
        result = await service.compact("s", call)
        if case.get("append_after"):
            await service.append_messages(case["append_after"], "s")
        view = await everything(service, "s")
        status = await service.status("s")
        return Run(case, sent, result, writer, view, await archive(service), status.compactions)


def blocks_of(view: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for message in view if isinstance(message["content"], list) for block in message["content"]]


def whole(done: Run) -> None:
    """What holds of every case: a valid view, an archive of what was appended, and a bounded number of requests."""
    assert problems(done.view) == []
    assert done.archive == [*done.sent, *done.case.get("append_after", [])]
    assert len(done.writer.asked) <= 4
    assert all(request.max_tokens <= 32_000 for request in done.writer.asked)


WRITTEN = [
    *("PAIR-03", "PAIR-05", "PAIR-06", "PEND-01", "PEND-03", "THINK-05", "SHAPE-01", "SHAPE-03", "PTL-05"),
    *("TOK-01", "MEDIA-01", "SUMQ-01", "HOOK-04"),
]


@pytest.mark.parametrize("name", WRITTEN)
async def test_a_summary_is_written_and_the_context_is_valid(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    done = await run(tmp_path, case, replace(CALL, custom_instructions=case.get("custom_instructions", "")))
    assert (done.result.status, done.result.strategy) == ("compacted", "summary"), done.result.declined
    earlier = "custom_instructions" if case.get("custom_instructions") else "switched_off"
    assert next((item.path, item.reason) for item in done.result.declined) == ("session_memory", earlier)
    assert len(done.writer.asked) == 1
    assert done.view[0]["role"] == "user"
    whole(done)


@pytest.mark.parametrize(
    ("name", "excluded"), [("THINK-05", "QUJDQUJD"), ("MEDIA-01", "iVBORw0K"), ("MEDIA-01", "JVBERi0x")]
)
async def test_no_hidden_thinking_and_no_picture_reaches_the_writer(
    case_of: CaseOf, name: str, excluded: str, tmp_path: Path
) -> None:
    done = await run(tmp_path, case_of(name), CALL)
    assert done.writer.asked
    assert excluded not in done.asked


@pytest.mark.parametrize(("name", "call"), [("PEND-01", "t_open"), ("PEND-03", "t_self")])
async def test_an_open_call_stays_and_its_result_finds_it(
    case_of: CaseOf, name: str, call: str, tmp_path: Path
) -> None:
    case = case_of(name)
    case.setdefault("append_after", [])
    done = await run(tmp_path, case, CALL)
    blocks = blocks_of(done.view)
    assert [block["id"] for block in blocks if block["type"] == "tool_use"] == [call]
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert results == ([call] if case["append_after"] else [])


@pytest.mark.parametrize("name", ["PAIR-06"])
async def test_of_a_call_that_stands_twice_the_finished_result_wins(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    async with opened(tmp_path, Writer(case["llm"])) as service:
        await service.append_messages(case["messages"], "s")
        view = await everything(service, "s")
    assert problems(view) == []
    (result,) = [block for block in blocks_of(view) if block["type"] == "tool_result"]
    assert "done" in json.dumps(result["content"])


@pytest.mark.parametrize("name", ["HOOK-04", "SUMQ-01"])
async def test_what_was_asked_for_reaches_the_writer_and_the_new_context(
    case_of: CaseOf, name: str, tmp_path: Path
) -> None:
    case = case_of(name)
    instructions = case.get("custom_instructions", "")
    # With instructions the written summary comes first even where session memory would be enough.
    policy = replace(TINY, sm_compact=True) if instructions else TINY
    done = await run(tmp_path, case, replace(CALL, custom_instructions=instructions), policy)
    assert done.result.strategy == "summary"
    assert all((instructions or "now fix the login bug") in request.text for request in done.writer.asked)
    if not instructions:
        assert "now fix the login bug" in json.dumps(done.view)


FAILED = [
    ("SUMFAIL-01", "blank"),
    ("SUMFAIL-02", "blank"),
    ("SUMFAIL-03", "thinking_only"),
    ("SUMFAIL-05", "unavailable"),
    ("SUMFAIL-06", "cut_off"),
    ("SUMFAIL-07", "refused"),
]


@pytest.mark.parametrize(("name", "reason"), FAILED, ids=[name for name, _ in FAILED])
async def test_a_summary_that_is_none_writes_nothing_and_its_cause_is_named(
    case_of: CaseOf, name: str, reason: str, tmp_path: Path
) -> None:
    done = await run(tmp_path, case_of(name), CALL)
    assert (done.result.status, done.result.boundary_uuid, done.compactions) == ("failed", "", 0)
    assert reason in [declined.reason for declined in done.result.declined]
    assert [message["role"] for message in done.view] == [message["role"] for message in done.sent]
    assert len(done.writer.asked) >= 1
    whole(done)


@pytest.mark.parametrize("name", ["SUMFAIL-10"])
async def test_a_summary_larger_than_what_it_stands_for_is_thrown_away(
    case_of: CaseOf, name: str, tmp_path: Path
) -> None:
    done = await run(tmp_path, case_of(name), CALL, HONEST)
    assert done.result.status in ("failed", "no_progress", "nothing_to_compact")
    assert done.result.declined
    assert (done.result.boundary_uuid, done.compactions) == ("", 0)
    assert done.writer.asked == []
    whole(done)


@pytest.mark.parametrize("name", ["PAIR-04", "PTL-04"])
async def test_after_a_prompt_that_was_too_long_whole_rounds_leave(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    call = CompactCall(trigger="reactive", error="prompt is too long", force=True)
    done = await run(tmp_path, case, call, REAL)
    sizes = [request.material_tokens for request in done.writer.asked]
    assert sizes == sorted(set(sizes), reverse=True), "each request is smaller than the one before"
    assert (done.result.status, done.result.strategy) == ("compacted", "reactive")
    assert done.result.tokens_after < done.result.tokens_before * 0.9
    whole(done)


@pytest.mark.parametrize("name", ["PTL-04"])
async def test_where_nothing_more_can_leave_the_overrun_and_the_largest_message_are_named(
    case_of: CaseOf, name: str, tmp_path: Path
) -> None:
    case = {"messages": case_of(name)["messages"][:1]}
    call = CompactCall(trigger="reactive", error="prompt is too long: 50000 tokens > 9000 maximum", force=True)
    done = await run(tmp_path, case, call, REAL)
    assert done.result.boundary_uuid == ""
    (declined,) = [declined for declined in done.result.declined if declined.path == "reactive"]
    assert declined.reason == "too_long", done.result.declined
    assert "tokens too many" in declined.detail
    assert "(user, 4" in declined.detail
    whole(done)


@pytest.mark.parametrize("name", ["PTL-01"])
async def test_a_writer_with_a_small_window_still_gets_the_context_under_the_threshold(
    case_of: CaseOf, name: str, tmp_path: Path
) -> None:
    case = case_of(name)
    writer = Writer(case["llm"], limit=case["llm_limit_tokens"])
    policy = Policy(sm_compact=False)
    async with opened(tmp_path, writer, policy) as service:
        await service.append_messages(case["messages"], "s", SessionFacts(context_window=case["context_window"]))
        result = await service.compact("s", CompactCall(trigger="auto"))
        status = await service.status("s")
        view = await everything(service, "s")
    assert len(writer.asked) <= 12
    assert problems(view) == []
    assert result.status == "compacted", result.declined
    assert not status.should_compact


@pytest.mark.parametrize("name", ["LOOP-01"])
async def test_what_cannot_be_reached_is_tried_three_times_at_most(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    writer = Writer(case["llm"])
    facts = SessionFacts(context_window=case["context_window"], overhead_tokens=case["fixed_overhead_tokens"])
    async with opened(tmp_path, writer, Policy()) as service:
        await service.append_messages(case["messages"], "s", facts)
        results = [await service.compact("s", CompactCall(trigger="auto")) for _ in range(5)]
        status = await service.status("s")
    assert len(writer.asked) <= 3
    assert status.breaker_open
    assert [declined.reason for declined in results[-1].declined] == ["breaker_open"]


@pytest.mark.parametrize("name", ["SUMQ-03"])
async def test_the_next_summary_is_written_of_the_one_before(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    writer = Writer(["The secret word that the user told is PLUM-41.", SUMMARY])
    async with opened(tmp_path, writer) as service:
        await service.append_messages(padded(case["messages"]), "s")
        assert (await service.compact("s", CALL)).status == "compacted"
        await service.append_messages(padded(case["append_between"]), "s")
        assert (await service.compact("s", CALL)).status == "compacted"
    assert "PLUM-41" in writer.asked[1].text


@pytest.mark.parametrize("name", ["SUMQ-02"])
async def test_after_thirty_summaries_there_is_one_of_bounded_size(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    writer = Writer(case["llm"])
    refill = "part {} of it is done. " + "word " * case["refill_tokens_each"]
    async with opened(tmp_path, writer) as service:
        await service.append_messages(case["messages"], "s")
        for at in range(30):
            asked = {"role": "user", "content": f"now do part {at}"}
            await service.append_messages([asked, {"role": "assistant", "content": refill.format(at)}], "s")
            result = await service.compact("s", CALL)
            assert result.status == "compacted", result.declined
        view = await everything(service, "s")
        status = await service.status("s")
    assert status.message_tokens <= 20_000
    assert problems(view) == []
    # The summary, and the instruction that is carried beside it.
    wrapper, text = view[0]["content"][:60], json.dumps(view)
    assert (len(view), text.count(wrapper), text.count("name is Zed")) == (2, 1, 1)


@pytest.mark.parametrize("name", ["REINJ-03"])
async def test_an_instruction_stands_once_after_two_compactions(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    rule = f"Always follow {case['attachments']['instructions']} when you write code."
    messages = padded(case["messages"])
    writer = Writer(case["llm"])
    async with opened(tmp_path, writer) as service:
        # The user said it; what is put back after the first compaction must not be summarised by the second.
        await service.append_messages([{"role": "user", "content": rule}, *messages], "s")
        assert (await service.compact("s", CALL)).status == "compacted"
        await service.append_messages(padded(case["append_between"]), "s")
        assert (await service.compact("s", CALL)).status == "compacted"
        assert json.dumps(await everything(service, "s")).count("RULE-77") == 1
    assert writer.asked[1].material.count("RULE-77") <= 1


@pytest.mark.parametrize("name", ["RACE-01"])
async def test_what_is_appended_while_the_writer_writes_follows_the_summary(
    case_of: CaseOf, name: str, tmp_path: Path
) -> None:
    case = case_of(name)
    writer = Writer(case["llm"])
    results: list[CompactResult] = []
    async with opened(tmp_path, writer) as service:
        await service.append_messages(padded(case["messages"]), "s")

        async def compact() -> None:
            results.append(await service.compact("s", CALL))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compact)
            await writer.busy.wait()
            added = await service.append_messages(case["during"], "s")
            writer.go_on.set()
        assert (results[0].status, added.uuids) == ("compacted", ("u3",))
        view = await everything(service, "s")
        assert "5 sent while busy" in json.dumps(view[-1])
        assert "5 sent while busy" not in writer.asked[0].text
        assert [item["uuid"] for item in await archive(service)] == ["p1", "p2", "u1", "a1", "u2", "a2", "u3"]


@pytest.mark.parametrize("name", ["RACE-02"])
async def test_of_two_compactions_at_once_one_is_written(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    writer = Writer(case["llm"])
    statuses: list[str] = []
    async with opened(tmp_path, writer) as service:
        await service.append_messages(padded(case["messages"]), "s")

        async def compact() -> None:
            statuses.append((await service.compact("s", CALL)).status)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(compact)
            tasks.start_soon(compact)
            await writer.busy.wait()
            writer.go_on.set()
        assert statuses.count("compacted") == 1
        assert (await service.status("s")).compactions == 1


@pytest.mark.parametrize("name", ["RACE-03"])
async def test_a_compaction_that_is_cancelled_while_the_writer_writes_leaves_nothing(
    case_of: CaseOf, name: str, tmp_path: Path
) -> None:
    case = case_of(name)
    writer = Writer(case["llm"])
    async with opened(tmp_path, writer) as service:
        await service.append_messages(padded(case["messages"]), "s")
        before = await service.status("s")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.compact, "s", CALL)
            await writer.busy.wait()
            tasks.cancel_scope.cancel()
        after = await service.status("s")
        assert (after.live_hash, after.compactions) == (before.live_hash, 0)
        assert (await service.append_messages([{"role": "assistant", "content": "go on"}], "s")).stored == 1
        writer.go_on.set()
        assert (await service.compact("s", CALL)).status == "compacted"


@pytest.mark.parametrize("name", ["HOOK-01"])
async def test_a_hook_that_hangs_is_ended_and_told_of(case_of: CaseOf, name: str, tmp_path: Path) -> None:
    case = case_of(name)
    file = tmp_path / "hooks.json"
    file.write_text(json.dumps({"pre_compact": ["sleep 600"]}))
    file.chmod(0o600)
    hooks = load_hooks(str(file), entry_points=False, timeout_s=0.3)
    async with opened(tmp_path, Writer(case["llm"]), hooks=hooks) as service:
        await service.append_messages(padded(case["messages"]), "s")
        with anyio.fail_after(60):
            result = await service.compact("s", CALL)
    assert result.status == "compacted"
    assert any("hook" in warning and "0.3" in warning for warning in result.warnings), result.warnings


def test_every_case_of_these_operations_is_run(shared: Path) -> None:
    lines = (shared / "cases" / "cases.jsonl").read_text("utf-8").split("\n")
    begins = ("compact:summary", "compact:reactive", "compact:auto", "append during", "compact x2", "cancel during")
    ours = {case["id"] for case in map(json.loads, filter(None, lines)) if case["op"].startswith(begins)}
    alone = {*("PAIR-04", "PTL-04", "PTL-01", "LOOP-01", "SUMQ-02", "SUMQ-03", "REINJ-03", "SUMFAIL-10", "HOOK-01")}
    assert ours <= {*WRITTEN, *(name for name, _ in FAILED), *alone, "RACE-01", "RACE-02", "RACE-03"}
