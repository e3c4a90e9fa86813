"""Summaries by the client's own model, over the real server and archive, in both eras of the protocol."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ErrorData,
    ImageContent,
    InputRequiredResult,
    TextContent,
    ToolUseContent,
)

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.config import Settings
from mcp_compact.ports.hooks import HookDetails, HookOutcome
from mcp_compact.ports.summarizer import Summarizer, WriterFailed, Written
from mcp_compact.server.app import CompactServer, build_server, local_place
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.service import Service
from mcp_compact.testing import FixedClock
from mcp_compact.wiring import open_service
from tests.problems import problems
from tests.server.talk import call, context_of, conversation, user
from tests.server.wire import REPO, SERVE

SUMMARY = "## Requests and intent\nThe user wants module 3 looked into; function_3_7 fails on line 12.\n" * 4
ASKED: dict[str, Any] = {
    "session_id": "s",
    "trigger": "manual",
    "target_tokens": 6_000,
    "custom_instructions": "dwell on FOCUS-42",
}
PLAIN = CompactCall(trigger="manual", force=True, target_tokens=6_000)
Reply = CreateMessageResult | CreateMessageResultWithTools | ErrorData


def text(said: str, stop_reason: str = "endTurn", model: str = "small-1") -> CreateMessageResult:
    return CreateMessageResult(
        role="assistant", content=TextContent(type="text", text=said), model=model, stop_reason=stop_reason
    )


class Model:
    """The client's model: gives the replies it is told to, and remembers what it was asked."""

    def __init__(self, *replies: Reply, before: Callable[[], Awaitable[None]] | None = None) -> None:
        self.replies = list(replies)
        self.asked: list[CreateMessageRequestParams] = []
        self._before = before

    async def __call__(self, context: ClientRequestContext, params: CreateMessageRequestParams) -> Reply:  # noqa: ARG002
        self.asked.append(params)
        if self._before is not None:
            await self._before()
        return self.replies.pop(0)

    @property
    def seen(self) -> list[str]:
        """The text of each request."""
        return [block.text for params in self.asked for block in params.messages[0].content_as_list]  # type: ignore[union-attr]


@dataclass
class Hooks:
    """Counts how often they run, and adds a line that must be kept."""

    events: list[str] = field(default_factory=list)

    async def run(self, details: HookDetails) -> HookOutcome:
        self.events.append(details.event)
        if details.event == "pre_compact":
            return HookOutcome(text="KEEP-THIS-LINE", warnings=("a hook said so",))
        return HookOutcome()


@dataclass
class Provider:
    """A provider's model that gives the same each time."""

    gives: Written | WriterFailed
    asked: int = 0
    name: str = "a provider"

    async def write(self, request: object) -> Written | WriterFailed:  # noqa: ARG002 - what a writer is given
        self.asked += 1
        return self.gives


@dataclass
class House:
    """A server over an archive, and what its owner set."""

    folder: Path
    era: str
    summarizers: tuple[str, ...] = ("sampling",)
    clock: FixedClock = field(default_factory=FixedClock)
    hooks: Hooks | None = None
    provider: Summarizer | None = None
    timeout_s: int = 120
    profile: str = "core"
    stateless: bool | None = None
    """None: in this process. Else over HTTP, with or without sessions of the protocol."""
    service: Service | None = None

    @asynccontextmanager
    async def client(self, model: Model | None) -> AsyncIterator[Client]:
        plain = Settings(db=self.folder / "archive.db", hook_entry_points=False)
        settings = replace(
            plain, summarizers=self.summarizers, llm=replace(plain.llm, timeout_s=self.timeout_s, max_tokens=900)
        )

        @asynccontextmanager
        async def opened() -> AsyncIterator[Service]:
            async with open_service(settings) as service:
                writers = {"provider": self.provider} if self.provider else {}
                deps = replace(service.deps, clock=self.clock, hooks=self.hooks, writers=writers)
                self.service = replace(service, deps=deps)
                yield self.service

        server = build_server(settings, profile=self.profile, place=local_place(settings, self.folder), factory=opened)
        async with self.reached(server) as target, Client(target, mode=self.era, sampling_callback=model) as client:
            yield client

    @asynccontextmanager
    async def reached(self, server: CompactServer) -> AsyncIterator[CompactServer | str]:
        """The server in this process, or its address on the loopback interface."""
        if self.stateless is None:
            yield server
            return
        app = server.streamable_http_app(stateless_http=self.stateless)
        running = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(running.serve, [listening])
                yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
                running.should_exit = True

    async def filled(self, client: Client, rounds: int = 14) -> dict[str, Any]:
        """A session that is worth compacting; its status."""
        await call(client, "append_messages", session_id="s", messages=conversation(rounds))
        return await call(client, "get_context_status", session_id="s")


