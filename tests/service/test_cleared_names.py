"""A cleared result names what `get_original` takes, in every format: whoever reads it can have it back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.messages.blocks import CLEARED_RESULT
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.service.service import Service
from tests.service.test_own_loops import Json, findings_of, given_out
from tests.service.test_read_back import WRITERS
from tests.service.test_summaries import opened

NAMED = re.compile(r'id "([^"]+)"')


def cleared_texts(value: object) -> list[str]:
    """Texts of a list that stand for a cleared result, in order."""
    if isinstance(value, str):
        return [value] if CLEARED_RESULT in value else []
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for item in items for text in cleared_texts(item)]


def rounds(name: str) -> list[Json]:
    texts = json.dumps(
        WRITERS[name]([(f"ask {n}", True, [f"{n}.1 " * 90, f"{n}.2 " * 90], True, "so") for n in range(6)])
    )
    # A tool whose results may be cleared.
    items: list[Json] = json.loads(texts.replace('"look"', '"Read"'))
    return items


async def cleared(service: Service, name: str) -> list[Json]:
    items = rounds(name)
    for item in items:
        await service.append_messages([item], "s")
    done = await service.microcompact("s", MicroRequest(MicroMode.ALL, keep=2))
    assert done.tokens_freed > 0
    return items


@pytest.mark.parametrize("into", tuple(WRITERS))
@pytest.mark.parametrize("name", tuple(WRITERS))
async def test_the_id_that_a_cleared_result_names_gives_it_back(tmp_path: Path, name: str, into: str) -> None:
    async with opened(tmp_path) as service:
        await cleared(service, name)
        for messages in (await given_out(service, into), (await service.export("s", into)).messages):
            told = cleared_texts(messages)
            assert len(told) == 10
            assert not findings_of(into, list(messages))
            if into == "anthropic":
                assert set(told) == {ClearedText().mark}
                continue
            for at, text in enumerate(told):
                (named,) = NAMED.findall(text)
                assert "tool_use_id" not in text
                assert text.startswith(f"{CLEARED_RESULT}\n")
                original = await service.original("s", named)
                assert original.text.startswith(f"{at // 2}.{at % 2 + 1} ")


@pytest.mark.parametrize("name", tuple(WRITERS))
async def test_a_list_with_cleared_results_that_is_sent_again_is_known(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as service:
        items = await cleared(service, name)
        before = (await service.status("s")).live_messages
        out = await given_out(service, name)
        assert len(out) == len(items)
        new = [item | {} for item in WRITERS[name]([("and now", False, [], False, "done")])]
        again = await service.append_messages([*out, *new], "s")
        assert again.known == len(out)
        assert (await service.status("s")).live_messages == before + 2
