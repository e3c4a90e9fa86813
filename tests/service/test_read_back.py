"""What a loop appended and nothing compacted goes out in its own format as it came: reasoning, ids, signatures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.jobs import CompactCall
from tests.service.test_own_loops import Json, cuts, findings_of, given_out
from tests.service.test_summaries import opened

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40).map(
    "said {}.".format
)
STEPS = st.lists(
    st.tuples(TEXTS, st.booleans(), st.lists(TEXTS, max_size=3), st.booleans(), TEXTS), min_size=1, max_size=4
)
"""Rounds: what is asked, does the model think, the results of its calls, does it say something with them, its answer."""
Steps = list[tuple[str, bool, list[str], bool, str]]


def anthropic(steps: Steps) -> list[Json]:
    out: list[Json] = []
    for n, (asked, thinks, results, speaks, answer) in enumerate(steps):
        thought = [{"type": "thinking", "thinking": f"hm {n}", "signature": f"c2ln{n}"}] if thinks else []
        calls = [
            {"type": "tool_use", "id": f"toolu_{n}_{k}", "name": "look", "input": {"n": k}} for k in range(len(results))
        ]
        said = [{"type": "text", "text": f"step {n}"}] if speaks else []
        out.append({"role": "user", "content": asked})
        if calls:
            out.append({"role": "assistant", "content": [*thought, *said, *calls]})
            given = zip(calls, results, strict=True)
            blocks = [{"type": "tool_result", "tool_use_id": call["id"], "content": text} for call, text in given]
            out.append({"role": "user", "content": blocks})
        out.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
    return out


def openai(steps: Steps) -> list[Json]:
    out: list[Json] = []
    for n, (asked, thinks, results, speaks, answer) in enumerate(steps):
        made = [
            {"id": f"call_{n}_{k}", "type": "function", "function": {"name": "look", "arguments": f'{{"n": {k}}}'}}
            for k in range(len(results))
        ]  # fmt: skip
        out.append({"role": "user", "content": asked})
        thought = {"reasoning_content": f"hm {n}"} if thinks else {}
        if made:
            out.append({"role": "assistant", "content": f"step {n}" if speaks else None, "tool_calls": made, **thought})
            given = zip(made, results, strict=True)
            out += [{"role": "tool", "tool_call_id": call["id"], "content": text} for call, text in given]
        out.append({"role": "assistant", "content": answer, "annotations": []})
    return out


def _said(name: str, text: str) -> Json:
    parts = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"type": "message", "id": name, "role": "assistant", "status": "completed", "content": parts}


def responses(steps: Steps) -> list[Json]:
    out: list[Json] = []
    for n, (asked, thinks, results, speaks, answer) in enumerate(steps):
        calls = [
            {"type": "function_call", "id": f"fc_{n}_{k}", "call_id": f"call_{n}_{k}", "name": "look",
             "arguments": f'{{"n": {k}}}', "status": "completed"} for k in range(len(results))
        ]  # fmt: skip
        out.append({"role": "user", "content": [{"type": "input_text", "text": asked}]})
        for at, made in enumerate(
            [[*([_said(f"msg_{n}_a", f"step {n}")] if speaks else []), *calls], [_said(f"msg_{n}_b", answer)]]
        ):
            if thinks and made:
                summary = [{"type": "summary_text", "text": "hm"}] if at else []
                out.append({"type": "reasoning", "id": f"rs_{n}_{at}", "summary": summary, "encrypted_content": "gAAA"})
            out += made
            if not at:
                given = zip(calls, results, strict=True)
                out += [{"type": "function_call_output", "call_id": c["call_id"], "output": text} for c, text in given]
    return out


def gemini(steps: Steps) -> list[Json]:
    out: list[Json] = []
    for n, (asked, thinks, results, speaks, answer) in enumerate(steps):
        thought = [{"text": f"hm {n}", "thought": True}] if thinks else []
        calls: list[Json] = [{"functionCall": {"name": "look", "args": {"n": k}}} for k in range(len(results))]
        out.append({"role": "user", "parts": [{"text": asked}]})
        if calls:
            calls[0]["thoughtSignature"] = f"c2ln{n}"
            out.append({"role": "model", "parts": [*thought, *([{"text": f"step {n}"}] if speaks else []), *calls]})
            given = [{"functionResponse": {"name": "look", "response": {"output": text}}} for text in results]
            out.append({"role": "user", "parts": given})
        out.append({"role": "model", "parts": [{"text": answer, "thoughtSignature": f"ZW5k{n}"}]})
    return out


WRITERS: dict[str, Callable[[Steps], list[Json]]] = {
    "anthropic": anthropic, "openai": openai, "responses": responses, "gemini": gemini,
}  # fmt: skip


@pytest.mark.parametrize("name", tuple(WRITERS))
@given(steps=STEPS, data=st.data())
@settings(max_examples=15, deadline=None)
def test_what_was_appended_in_a_format_is_read_in_it_as_it_came(
    tmp_path_factory: pytest.TempPathFactory, name: str, steps: Steps, data: st.DataObject
) -> None:
    # A round that repeats the one before to the letter is taken for a list that is sent again.
    steps = [(f"{n} {step[0]}", *step[1:]) for n, step in enumerate(steps)]
    items = WRITERS[name](steps)

    async def run() -> None:
        async with opened(tmp_path_factory.mktemp("a")) as service:
            for part in cuts(items, data):
                done = await service.append_messages(part, "s")
                assert done.stored == len(part)
            assert await given_out(service, name) == items
            exported = await service.export("s", name)
            assert list(exported.messages) == items

    anyio.run(run)


@pytest.mark.parametrize("name", tuple(WRITERS))
async def test_after_a_compaction_the_messages_that_stayed_are_as_they_came(tmp_path: Path, name: str) -> None:
    items = WRITERS[name]([(f"ask {n}", True, ["line"] * 2, True, f"answer {n}." * 60) for n in range(20)])
    async with opened(tmp_path) as service:
        await service.append_messages(items, "s")
        call = CompactCall(trigger="manual", target_tokens=1_500, force=True, keep_tail=True)
        assert (await service.compact("s", call)).status == "compacted"
        out = await given_out(service, name)
        assert not findings_of(name, out)
        assert out[-4:] == items[-4:]
        again = await service.append_messages([*out, *WRITERS[name]([("more", True, [], True, "so be it")])], "s")
        assert again.known > 0
        assert out == (await given_out(service, name))[: len(out)]


async def test_a_fork_asks_for_no_reasoning_that_it_has_not_and_keeps_what_is_new(tmp_path: Path) -> None:
    old = responses([(f"ask {n}", True, ["x", "y"], True, f"answer {n}") for n in range(3)])
    async with opened(tmp_path) as service:
        await service.append_messages(old, "s")
        await service.fork_session("s", new_session_id="twin")
        new = responses([(f"ask {n}", True, ["x"], False, f"answer {n}") for n in range(3, 5)])
        await service.append_messages(new, "twin")
        out = await given_out(service, "responses", "twin")
        exported = (await service.export("twin", "responses")).messages
    assert list(exported) == out
    assert out[-len(new) :] == new
    before = out[: -len(new)]
    assert [item for item in before if item.get("type") == "reasoning" or item.get("id")] == []
    assert not findings_of("responses", out)


async def test_of_a_long_archive_only_what_is_near_the_context_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(tmp_path) as service:
        for n in range(40):
            await service.append_messages(responses([(f"ask {n}", True, ["line\n" * 40], True, f"answer {n}")]), "s")
        await service.compact("s", CompactCall(trigger="manual", target_tokens=1_500, force=True))
        read: list[int] = []
        records = service.deps.store.records

        async def noted(key: SessionKey, *, after_seq: int, up_to_seq: int, live_only: bool) -> list[Record]:
            read.append(after_seq)
            return await records(key, after_seq=after_seq, up_to_seq=up_to_seq, live_only=live_only)

        monkeypatch.setattr(service.deps.store, "records", noted)
        out = await given_out(service, "responses")
    assert min(read) > 100
    assert "reasoning" in json.dumps(out[-3:])