@pytest.fixture
def house(tmp_path: Path, era: str) -> House:
    return House(tmp_path, era)


def reasons(result: dict[str, Any]) -> list[str]:
    return [item["reason"] for item in result["declined"] if item["path"] == "summary"]


async def unchanged(client: Client, before: dict[str, Any]) -> bool:
    after = await call(client, "get_context_status", session_id="s")
    return (after["live_hash"], after["tokens"]) == (before["live_hash"], before["tokens"])


async def test_the_clients_model_writes_the_summary(house: House) -> None:
    model = Model(text(SUMMARY))
    async with house.client(model) as client:
        await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], done["strategy"], done["writer"]) == ("compacted", "summary", "sampling:small-1")
        assert done["tokens_after"] <= 6_000 < done["tokens_before"]
        assert "compaction_id" not in done
        assert "written by sampling:small-1, which does not say what it cost" in done["warnings"]
        messages = await context_of(client, "s")
        assert problems(messages) == []
        assert "function_3_7 fails on line 12" in str(messages)
        assert "never touch config_0.yaml" in str(messages)
    [asked] = model.asked
    assert "FOCUS-42" in model.seen[0]
    assert "function_12_0" in model.seen[0]
    assert asked.system_prompt
    assert asked.max_tokens == 900
    assert asked.tools is None


async def test_it_writes_for_the_smallest_profile_too(house: House) -> None:
    async with house.client(None) as client:
        await house.filled(client)
    house.profile = "agent"
    async with house.client(Model(text(SUMMARY))) as client:
        assert (await call(client, "compact_session", **ASKED))["writer"] == "sampling:small-1"


TOOL = ToolUseContent(type="tool_use", id="x", name="Bash", input={})
PICTURE = ImageContent(type="image", data="aGk=", mime_type="image/png")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (text("   "), "blank"),
        (text(SUMMARY, "refusal"), "refused"),
        (text(SUMMARY, "maxTokens"), "cut_off"),
        (text(SUMMARY, "max_tokens"), "cut_off"),
        (text("API Error: 500 overloaded"), "error_text"),
        (text("word " * 60_000), "too_large"),
        (CreateMessageResult(role="assistant", content=PICTURE, model="m"), "blank"),
        (text("I'm sorry, but I can't summarize this conversation."), "refused"),
        (text("<tool_use>\n<name>Read</name>\n<input>src/parser.py</input>\n</tool_use>"), "tool_call"),
    ],
)
async def test_a_bad_answer_is_refused_and_nothing_is_written(house: House, reply: Reply, reason: str) -> None:
    async with house.client(Model(reply)) as client:
        before = await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert done["status"] == "failed"
        assert reasons(done) == [reason]
        assert "sampling" in done["declined"][-1]["detail"]
        assert await unchanged(client, before)


async def test_the_next_writer_follows_a_bad_answer_and_both_reasons_are_told(house: House) -> None:
    house.summarizers = ("provider", "sampling", "agent")
    house.provider = Provider(WriterFailed("quota", "nothing left"))
    async with house.client(Model(text(""))) as client:
        before = await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert done["status"] == "summary_required"
        assert reasons(done) == ["quota", "blank"]
        assert house.provider.asked == 1
        assert await unchanged(client, before)
        end = await call(client, "submit_summary", compaction_id=done["compaction_id"], summary=SUMMARY)
        assert (end["status"], end["writer"]) == ("compacted", "agent")


async def test_a_provider_after_it_writes_where_the_answer_is_cut_off(house: House) -> None:
    house.summarizers = ("sampling", "provider")
    house.provider = Provider(Written(SummaryAnswer(SUMMARY, "end_turn"), "a provider's model"))
    async with house.client(Model(text(SUMMARY, "maxTokens"))) as client:
        await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], done["writer"], reasons(done)) == ("compacted", "a provider's model", ["cut_off"])


