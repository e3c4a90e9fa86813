"""A loop on the Responses API, on Gemini or on the chat API appends its items as they are, call by call."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import canonical
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.deps import session_key
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.service import Service
from mcp_compact.transcripts.loop_items import form_of
from mcp_compact.transcripts.validity.providers import findings
from mcp_compact.transcripts.validity.rules import refused
from tests.service.test_summaries import opened

Json = dict[str, Any]
PROVIDERS = {"responses": "openai-responses", "gemini": "gemini", "openai": "openai-chat", "anthropic": "anthropic"}


def responses_round(n: int) -> list[Json]:
    """A request, reasoning, two calls made together, their outputs, an answer."""
    calls = [
        {"type": "function_call", "id": f"fc_{n}_{k}", "call_id": f"call_{n}_{k}", "name": "look",
         "arguments": json.dumps({"path": f"src/{n}/{k}.py"}), "status": "completed"} for k in (1, 2)
    ]  # fmt: skip
    outputs = [
        {"type": "function_call_output", "call_id": call["call_id"], "output": f"{n} lines\n" * 60} for call in calls
    ]
    said = [{"type": "output_text", "text": f"Part {n} is done.", "annotations": []}]
    return [
        {"role": "user", "content": f"Look into part {n}; never touch config_{n}.yaml."},
        {"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "AAAA"},
        *calls,
        *outputs,
        {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed", "content": said},
    ]


def gemini_round(n: int) -> list[Json]:
    """Calls of one name without ids, answered in their order."""
    return [
        {"role": "user", "parts": [{"text": f"Look into part {n}; never touch config_{n}.yaml."}]},
        {"role": "model", "parts": [
            {"functionCall": {"name": "look", "args": {"path": f"src/{n}/{k}.py"}}, "thoughtSignature": "AAAA"}
            for k in (1, 2)]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "look", "response": {"output": f"{n}.{k} lines\n" * 60}}} for k in (1, 2)]},
        {"role": "model", "parts": [{"text": f"Part {n} is done."}]},
    ]  # fmt: skip


def chat_round(n: int) -> list[Json]:
    calls = [
        {"id": f"call_{n}_{k}", "type": "function", "function": {"name": "look", "arguments": "{}"}} for k in (1, 2)
    ]
    return [
        {"role": "user", "content": f"Look into part {n}; never touch config_{n}.yaml."},
        {"role": "assistant", "content": None, "tool_calls": calls},
        *({"role": "tool", "tool_call_id": call["id"], "content": f"{n} lines\n" * 60} for call in calls),
        {"role": "assistant", "content": f"Part {n} is done."},
    ]


def anthropic_round(n: int) -> list[Json]:
    calls = [{"type": "tool_use", "id": f"call_{n}_{k}", "name": "look", "input": {}} for k in (1, 2)]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": f"{n} lines\n" * 60} for call in calls]
    return [
        {"role": "user", "content": f"Look into part {n}; never touch config_{n}.yaml."},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
        {"role": "assistant", "content": [{"type": "text", "text": f"Part {n} is done."}]},
    ]


ROUNDS: dict[str, Callable[[int], list[Json]]] = {
    "responses": responses_round, "gemini": gemini_round, "openai": chat_round, "anthropic": anthropic_round,
}  # fmt: skip


async def given_out(service: Service, name: str, session: str = "s") -> list[Json]:
    messages: list[Any] = []
    cursor = ""
    while not messages or cursor:
        page = await service.messages(session, format_name=name, cursor=cursor)
        messages += page.messages
        cursor = page.next_cursor
    return messages


async def pairs(service: Service, session: str = "s") -> list[tuple[str, str]]:
    """Input of each call, and the first word of its result, as an Anthropic agent would read them."""
    blocks = [
        block for message in await given_out(service, "anthropic", session)
        if isinstance(message["content"], list) for block in message["content"]
    ]  # fmt: skip
    results = {b["tool_use_id"]: b["content"] for b in blocks if b["type"] == "tool_result"}
    return [(b["input"].get("path", ""), str(results.get(b["id"]))) for b in blocks if b["type"] == "tool_use"]


@pytest.mark.parametrize("name", tuple(ROUNDS))
async def test_items_appended_one_at_a_time_pair_and_go_out_as_they_came(tmp_path: Path, name: str) -> None:
    items = [item for n in range(3) for item in ROUNDS[name](n)]
    async with opened(tmp_path) as service:
        for item in items:
            done = await service.append_messages([item], "s")
            assert done.stored == 1
            assert not [text for text in done.warnings if "not understood" in text or "no content" in text]
        found = await pairs(service)
        assert len(found) == 6
        assert all("lines" in result and "interrupted" not in result for _, result in found)
        if name == "gemini":
            assert [result[:3] for _, result in found] == ["0.1", "0.2", "1.1", "1.2", "2.1", "2.2"]
        out = await given_out(service, name)
        assert not findings_of(name, out)
        assert out == items
        raw = await service.deps.store.records((await key_of(service)), after_seq=0, up_to_seq=99, live_only=False)
        assert [record.body for record in raw] == [canonical(item) for item in items]


def findings_of(name: str, messages: list[Json]) -> list[Any]:
    return refused(findings(PROVIDERS[name], messages))


async def key_of(service: Service) -> SessionKey:
    return session_key(service.namespace, "s")


@pytest.mark.parametrize("name", tuple(ROUNDS))
async def test_a_list_sent_whole_each_turn_brings_only_what_is_new(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as service:
        whole: list[Json] = []
        for n in range(4):
            whole += ROUNDS[name](n)
            done = await service.append_messages(whole, "s")
            assert done.stored == len(ROUNDS[name](n)), done.warnings


@pytest.mark.parametrize("name", tuple(ROUNDS))
async def test_after_a_compaction_the_list_that_was_given_out_is_recognised(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as service:
        for n in range(12):
            await service.append_messages(ROUNDS[name](n), "s")
        done = await service.compact(
            "s", CompactCall(trigger="manual", target_tokens=1_500, force=True, keep_tail=True)
        )
        assert done.status == "compacted", done
        out = await given_out(service, name)
        assert not findings_of(name, out)
        again = await service.append_messages([*out, *ROUNDS[name](12)], "s")
        assert again.stored == len(ROUNDS[name](12)), again.warnings
        more = await given_out(service, name)
        assert not findings_of(name, more)
        found = [result for _, result in await pairs(service)]
        assert found
        assert all("lines" in result or "cleared" in result for result in found)


async def test_an_unanswered_call_of_gemini_does_not_take_a_later_ones_response(tmp_path: Path) -> None:
    first, calls, *_ = gemini_round(1)
    async with opened(tmp_path) as service:
        await service.append_messages([first, calls], "s")
        await service.append_messages([{"role": "user", "parts": [{"text": "Stop. Another one."}]}], "s")
        await service.append_messages([gemini_round(2)[1]], "s")
        await service.append_messages([gemini_round(2)[2]], "s")
        found = await pairs(service)
    assert [(path, result[:3]) for path, result in found[2:]] == [("src/2/1.py", "2.1"), ("src/2/2.py", "2.2")]
    assert all("interrupted" in result for _, result in found[:2])


MIXED = [
    (responses_round(1)[2], gemini_round(1)[0], "Gemini"),
    (responses_round(1)[2], chat_round(1)[1], "chat API"),
    (responses_round(1)[2], anthropic_round(1)[1], "message of Anthropic"),
    (gemini_round(1)[0], {"role": "user", "content": "plain"}, "Gemini"),
    (responses_round(1)[2], {"type": "user", "message": {"role": "user", "content": "x"}}, "transcript record"),
]


@pytest.mark.parametrize(("one", "other", "said"), MIXED, ids=[said for *_, said in MIXED])
async def test_a_list_of_several_apis_is_refused_and_stores_nothing(
    tmp_path: Path, one: Json, other: Json, said: str
) -> None:
    async with opened(tmp_path) as service:
        for items in ([one, other], [other, one]):
            with pytest.raises(CallerError, match=said) as caught:
                await service.append_messages(items, "s")
            assert caught.value.code == "mixed_messages"
        with pytest.raises(CallerError, match="session"):
            await service.messages("s")


class Part(BaseModel):
    text: str | None = None
    function_call: dict[str, Any] | None = None


class Content(BaseModel):
    """As an SDK's object: fields that are not set are None."""

    role: str
    parts: list[Part]


