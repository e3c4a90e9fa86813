"""Sessions as a whole: made, listed, forked, removed; and the list of what was done to them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.compaction.snip import SnipRequest
from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.markers import Marker, MarkerKind
from mcp_compact.ports.store import SessionFacts
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.service import Service
from mcp_compact.service.session_results import BoundaryLine
from mcp_compact.service.sessions import MOST_BOUNDARIES, states_of
from mcp_compact.testing import FixedClock
from tests.problems import problems
from tests.service.test_every_transcript import everything
from tests.service.test_summaries import conversation, opened

COMPACT = CompactCall(trigger="manual", force=True, target_tokens=6_000)


async def boundaries(service: Service, session_id: str = "s") -> tuple[BoundaryLine, ...]:
    return (await service.boundaries(session_id)).boundaries


def further() -> list[dict[str, Any]]:
    """Another conversation: one that is sent again would be recognised."""
    text = re.sub(r'"t(\d+)"', r'"u\1"', json.dumps(conversation()).replace("module", "part"))
    again: list[dict[str, Any]] = json.loads(text)
    return again


async def test_a_session_is_made_empty_with_what_is_known_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        facts = SessionFacts(
            title="Parser", model="claude-sonnet-4-5", context_window=100_000, cwd="/p", overhead_tokens=9
        )
        made = await service.create_session("s", facts)
        assert (made.session_id, made.status, made.context_window, made.window_known) == ("s", "created", 100_000, True)
        status = await service.status("s")
        assert (status.live_messages, status.overhead_tokens, status.model) == (0, 9, "claude-sonnet-4-5")
        await service.append_messages(conversation(1), "s")
        assert (await service.status("s")).live_messages > 0


async def test_making_a_session_that_is_there_changes_nothing_and_says_so(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(1), "s", SessionFacts(model="gpt-5"))
        before = await service.status("s")
        again = await service.create_session("s", SessionFacts(model="claude-sonnet-4-5", context_window=9))
        assert (again.status, again.model) == ("exists", "gpt-5")
        assert again.warnings
        assert await service.status("s") == before


async def test_a_session_without_an_id_gets_one(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        first, second = await service.create_session(), await service.create_session(" ")
        assert first.session_id != second.session_id
        assert (await service.status(first.session_id)).owner == "loop"


@pytest.mark.parametrize(
    ("session_id", "facts", "code"),
    [
        ("s", SessionFacts(owner="nobody"), "bad_owner"),
        ("s", SessionFacts(context_window=-1), "bad_window"),
        ("s", SessionFacts(title="x" * 1_001), "too_long"),
        ("s", SessionFacts(model="x" * 1_001), "too_long"),
        ("a\nb", SessionFacts(), "bad_session_id"),
        ("x" * 201, SessionFacts(), "bad_session_id"),
    ],
)
async def test_what_no_session_can_be_is_refused(
    tmp_path: Path, session_id: str, facts: SessionFacts, code: str
) -> None:
    async with opened(tmp_path) as service:
        with pytest.raises(CallerError) as raised:
            await service.create_session(session_id, facts)
        assert raised.value.code == code
        assert await service.sessions() == []


async def test_a_deleted_session_is_gone_with_memory_and_search_and_its_fork_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(5), "s")
        await service.update_memory("s", "# Notes\n\n## Task\nMend rule_7.\n")
        await service.fork_session("s", new_session_id="fork")
        records = (await service.status("s")).archived_records
        done = await service.delete_session("s")
        assert (done.status, done.records) == ("deleted", records)
        with pytest.raises(CallerError, match="There is no session"):
            await service.status("s")
        assert {hit.session_id for hit in (await service.search("rule_7")).hits} == {"fork"}
        assert problems(await everything(service, "fork")) == []
        with pytest.raises(CallerError, match="There is no session"):
            await service.delete_session("s")


async def test_only_the_own_namespace_is_deleted(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(1), "s")
        other = replace(service, namespace="tenant")
        with pytest.raises(CallerError, match="There is no session"):
            await other.delete_session("s")
        await other.append_messages(conversation(2), "s")
        await other.delete_session("s")
        assert (await service.status("s")).live_messages > 0


async def test_a_fork_begins_with_the_same_context_and_goes_its_own_way(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        await service.compact("s", COMPACT)
        mine = await everything(service, "s")
        fork = await service.fork_session("s")
        status = await service.status(fork.session_id)
        assert (fork.status, fork.parent_session_id, fork.tokens) == ("forked", "s", status.message_tokens)
        assert await everything(service, fork.session_id) == mine
        await service.append_messages([{"role": "assistant", "content": "only here"}], fork.session_id)
        assert await everything(service, "s") == mine
        line = next(line for line in await service.sessions() if line.session_id == fork.session_id)
        assert (line.is_fork, line.parent_session_id) == (True, "s")
        assert not next(line for line in await service.sessions() if line.session_id == "s").is_fork


async def test_a_fork_can_end_at_an_earlier_message(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        added = await service.append_messages(conversation(3), "s")
        fork = await service.fork_session("s", new_session_id="early", up_to=added.uuids[2])
        assert fork.live_messages == 3
        assert await everything(service, "early") == (await everything(service, "s"))[:3]


async def test_forks_of_what_is_not_there_or_onto_what_is_are_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(1), "s")
        await service.append_messages(conversation(1), "taken")
        for arguments, code in (
            ({"new_session_id": "taken"}, "session_exists"),
            ({"new_session_id": "s"}, "session_exists"),
            ({"up_to": "nothing"}, "unknown_message"),
        ):
            with pytest.raises(CallerError) as raised:
                await service.fork_session("s", **arguments)
            assert raised.value.code == code
        with pytest.raises(CallerError, match="There is no session"):
            await service.fork_session("nobody")
        assert {line.session_id for line in await service.sessions()} == {"s", "taken"}


async def test_pages_of_sessions_are_together_all_of_them_also_where_times_are_equal(tmp_path: Path) -> None:
    clock = FixedClock()
    async with opened(tmp_path, clock=clock) as service:
        for number in range(25):
            clock.at_ms += number % 5 == 0
            await service.create_session(f"s{number}", SessionFacts(cwd="/p" if number % 2 else "/q", title="t" * 900))
        for cwd, expected in ((None, 25), ("/p", 12), ("/nowhere", 0)):
            seen: list[str] = []
            cursor = ""
            while True:
                page = await service.sessions_page(cwd=cwd, limit=4, cursor=cursor)
                assert len(page.sessions) <= 4
                assert all(len(line.title) == 200 for line in page.sessions)
                seen += [line.session_id for line in page.sessions]
                cursor = page.next_cursor
                if not cursor:
                    break
            assert len(seen) == len(set(seen)) == expected
            assert seen == [line.session_id for line in await service.sessions(cwd=cwd)]


@pytest.mark.parametrize("cursor", ["x", "1", "1:x", ":", "-1:2", "9" * 400 + ":1", "\u0663:\u0661x"])
async def test_a_cursor_that_nobody_gave_is_refused(tmp_path: Path, cursor: str) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(1), "s")
        with pytest.raises(CallerError, match="not one that this tool gave"):
            await service.sessions_page(cursor=cursor)
        if not cursor.isdecimal():
            with pytest.raises(CallerError, match="not one that this tool gave"):
                await service.boundaries("s", cursor=cursor)


async def test_boundaries_tell_what_was_done_and_what_is_in_effect(tmp_path: Path) -> None:
    clock = FixedClock()
    async with opened(tmp_path, clock=clock) as service:
        await service.append_messages(conversation(), "s")
        assert await boundaries(service) == ()
        micro = await service.microcompact("s", MicroRequest(mode=MicroMode.ALL, keep=20))
        clock.at_ms += 1_000
        compacted = await service.compact("s", COMPACT)
        clock.at_ms += 1_000
        snip = await service.snip("s", SnipRequest(rules=("tool:Read",)))
        newest, boundary, oldest = await boundaries(service)
        assert [line.state for line in (newest, boundary, oldest)] == ["current", "current", "earlier"]
        assert (oldest.uuid, oldest.kind, oldest.cleared) == (micro.marker_uuid, "microcompact_boundary", 10)
        assert (oldest.tokens_before, oldest.tokens_after) == (micro.tokens_before, micro.tokens_after)
        assert (boundary.uuid, boundary.kind, boundary.trigger) == (
            compacted.boundary_uuid,
            "compact_boundary",
            "manual",
        )
        assert (boundary.strategy, boundary.native) == ("session_memory", False)
        assert (boundary.tokens_before, boundary.tokens_after) == (compacted.tokens_before, compacted.tokens_after)
        assert boundary.preserved > 0
        assert (newest.uuid, newest.snipped) == (snip.marker_uuid, len(snip.messages))
        assert (newest.tokens_before, newest.tokens_after) == (snip.tokens_before, snip.tokens_after)
        assert oldest.time < boundary.time < newest.time


async def test_an_undo_is_listed_and_what_it_took_back_is_marked(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        first = await service.compact("s", COMPACT)
        await service.append_messages([{"role": "assistant", "content": "done"}, *further()], "s")
        second = await service.compact("s", COMPACT)
        await service.snip("s", SnipRequest(rules=("tool:Read",)))
        await service.undo("s")
        undo, snip, newer, older = await boundaries(service)
        assert (undo.kind, undo.state, undo.undone_uuid) == ("undo", "done", second.boundary_uuid)
        assert (snip.state, newer.state, older.state) == ("undone", "undone", "current")
        assert older.uuid == first.boundary_uuid
        await service.undo("s")
        assert [line.state for line in await boundaries(service)] == ["done", "done", "undone", "undone", "undone"]
        await service.compact("s", COMPACT)
        assert [line.state for line in await boundaries(service)] == [
            "current",
            "done",
            "done",
            "undone",
            "undone",
            "undone",
        ]


async def test_a_long_list_of_boundaries_comes_in_pages(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(
            [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}] * 2, "s"
        )
        for _ in range(MOST_BOUNDARIES // 2 + 1):
            snip = await service.snip("s", SnipRequest(uuids=await _one(service), force=True))
            assert snip.executed, snip.detail
            await service.undo("s")
        page = await service.boundaries("s")
        rest = await service.boundaries("s", cursor=page.next_cursor)
        assert (len(page.boundaries), len(rest.boundaries), page.total) == (MOST_BOUNDARIES, 2, MOST_BOUNDARIES + 2)
        assert rest.next_cursor == ""
        assert len({line.uuid for line in (*page.boundaries, *rest.boundaries)}) == page.total


async def _one(service: Service) -> tuple[MessageUuid, ...]:
    return (MessageUuid((await service.search("hello", session_id="s")).hits[0].uuid),)


async def test_a_client_s_own_boundary_is_listed_as_such_and_as_rewound_where_the_client_went_back(
    tmp_path: Path,
) -> None:
    def record(number: int, parent: str | None, **fields: object) -> str:
        base = {
            "uuid": f"u{number}",
            "parentUuid": parent,
            "sessionId": "s",
            "timestamp": f"2026-01-01T00:00:{number:02d}.000Z",
        }
        return json.dumps(base | fields)

    lines = [
        record(0, None, type="user", message={"role": "user", "content": "hi"}),
        record(
            1, "u0", type="assistant", message={"role": "assistant", "content": [{"type": "text", "text": "hello"}]}
        ),
        record(
            2,
            None,
            type="system",
            subtype="compact_boundary",
            logicalParentUuid="u1",
            compactMetadata={"trigger": "auto", "preTokens": 900},
        ),
        record(3, "u2", type="user", isCompactSummary=True, message={"role": "user", "content": "what was said"}),
        record(4, "u3", type="user", message={"role": "user", "content": "go on"}),
    ]
    async with opened(tmp_path) as service:
        await service.import_content("\n".join(lines))
        [line] = await boundaries(service)
        assert (line.uuid, line.native, line.state) == ("u2", True, "current")
        assert (line.trigger, line.strategy, line.tokens_before, line.tokens_after) == ("auto", "native", 900, None)
        back = record(5, "u1", type="user", message={"role": "user", "content": "something else"})
        await service.import_content(back, session_id="s")
        [line] = await boundaries(service)
        assert line.state == "rewound"


def test_what_was_undone_on_a_branch_that_was_left_is_undone():
    def marker(seq: int, kind: MarkerKind, parent: int | None, restores: int | None = None) -> Marker:
        return Marker(MessageUuid(f"m{seq}"), seq, kind, parent, seq, restores_seq=restores)

    markers = [
        marker(1, MarkerKind.MICRO, None),
        marker(2, MarkerKind.COMPACT, 1),
        marker(3, MarkerKind.SNIP, 2),
        marker(4, MarkerKind.UNDO, 3, restores=1),
        marker(5, MarkerKind.COMPACT, 1),
        marker(6, MarkerKind.MICRO, 5),
    ]
    assert states_of(markers, 6) == {1: "earlier", 2: "undone", 3: "undone", 4: "done", 5: "current", 6: "current"}
    assert states_of(markers, 0) == {1: "rewound", 2: "undone", 3: "undone", 4: "done", 5: "rewound", 6: "rewound"}
    assert states_of([], 0) == {}