async def test_a_client_without_sampling_is_not_asked_and_gets_no_error(house: House) -> None:
    house.summarizers = ("sampling", "agent")
    async with house.client(None) as client:
        await house.filled(client)
        assert (await call(client, "compact_session", **ASKED))["status"] == "summary_required"


async def test_where_sampling_stands_alone_a_client_without_it_has_its_instructions_kept(house: House) -> None:
    async with house.client(None) as client:
        await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], done["strategy"]) == ("compacted", "session_memory")
        assert "FOCUS-42" in str(await context_of(client, "s"))


async def test_a_client_that_could_be_asked_is_not_unless_the_settings_say_so(house: House) -> None:
    house.summarizers = ("agent",)
    model = Model()
    async with house.client(model) as client:
        await house.filled(client)
        assert (await call(client, "compact_session", **ASKED))["status"] == "summary_required"
    assert model.asked == []


async def test_nobody_is_asked_where_no_summary_is_needed_or_only_a_plan_is_wanted(house: House) -> None:
    model = Model()
    async with house.client(model) as client:
        await house.filled(client)
        planned = await call(client, "compact_session", **ASKED, dry_run=True)
        assert (planned["status"], reasons(planned)) == ("dry_run", ["summary_required"])
        without = {name: value for name, value in ASKED.items() if name != "custom_instructions"}
        assert (await call(client, "compact_session", **without))["strategy"] == "session_memory"
    assert model.asked == []


async def test_hooks_run_once_and_their_lines_and_warnings_arrive(house: House) -> None:
    house.hooks = Hooks()
    model = Model(text(SUMMARY))
    async with house.client(model) as client:
        await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert done["status"] == "compacted"
        assert "a hook said so" in done["warnings"]
        assert "KEEP-THIS-LINE" in str(await context_of(client, "s"))
    assert house.hooks.events == ["pre_compact", "session_start", "post_compact"]
    assert "KEEP-THIS-LINE" in model.seen[0]


async def test_what_is_appended_while_it_writes_follows_the_summary(house: House) -> None:
    async def meanwhile() -> None:
        assert house.service
        await house.service.append_messages([user("said meanwhile")], "s")

    async with house.client(Model(text(SUMMARY), before=meanwhile)) as client:
        await house.filled(client)
        assert (await call(client, "compact_session", **ASKED))["status"] == "compacted"
        assert "said meanwhile" in str((await context_of(client, "s"))[-1])


async def test_a_compaction_that_came_between_makes_the_answer_void_and_is_said(house: House) -> None:
    async def meanwhile() -> None:
        assert house.service
        other = await house.service.compact("s", PLAIN)
        assert other.status == "compacted"

    async with house.client(Model(text(SUMMARY), before=meanwhile)) as client:
        await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], done["declined"][-1]["reason"]) == ("failed", "base_changed")
        assert SUMMARY[:60] not in str(await context_of(client, "s"))


async def test_a_call_of_a_tool_is_no_summary(house: House) -> None:
    reply = CreateMessageResultWithTools(role="assistant", content=[TOOL], model="m", stop_reason="toolUse")
    async with house.client(Model(reply)) as client:
        before = await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], len(reasons(done))) == ("failed", 1)
        assert reasons(done)[0] == "tool_call"
        assert await unchanged(client, before)


@pytest.mark.parametrize("stateless", [False, True])
async def test_over_http_it_writes_wherever_it_can_be_reached(house: House, *, stateless: bool) -> None:
    house.summarizers, house.stateless = ("sampling", "agent"), stateless
    async with house.client(Model(text(SUMMARY))) as client:
        await house.filled(client)
        done = await call(client, "compact_session", **ASKED)
    # Without sessions a client of the older era cannot be asked anything, and is not.
    reachable = house.era == "auto" or not stateless
    assert (done["status"], reasons(done)) == (("compacted" if reachable else "summary_required"), [])


async def test_of_a_session_beyond_its_window_the_oldest_messages_are_not_sent(house: House) -> None:
    model = Model(text(SUMMARY))
    async with house.client(model) as client:
        await call(client, "append_messages", session_id="s", messages=conversation(14), context_window=10_000)
        assert (await call(client, "compact_session", **ASKED))["status"] == "compacted"
    [seen] = model.seen
    assert "The oldest" in seen
    assert "module 0;" not in seen
    assert "FOCUS-42" in seen