async def test_objects_of_an_sdk_are_taken_as_the_json_they_stand_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        content = Content(role="user", parts=[Part(text="hello")])
        assert (await service.append_messages([content], "s")).stored == 1
        assert await given_out(service, "anthropic") == [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]}
        ]
        with pytest.raises(CallerError, match="no object"):
            await service.append_messages([object()], "s")
        with pytest.raises(CallerError, match="no JSON"):
            await service.append_messages([{"role": "user", "parts": [{"inlineData": {"data": b"x"}}]}], "s")


async def test_what_is_not_understood_is_named_and_kept(tmp_path: Path) -> None:
    items = [{"role": "user", "content": [{"type": "input_text", "text": "go"}]}, {"type": "newer_call", "id": "x"}]
    async with opened(tmp_path) as service:
        done = await service.append_messages(items, "s")
        assert done.stored == 2
        assert any("newer_call" in text and "message 2" in text for text in done.warnings)
        parts = [{"role": "user", "parts": [{"text": "go"}, {"hologram": {"data": "x"}}]}]
        assert any("hologram" in text for text in (await service.append_messages(parts, "t")).warnings)


async def test_a_block_of_no_known_type_is_named_kept_and_given_out(tmp_path: Path) -> None:
    weird = {"type": "weird", "x": 1}
    known: list[Json] = [
        {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "container_upload", "file_id": "f"}]},
        {"role": "assistant", "content": [{"type": "web_search_tool_result", "content": []}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}]},
    ]
    async with opened(tmp_path) as service:
        said: list[Json] = [{"role": "user", "content": [{"type": "text", "text": "go"}, weird]}]
        done = await service.append_messages([{"role": "user", "content": "hello"}, *said], "s")
        assert [text for text in done.warnings if "message 2" in text and "'weird'" in text]
        assert weird in (await given_out(service, "anthropic"))[-1]["content"]
        for at, message in enumerate(known):
            warnings = (await service.append_messages([message], f"known {at}")).warnings
            assert not [text for text in warnings if "not known" in text]


def cuts(items: list[Json], data: st.DataObject) -> Iterator[list[Json]]:
    at = 0
    while at < len(items):
        size = data.draw(st.integers(1, len(items) - at))
        yield items[at : at + size]
        at += size


@pytest.mark.parametrize("name", tuple(ROUNDS))
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_however_a_conversation_is_cut_into_appends_the_context_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    items = [item for n in range(2) for item in ROUNDS[name](n)]
    assert form_of(items) == (name if name in ("responses", "gemini") else "")

    async def appended(parts: list[list[Json]]) -> list[Json]:
        async with opened(tmp_path_factory.mktemp("a")) as service:
            for part in parts:
                await service.append_messages(part, "s")
            return await given_out(service, name)

    pieces = list(cuts(items, data))
    assert anyio.run(appended, pieces) == anyio.run(appended, [items])
