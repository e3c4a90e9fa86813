"""Results of calls that were made together, appended one by one, go to Anthropic in one message of the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.test_own_loops import Json, findings_of, given_out
from tests.service.test_summaries import opened

NAMES = ("A", "B", "C")


def openai(order: str) -> list[Json]:
    made = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}} for name in NAMES]
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": made},
        *({"role": "tool", "tool_call_id": name, "content": f"of {name}"} for name in order),
    ]


def responses(order: str) -> list[Json]:
    return [
        {"role": "user", "content": "go"},
        *({"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"} for name in NAMES),
        *({"type": "function_call_output", "call_id": name, "output": f"of {name}"} for name in order),
    ]


def anthropic(order: str) -> list[Json]:
    calls = [{"type": "tool_use", "id": name, "name": "f", "input": {}} for name in NAMES]
    results = [{"type": "tool_result", "tool_use_id": name, "content": f"of {name}"} for name in order]
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": calls},
        *({"role": "user", "content": [result]} for result in results),
    ]


LISTS = {"openai": openai, "responses": responses, "anthropic": anthropic}


@pytest.mark.parametrize("order", ["ABC", "CBA", "BCA", "AB"])
@pytest.mark.parametrize("name", tuple(LISTS))
async def test_they_are_one_message_in_the_order_of_the_calls(tmp_path: Path, name: str, order: str) -> None:
    async with opened(tmp_path) as service:
        for item in LISTS[name](order):
            await service.append_messages([item], "s")
        out = await given_out(service, "anthropic")
        assert [message["role"] for message in out] == ["user", "assistant", "user"]
        assert [block["tool_use_id"] for block in out[2]["content"]] == sorted(order)
        exported = (await service.export("s", "anthropic")).messages
        assert [message["role"] for message in exported] == ["user", "assistant", "user"]
        assert [block["tool_use_id"] for block in exported[2]["content"]] == list(NAMES)
        assert not findings_of("anthropic", list(exported))


async def test_a_text_behind_results_stays_behind_them_and_other_texts_are_messages_of_their_own(
    tmp_path: Path,
) -> None:
    items = anthropic("BAC")
    items[-1]["content"].append({"type": "text", "text": "and hurry"})
    items.append({"role": "user", "content": "please"})
    async with opened(tmp_path) as service:
        for item in items:
            await service.append_messages([item], "s")
        out = await given_out(service, "anthropic")
    assert [block.get("tool_use_id", block.get("text")) for block in out[2]["content"]] == [*NAMES, "and hurry"]
    assert out[3:] == [{"role": "user", "content": "please"}]


async def test_results_that_came_in_one_message_stay_as_they_came(tmp_path: Path) -> None:
    first, answer, *results = anthropic("CAB")
    items = [first, answer, {"role": "user", "content": [block for item in results for block in item["content"]]}]
    async with opened(tmp_path) as service:
        await service.append_messages(items, "s")
        assert await given_out(service, "anthropic") == items


@pytest.mark.parametrize("name", tuple(LISTS))
async def test_the_list_is_known_when_it_is_sent_again(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as service:
        for item in LISTS[name]("CAB"):
            await service.append_messages([item], "s")
        out = await given_out(service, "anthropic")
        new = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
        again = await service.append_messages([*out, new], "s")
        assert (again.known, again.stored) == (3, 1)