async def test_an_attempt_that_came_to_nothing_is_not_made_again_unless_forced(house: House) -> None:
    model = Model(text(""), text(SUMMARY))
    async with house.client(model) as client:
        await house.filled(client)
        assert (await call(client, "compact_session", **ASKED))["status"] == "failed"
        again = await call(client, "compact_session", **ASKED)
        assert [item["reason"] for item in again["declined"]] == ["same_attempt"]
        assert len(model.asked) == 1
        assert (await call(client, "compact_session", **ASKED, force=True))["status"] == "compacted"


async def test_three_automatic_compactions_that_a_bad_answer_spoiled_open_the_breaker(house: House) -> None:
    asked = {**ASKED, "trigger": "auto"}
    async with house.client(Model(text(""))) as client:
        full = {"session_id": "s", "context_window": 20_000, "overhead_tokens": 15_000}
        await call(client, "append_messages", messages=conversation(14), **full)
        done = [await call(client, "compact_session", **asked) for _ in range(4)]
    reasons = [result["declined"][-1]["reason"] for result in done]
    assert reasons == ["blank", "same_attempt", "same_attempt", "breaker_open"]


# ---- the era in which the server asks while the call waits


@pytest.fixture
def handshake(tmp_path: Path) -> House:
    return House(tmp_path, "legacy", summarizers=("sampling", "agent"))


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ErrorData(code=-1, message="User rejected sampling request"), "refused"),
        (ErrorData(code=-32603, message="no model is loaded"), "unavailable"),
    ],
)
async def test_where_the_client_answers_with_an_error_the_next_writer_follows(
    handshake: House, reply: ErrorData, reason: str
) -> None:
    async with handshake.client(Model(reply)) as client:
        before = await handshake.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], reasons(done)) == ("summary_required", [reason])
        assert reply.message in done["declined"][-1]["detail"]
        assert await unchanged(client, before)


async def test_where_the_clients_own_code_breaks_the_next_writer_follows(handshake: House) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    async with handshake.client(Model(before=broken)) as client:
        await handshake.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], reasons(done)) == ("summary_required", ["unavailable"])


async def test_a_slow_client_is_given_up_after_the_limit_and_told_so(handshake: House) -> None:
    told = anyio.Event()

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            told.set()

    handshake.timeout_s = 1
    async with handshake.client(Model(before=slow)) as client:
        await handshake.filled(client)
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], reasons(done)) == ("summary_required", ["timeout"])
        with anyio.fail_after(30):
            await told.wait()


async def test_a_client_that_says_too_long_is_asked_again_with_less(handshake: House) -> None:
    model = Model(ErrorData(code=-32603, message="prompt is too long: 30000 tokens > 20000 maximum"), text(SUMMARY))
    async with handshake.client(model) as client:
        await handshake.filled(client)
        assert (await call(client, "compact_session", **ASKED))["status"] == "compacted"
    assert len(model.seen[1]) < len(model.seen[0])
    assert "FOCUS-42" in model.seen[1]


async def test_a_call_that_the_client_takes_back_writes_nothing(handshake: House) -> None:
    busy, stopped = anyio.Event(), anyio.Event()

    async def slow() -> None:
        busy.set()
        try:
            await anyio.sleep_forever()
        finally:
            stopped.set()

    model = Model(before=slow)
    async with handshake.client(model) as client:
        before = await handshake.filled(client)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "compact_session", ASKED)
            await busy.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(30):
            await stopped.wait()
        assert await unchanged(client, before)
        model._before = None
        model.replies = [text(SUMMARY)]
        assert (await call(client, "compact_session", **ASKED))["writer"] == "sampling:small-1"


# ---- the era in which the call ends with the question


@pytest.fixture
def rounds(tmp_path: Path) -> House:
    return House(tmp_path, "2026-07-28", summarizers=("sampling", "agent"))


async def question(client: Client) -> InputRequiredResult:
    asked = await client.session.call_tool("compact_session", ASKED, allow_input_required=True)
    assert isinstance(asked, InputRequiredResult)
    return asked


async def answered(client: Client, asked: InputRequiredResult, reply: CreateMessageResult) -> dict[str, Any]:
    return await call_again(client, asked.request_state, dict.fromkeys(asked.input_requests or {}, reply))


