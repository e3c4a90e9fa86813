from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.ports.store import SessionFacts
from mcp_compact.ports.summarizer import Written
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.pins import MAX_PINS
from mcp_compact.service.service import Service
from mcp_compact.testing import FixedClock, tool_result
from mcp_compact.wiring import open_service
from tests.problems import problems
from tests.service.test_every_transcript import everything

FORCED = CompactCall(trigger="manual", force=True, target_tokens=8_000)
SUMMARY = "## Requests and intent\nThe user wants the parser in src/parser.py mended; line 12 fails.\n" * 4


@dataclass(slots=True)
class Recorder:
    """A writer that keeps what it was given."""

    name: str = "provider"
    given: list[str] = field(default_factory=list)

    async def write(self, request: SummaryRequest) -> Written:
        self.given.append(request.text)
        return Written(SummaryAnswer(SUMMARY), "a scripted model")


@asynccontextmanager
async def opened(tmp_path: Path, writer: Recorder | None = None) -> AsyncIterator[Service]:
    names, writers = (("provider",), {"provider": writer}) if writer else ((), {})
    settings = replace(load_settings({}), db=tmp_path / "a.db", hook_entry_points=False, summarizers=names)
    async with open_service(settings) as service:
        yield replace(service, deps=replace(service.deps, clock=FixedClock(), writers=writers))


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with opened(tmp_path) as made:
        await made.append_messages(rounds(0, 30), "s")
        yield made


def rounds(first: int, last: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for n in range(first, last):
        out.append({"role": "user", "content": f"question {n} " + "word " * 200})
        out.append({"role": "assistant", "content": [{"type": "text", "text": f"answer {n} " + "word " * 200}]})
    return out


async def put(service: Service, session: str = "s") -> list[str]:
    """Texts of the messages of a context that a compaction put back."""
    messages = await everything(service, session)
    assert problems(messages) == []
    texts = [m["content"] if isinstance(m["content"], str) else m["content"][0].get("text", "") for m in messages]
    return [text for text in texts if text.startswith("[Kept through compaction: ")]


async def boundary(service: Service, session: str = "s") -> dict[str, Any]:
    """The metadata of the last boundary."""
    key = (await service.deps.store.sessions("local", cwd=None, limit=10, before_ms=None))[0].key
    markers = await service.deps.store.markers(replace(key, session_id=session))
    return dict(markers[-1].metadata)


# --- pinning


async def test_a_pin_is_listed_with_what_names_it_and_the_same_name_replaces_it(service: Service) -> None:
    first = await service.pin("s", "  ALWAYS use tabs\n")
    assert (first.status, first.kind, first.name) == ("pinned", "instruction", "ALWAYS use tabs")
    await service.pin("s", "1. do A", kind="plan")
    again = await service.pin("s", "2. do B", kind="plan")
    assert (again.status, again.name) == ("replaced", "plan")
    listed = await service.pins("s")
    assert [(pin.kind, pin.name, pin.beginning) for pin in listed.pins] == [
        ("instruction", "ALWAYS use tabs", "ALWAYS use tabs"),
        ("plan", "plan", "2. do B"),
    ]
    assert all(pin.tokens > 0 for pin in listed.pins)


async def test_long_instructions_that_begin_alike_are_two_pins(service: Service) -> None:
    start = "Never ever touch anything in the folder with the vendored sources of "
    await service.pin("s", start + "one")
    assert (await service.pin("s", start + "two")).status == "pinned"
    assert len((await service.pins("s")).pins) == 2


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"text": ""}, "empty"),
        ({"text": " \n\t"}, "empty"),
        ({"text": ",;  ", "kind": "tools"}, "empty"),
        ({"text": "x", "kind": "wish"}, "bad_kind"),
        ({"text": "x", "kind": "skill"}, "bad_name"),
        ({"text": "x", "kind": "file", "name": "a\nb"}, "bad_name"),
        ({"text": "x", "kind": "file", "name": "a" * 5000}, "bad_name"),
        ({"text": "x" * 8_001}, "too_long"),
        ({"text": "x" * 100_001, "kind": "plan"}, "too_long"),
    ],
)
async def test_bad_input_is_refused_with_what_to_do_and_nothing_is_pinned(
    service: Service, given: dict[str, str], code: str
) -> None:
    with pytest.raises(CallerError) as caught:
        await service.pin("s", given["text"], kind=given.get("kind", "instruction"), name=given.get("name", ""))
    assert caught.value.code == code
    assert caught.value.hint
    assert (await service.pins("s")).pins == ()


