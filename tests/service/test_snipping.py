"""Snips of stored sessions: what leaves, what is spared, and what the status says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcp_compact.compaction.snip import SnipRequest
from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.ports.store import Registered, SessionFacts
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.service import Service
from mcp_compact.service.session_results import Spared
from mcp_compact.testing import tool_result
from tests.problems import problems
from tests.service.test_every_transcript import everything
from tests.service.test_summaries import conversation, opened


def read_of(call: str, path: str, text: str, *, is_error: bool = False) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}}
    return [
        {"role": "assistant", "content": [block]},
        {"role": "user", "content": [tool_result(call, text, is_error=is_error)]},
    ]


def work() -> list[dict[str, Any]]:
    """0 the prompt, 1-2 a failed call, 3-4 a read that is repeated in 6-7, 5 said between, 8-9 the last round."""
    return [
        {"role": "user", "content": "Mend the parser."},
        *read_of("t1", "gone.py", "no such file " * 100, is_error=True),
        *read_of("t2", "a.py", "old content " * 400),
        {"role": "assistant", "content": "I look again, ALPHA."},
        *read_of("t3", "a.py", "new content " * 400),
        {"role": "assistant", "content": "It is mended."},
        {"role": "user", "content": "Thanks."},
    ]


async def filled(service: Service, facts: SessionFacts | None = None) -> tuple[MessageUuid, ...]:
    return tuple(MessageUuid(uuid) for uuid in (await service.append_messages(work(), "s", facts)).uuids)


async def test_what_a_rule_finds_leaves_with_call_and_result_and_an_undo_brings_it_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        uuids = await filled(service)
        before = await service.status("s")
        done = await service.snip("s", SnipRequest(rules=("errors", "stale_reads")))
        assert (done.executed, done.status, done.applies_to) == (True, "compacted", "sent_context")
        assert done.messages == uuids[1:5]
        after = await service.status("s")
        assert done.tokens_before == before.message_tokens
        assert done.tokens_after == after.message_tokens == before.message_tokens - done.tokens_freed
        assert after.archived_records == before.archived_records + 1
        text = str(await everything(service, "s"))
        assert "new content" in text
        assert "old content" not in text
        assert problems(await everything(service, "s")) == []
        assert (await service.original("s", uuids[4])).text.count("old content") == 400
        undone = await service.undo("s")
        assert undone.live_hash == before.live_hash


async def test_messages_by_name_and_by_range_leave(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        uuids = await filled(service)
        done = await service.snip("s", SnipRequest(uuids=(uuids[5],), ranges=((uuids[4], uuids[3]),)))
        assert done.messages == uuids[3:6]
        assert "ALPHA" not in str(await everything(service, "s"))


async def test_what_is_protected_is_spared_with_the_reason_unless_it_is_forced(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        uuids = await filled(service)
        asked = SnipRequest(uuids=(uuids[0], uuids[5], uuids[9]))
        done = await service.snip("s", asked)
        assert done.messages == (uuids[5],)
        assert done.spared == (Spared(uuids[0], "the first message of the user"), Spared(uuids[9], "the last round"))
        only = SnipRequest(uuids=(uuids[0],))
        none = await service.snip("s", only)
        assert (none.executed, none.status, none.reason) == (False, "nothing_to_compact", "nothing_to_snip")
        assert "first message" in none.detail
        forced = await service.snip("s", SnipRequest(uuids=(uuids[0],), force=True))
        assert forced.messages == (uuids[0],)
        assert problems(await everything(service, "s")) == []


async def test_an_open_call_stays_even_if_it_is_forced(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await filled(service)
        call = {"type": "tool_use", "id": "open", "name": "snip_messages", "input": {}}
        [uuid] = (await service.append_messages([{"role": "assistant", "content": [call]}], "s")).uuids
        none = await service.snip("s", SnipRequest(uuids=(MessageUuid(uuid),), force=True))
        assert (none.executed, none.detail) == (False, "open call")


async def test_a_message_that_holds_a_pinned_text_is_spared(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        uuids = await filled(service)
        key = (await service.deps.store.sessions("local", cwd=None, limit=1, before_ms=None))[0].key
        await service.deps.store.register(key, Registered("plan", "plan", "i look  AGAIN, alpha"), 1)
        done = await service.snip("s", SnipRequest(uuids=(uuids[5], uuids[3])))
        assert done.messages == uuids[3:5]
        assert done.spared == (Spared(uuids[5], "pinned"),)


async def test_a_snip_that_is_repeated_is_refused_as_no_longer_live(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        uuids = await filled(service)
        request = SnipRequest(uuids=(uuids[5],))
        await service.snip("s", request)
        after = await service.status("s")
        with pytest.raises(CallerError) as raised:
            await service.snip("s", request)
        assert raised.value.code == "not_live"
        assert uuids[5] in str(raised.value)
        assert await service.status("s") == after


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (SnipRequest(), "nothing_named"),
        (SnipRequest(force=True), "nothing_named"),
        (SnipRequest(rules=("everything",)), "unknown_rule"),
        (SnipRequest(rules=("errors", "")), "unknown_rule"),
        (SnipRequest(uuids=(MessageUuid("nobody"),)), "not_live"),
        (SnipRequest(uuids=(MessageUuid("x" * 100_000),)), "not_live"),
        (SnipRequest(ranges=((MessageUuid("a"), MessageUuid("b")),)), "not_live"),
    ],
)
async def test_mistakes_are_named_and_change_nothing(tmp_path: Path, request_: SnipRequest, code: str) -> None:
    async with opened(tmp_path) as service:
        await filled(service)
        before = await service.status("s")
        with pytest.raises(CallerError) as raised:
            await service.snip("s", request_)
        assert raised.value.code == code
        assert len(str(raised.value)) < 1_000
        assert await service.status("s") == before
        with pytest.raises(CallerError, match="There is no session"):
            await service.snip("nobody", SnipRequest(rules=("errors",)))


async def test_a_client_s_own_history_is_only_prepared(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await filled(service, SessionFacts(owner="client"))
        done = await service.snip("s", SnipRequest(rules=("errors",)))
        assert (done.status, done.applies_to) == ("prepared", "stored_view")
        assert "/compact" in done.next


async def test_after_a_compaction_only_what_it_preserved_can_leave_not_its_summary(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        await service.compact("s", CompactCall(trigger="manual", force=True, target_tokens=6_000))
        page = await service.messages("s")
        summary = str(page.messages[0]["content"])
        done = await service.snip("s", SnipRequest(rules=("tool:Re*",)))
        assert done.executed
        messages = await everything(service, "s")
        assert str(messages[0]["content"])[:200] == summary[:200]
        assert problems(messages) == []
        assert done.tokens_after == (await service.status("s")).message_tokens


async def test_an_append_while_a_snip_is_planned_comes_after_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        uuids = await filled(service)
        store = service.deps.store
        registered = store.registered

        async def late(key: Any) -> list[Registered]:
            await service.append_messages([{"role": "assistant", "content": "said meanwhile"}], "s")
            return await registered(key)

        store.registered = late  # type: ignore[method-assign]
        done = await service.snip("s", SnipRequest(uuids=(uuids[5],)))
        assert done.executed
        assert "said meanwhile" in str((await everything(service, "s"))[-1])


async def test_another_snip_in_between_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        uuids = await filled(service)
        store = service.deps.store
        registered = store.registered

        async def meanwhile(key: Any) -> list[Registered]:
            store.registered = registered  # type: ignore[method-assign]
            await service.snip("s", SnipRequest(rules=("errors",)))
            return await registered(key)

        store.registered = meanwhile  # type: ignore[method-assign]
        done = await service.snip("s", SnipRequest(uuids=(uuids[5],)))
        assert (done.executed, done.status, done.reason) == (False, "failed", "base_changed")
        assert "ALPHA" in str(await everything(service, "s"))


async def test_the_status_tells_what_could_be_snipped_where_it_is_asked_and_notes_where_it_is_much(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as service:
        await filled(service)
        plain = await service.status("s")
        assert plain.snippable_tokens is None
        asked = await service.status("s", detail=True)
        assert asked.snippable_tokens is not None
        assert asked.snippable_tokens > plain.message_tokens / 10
        assert any("snip_messages" in warning for warning in asked.warnings)
        done = await service.snip("s", SnipRequest(rules=("errors", "stale_reads")))
        assert done.tokens_freed == asked.snippable_tokens
        empty = await service.status("s", detail=True)
        assert empty.snippable_tokens == 0
        assert not any("snip_messages" in warning for warning in empty.warnings)


async def test_a_small_share_is_told_without_a_note(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await filled(service)
        await service.append_messages([{"role": "assistant", "content": "a long story " * 9_000}], "s")
        asked = await service.status("s", detail=True)
        assert asked.snippable_tokens
        assert not any("snip_messages" in warning for warning in asked.warnings)
