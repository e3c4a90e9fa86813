"""What an agent's loop is given is never refused by its provider, whatever was appended, and in whatever order."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.errors import CallerError
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.service import Service
from mcp_compact.transcripts.validity.providers import LAST_ALONE, findings
from mcp_compact.transcripts.validity.rules import OPEN, refused
from tests.service.test_own_loops import PROVIDERS, ROUNDS, given_out
from tests.service.test_summaries import opened
from tests.transcripts.validity.lists import LISTS


async def check_all(service: Service) -> None:
    """The context in every provider's format, by that one's rules; only a list of nothing may be refused."""
    for name, provider in PROVIDERS.items():
        page = await service.messages("s", format_name=name)
        if not page.messages:
            continue
        messages = await given_out(service, name)
        # A loop appends before it sends.
        found = [finding for finding in refused(findings(provider, messages)) if finding.rule not in LAST_ALONE]
        assert not found, (name, messages)


@pytest.mark.parametrize("provider", tuple(LISTS))
@given(data=st.data())
@settings(max_examples=12, deadline=None)
def test_whatever_a_loop_appends_what_it_gets_back_is_taken(
    tmp_path_factory: pytest.TempPathFactory, provider: str, data: st.DataObject
) -> None:
    lists = data.draw(st.lists(LISTS[provider], min_size=1, max_size=3))
    way = data.draw(st.sampled_from(["", "micro", "compact"]))
    name = next(name for name, known in PROVIDERS.items() if known == provider)

    async def run() -> None:
        async with opened(tmp_path_factory.mktemp("a")) as service:
            await service.append_messages(ROUNDS[name](0), "s")
            for messages in lists:
                with suppress(CallerError):
                    await service.append_messages(messages, "s")
            if way == "micro":
                await service.microcompact("s", MicroRequest(MicroMode.ALL))
            if way == "compact":
                for n in range(8):
                    await service.append_messages(ROUNDS[name](n + 1), "s")
                await service.compact("s", CompactCall(trigger="manual", target_tokens=1_200, force=True))
            await check_all(service)

    anyio.run(run)


@pytest.mark.parametrize("name", tuple(ROUNDS))
async def test_a_half_answered_call_stays_open_and_its_late_result_finds_it(tmp_path: Any, name: str) -> None:
    whole = ROUNDS[name](1)
    calls = [item for item in whole if "lines" not in str(item) and "done" not in str(item)]
    results = [item for item in whole if "lines" in str(item)]
    if len(results) == 1:
        key = "parts" if name == "gemini" else "content"
        results = [{**results[0], key: [part]} for part in results[0][key]]
    async with opened(tmp_path) as service:
        await service.append_messages([*calls, results[0]], "s")
        out = await given_out(service, name)
        found = findings(PROVIDERS[name], out)
        assert not refused(found)
        assert [finding.severity for finding in found].count(OPEN) == 1
        assert "interrupted" not in str(out)
        await service.append_messages([results[1]], "s")
        closed = findings(PROVIDERS[name], await given_out(service, name))
        assert not [finding for finding in closed if finding.severity == OPEN]
        assert not refused(closed)


async def test_a_last_answer_is_given_to_the_letter_and_known_again_when_the_whole_list_comes_back(
    tmp_path: Any,
) -> None:
    said = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "gone \u2028 \n"}]
    async with opened(tmp_path) as service:
        await service.append_messages(said, "s")
        out = await given_out(service, "anthropic")
        assert out[-1]["content"] == said[-1]["content"]
        stored = await service.append_messages([*out, {"role": "user", "content": "and on"}], "s")
        assert len(stored.uuids) == 1
        assert not refused(findings("anthropic", await given_out(service, "anthropic")))


async def test_what_a_provider_would_refuse_is_mended_in_the_view_and_named(tmp_path: Any) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": "QUJD"}}
    call = {"type": "tool_use", "id": "a b", "name": "a tool!", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a b", "content": "x"}
    said = [
        {"role": "user", "content": [image]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    async with opened(tmp_path) as service:
        await service.append_messages(said, "s")
        page = await service.messages("s")
        assert not refused(findings("anthropic", list(page.messages)))
        assert any("messages[0].content[0]" in text for text in page.warnings)
        assert (await service.original("s", "a b")).text == "x"