async def test_an_unknown_session_has_no_pins(service: Service) -> None:
    for refused in (service.pin("other", "x"), service.unpin("other", "x"), service.pins("other")):
        with pytest.raises(CallerError, match="no session"):
            await refused


async def test_a_session_has_a_hundred_pins_at_most_and_one_of_them_can_still_be_replaced(service: Service) -> None:
    for number in range(MAX_PINS):
        await service.pin("s", f"rule {number}", name=f"r{number}")
    with pytest.raises(CallerError, match="100 pins"):
        await service.pin("s", "one more")
    assert (await service.pin("s", "another rule", name="r7")).status == "replaced"


async def test_a_pin_is_taken_back_by_its_name(service: Service) -> None:
    await service.pin("s", "1. do A", kind="plan")
    name = (await service.pin("s", "ALWAYS use tabs")).name
    assert (await service.unpin("s", name)).status == "unpinned"
    assert [pin.kind for pin in (await service.unpin("s", "", kind="plan")).pins] == []
    with pytest.raises(CallerError) as caught:
        await service.unpin("s", name)
    assert caught.value.code == "unknown_pin"


async def test_unpinning_what_is_not_there_names_what_is(service: Service) -> None:
    await service.pin("s", "how to pdf", kind="skill", name="pdf")
    with pytest.raises(CallerError) as caught:
        await service.unpin("s", "word", kind="skill")
    assert "pdf" in (caught.value.hint or "")


# --- after a compaction


async def test_pins_stand_in_the_context_word_for_word_after_each_compaction_and_once(service: Service) -> None:
    await service.pin("s", "ALWAYS use tabs;\n\tnever spaces")
    await service.pin("s", "how to pdf", kind="skill", name="pdf")
    for number in range(3):
        assert (await service.compact("s", FORCED)).status == "compacted"
        text = json.dumps(await everything(service, "s"))
        assert text.count(json.dumps("ALWAYS use tabs;\n\tnever spaces")[1:-1]) == 1
        assert text.count("how to pdf") == 1
        await service.append_messages(rounds(100 * number + 100, 100 * number + 130), "s")


async def test_a_pin_that_was_taken_back_leaves_with_the_next_compaction(service: Service) -> None:
    name = (await service.pin("s", "ALWAYS use tabs")).name
    await service.compact("s", FORCED)
    assert "ALWAYS use tabs" in str(await put(service))
    await service.unpin("s", name)
    await service.append_messages(rounds(100, 130), "s")
    await service.compact("s", FORCED)
    assert "ALWAYS use tabs" not in str(await everything(service, "s"))


async def test_a_pinned_instruction_counts_among_those_that_must_hold(service: Service) -> None:
    await service.pin("s", "ALWAYS use tabs")
    result = await service.compact("s", FORCED)
    assert (result.loss.instructions, result.loss.instructions_kept) == (1, 1)


async def test_found_and_pinned_tools_stand_sorted_in_the_boundary_and_the_next_one_knows_them(
    service: Service,
) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "ToolSearch", "input": {"query": "gh"}}
    found = tool_result("t1", "mcp__gh__list")
    await service.append_messages(
        [{"role": "assistant", "content": [call]}, {"role": "user", "content": [found]}, *rounds(40, 70)], "s"
    )
    await service.pin("s", "mcp__zz__last, mcp__aa__first", kind="tools")
    names = ["mcp__aa__first", "mcp__gh__list", "mcp__zz__last"]
    await service.compact("s", FORCED)
    assert (await boundary(service))["preCompactDiscoveredTools"] == names
    assert any("mcp__aa__first, mcp__gh__list, mcp__zz__last" in text for text in await put(service))
    await service.unpin("s", "", kind="tools")
    await service.append_messages(rounds(70, 100), "s")
    await service.compact("s", FORCED)
    assert (await boundary(service))["preCompactDiscoveredTools"] == names