async def call_again(client: Client, state: str | None, responses: Any) -> dict[str, Any]:
    result = await client.session.call_tool(
        "compact_session", ASKED, input_responses=responses, request_state=state, allow_input_required=True
    )
    assert not isinstance(result, InputRequiredResult)
    assert not result.is_error, result.content
    assert result.structured_content
    return result.structured_content


async def test_the_call_that_is_made_again_is_answered_once(rounds: House) -> None:
    async with rounds.client(Model()) as client:
        before = await rounds.filled(client)
        asked = await question(client)
        assert await unchanged(client, before)
        assert (await answered(client, asked, text(SUMMARY)))["writer"] == "sampling:small-1"
        again = await client.session.call_tool(
            "compact_session", ASKED, input_responses={"summary": text(SUMMARY)}, request_state=asked.request_state
        )
        assert again.is_error
        assert "compaction_used" in str(again.content)


async def test_asked_twice_the_client_gets_the_same_question(rounds: House) -> None:
    async with rounds.client(Model()) as client:
        await rounds.filled(client)
        first, second = await question(client), await question(client)
        assert first.input_requests == second.input_requests
        assert first.request_state != second.request_state


async def test_an_answer_after_the_limit_does_not_count(rounds: House) -> None:
    async with rounds.client(Model()) as client:
        before = await rounds.filled(client)
        asked = await question(client)
        rounds.clock.at_ms += 121_000
        done = await answered(client, asked, text(SUMMARY))
        assert (done["status"], reasons(done)) == ("summary_required", ["timeout"])
        assert await unchanged(client, before)


@pytest.mark.parametrize(
    ("responses", "reason"),
    [
        (None, "no_answer"),
        ({"other": text(SUMMARY)}, "no_answer"),
        ({"summary": ElicitResult(action="decline")}, "bad_answer"),
    ],
)
async def test_a_call_that_is_made_again_without_the_answer_goes_to_the_next_writer(
    rounds: House, responses: Any, reason: str
) -> None:
    async with rounds.client(Model()) as client:
        await rounds.filled(client)
        done = await call_again(client, (await question(client)).request_state, responses)
        assert (done["status"], reasons(done)) == ("summary_required", [reason])


async def test_where_the_client_gives_up_nothing_is_written_and_the_next_call_is_a_new_one(rounds: House) -> None:
    model = Model(ErrorData(code=-1, message="User rejected sampling request"), text(SUMMARY))
    async with rounds.client(model) as client:
        before = await rounds.filled(client)
        with pytest.raises(MCPError, match="rejected"):
            await client.call_tool("compact_session", ASKED)
        assert await unchanged(client, before)
        assert (await call(client, "compact_session", **ASKED))["writer"] == "sampling:small-1"


async def test_a_memory_that_came_meanwhile_does_not_void_the_answer(rounds: House) -> None:
    rounds.summarizers = ("sampling",)
    async with rounds.client(Model()) as client:
        await rounds.filled(client)
        asked = await question(client)
        await call(client, "update_session_memory", session_id="s", content="# Notes\nEverything is done.")
        assert (await answered(client, asked, text(SUMMARY)))["status"] == "compacted"


async def test_the_answer_of_another_call_is_not_taken(rounds: House) -> None:
    async with rounds.client(Model()) as client:
        await rounds.filled(client)
        asked = await question(client)
        other = {**ASKED, "target_tokens": 7_000}
        with pytest.raises(MCPError):
            await client.session.call_tool(
                "compact_session", other, input_responses={"summary": text(SUMMARY)}, request_state=asked.request_state
            )


@pytest.mark.process
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_a_real_process_too(tmp_path: Path, mode: str) -> None:
    ours = {"MCP_COMPACT_DB": str(tmp_path / "archive.db"), "MCP_COMPACT_SUMMARIZERS": "sampling"}
    env = {**os.environ, "PYTHONPATH": str(REPO), **ours}
    command = StdioServerParameters(command=sys.executable, args=["-c", SERVE], cwd=tmp_path, env=env)
    model = Model(text(SUMMARY))
    async with Client(command, mode=mode, sampling_callback=model) as client:
        await call(client, "append_messages", session_id="s", messages=conversation(14))
        done = await call(client, "compact_session", **ASKED)
        assert (done["status"], done["writer"]) == ("compacted", "sampling:small-1")
        assert problems(await context_of(client, "s")) == []
    assert "FOCUS-42" in model.seen[0]