async def test_what_was_found_comes_back_also_where_the_agent_keeps_the_memory_itself(service: Service) -> None:
    plan = {"type": "tool_use", "id": "p", "name": "ExitPlanMode", "input": {"plan": "1. mend the FROBNICATOR"}}
    read = {"type": "tool_use", "id": "r", "name": "Read", "input": {"file_path": "src/frob.py"}}
    await service.append_messages(
        [
            {"role": "assistant", "content": [plan, read]},
            {"role": "user", "content": [tool_result("p", "approved"), tool_result("r", "frob = 1\n" * 50)]},
            *rounds(40, 70),
        ],
        "s",
    )
    await service.update_memory("s", "# Notes\n\n## Task\nport the parser\n")
    result = await service.compact("s", FORCED)
    assert (result.status, result.strategy) == ("compacted", "session_memory")
    texts = await put(service)
    assert [text.split("]")[0].rpartition(": ")[2] for text in texts] == ["plan", "file:src/frob.py"]
    assert "1. mend the FROBNICATOR" in texts[0]
    await service.append_messages(rounds(70, 100), "s")
    await service.update_memory("s", "# Notes\n\n## Task\nport the parser, really\n")
    await service.compact("s", FORCED)
    assert "1. mend the FROBNICATOR" in (await put(service))[0]


async def test_a_client_that_keeps_its_history_is_left_its_own_files_but_not_the_pins(service: Service) -> None:
    read = {"type": "tool_use", "id": "r", "name": "Read", "input": {"file_path": "src/frob.py"}}
    messages = [
        {"role": "assistant", "content": [read]},
        {"role": "user", "content": [tool_result("r", "frob = 1\n" * 50)]},
        *rounds(0, 30),
    ]
    await service.append_messages(messages, "c", SessionFacts(owner="client"))
    await service.pin("c", "ALWAYS use tabs")
    assert (await service.compact("c", FORCED)).status == "prepared"
    assert ["pins" in text.split("\n")[0] for text in await put(service, "c")] == [True]


async def test_undo_gives_back_the_former_context_and_the_pins_stay(service: Service) -> None:
    await service.pin("s", "ALWAYS use tabs")
    before = (await service.status("s")).live_hash
    await service.compact("s", FORCED)
    await service.undo("s")
    assert (await service.status("s")).live_hash == before
    assert len((await service.pins("s")).pins) == 1


# --- people's reports


async def test_reinj_01_what_was_registered_is_in_the_answer_on_both_paths(tmp_path: Path) -> None:
    for number, call in enumerate([FORCED, replace(FORCED, custom_instructions="be short")]):
        async with opened(tmp_path / str(number), Recorder()) as service:
            await service.append_messages(rounds(0, 30), "s")
            await service.pin("s", "ALWAYS use tabs")
            await service.pin("s", "1. do A 2. do B", kind="plan")
            await service.pin("s", "how to pdf", kind="skill", name="pdf")
            await service.pin("s", "[in_progress] B", kind="todos")
            await service.pin("s", "mcp__gh__list", kind="tools")
            result = await service.compact("s", call)
            assert result.strategy == ("summary" if number else "session_memory")
            text = str(await put(service))
            for own in ("ALWAYS use tabs", "1. do A 2. do B", "how to pdf", "[in_progress] B"):
                assert text.count(own) == 1
            assert (await boundary(service))["preCompactDiscoveredTools"] == ["mcp__gh__list"]


async def test_reinj_03_a_rule_is_in_the_view_once_and_no_writer_is_given_the_copy(tmp_path: Path) -> None:
    writer = Recorder()
    async with opened(tmp_path, writer) as service:
        await service.append_messages(rounds(0, 30), "s")
        await service.pin("s", "RULE-77")
        call = replace(FORCED, custom_instructions="be short")
        for number in (1, 2):
            assert (await service.compact("s", call)).strategy == "summary"
            assert str(await everything(service, "s")).count("RULE-77") == 1
            await service.append_messages(rounds(100 * number + 100, 100 * number + 130), "s")
        assert len(writer.given) == 2
        assert not any("RULE-77" in text for text in writer.given)
