"""What left a session's context, counted over its whole archive."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcp_compact.errors import CallerError
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.session_results import LossAudit
from mcp_compact.testing import tool_result
from tests.service.test_summaries import conversation, opened

SMALL = CompactCall(trigger="manual", force=True, target_tokens=900)


def by_kind(found: LossAudit) -> dict[str, tuple[int, int]]:
    return {kind.kind: (kind.left, kind.in_context) for kind in found.kinds}


async def test_before_a_compaction_nothing_has_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        found = await service.audit_loss("s")
        assert (found.messages_left, found.next) == (0, "")
        assert set(by_kind(found).values()) == {(0, 0)}


async def test_what_left_is_counted_and_named_with_the_message_that_holds_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        await service.append_messages(conversation(), "s")
        result = await service.compact("s", SMALL)
        assert result.status == "compacted"
        found = await service.audit_loss("s")
        assert found.messages_left == result.loss.records
        kinds = {kind.kind: kind for kind in found.kinds}
        assert (kinds["instructions"].left, kinds["instructions"].in_context) == (1, 1)
        names = kinds["names"]
        assert 0 < names.in_context < names.left
        page = await service.messages("s")
        for lost in names.only_in_archive:
            assert not re.search(rf"\b{re.escape(lost.text)}\b", str(page.messages))
            part = await service.original("s", lost.message_uuid)
            assert lost.text in part.text
        assert "get_original" in found.next


async def test_errors_are_counted_and_keys_are_masked(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "A1b2C3d4" * 11 + "-AAAAAAAA"
    failed = {"type": "tool_use", "id": "e1", "name": "Bash", "input": {"command": "make"}}
    added = [
        {"role": "assistant", "content": [failed]},
        {"role": "user", "content": [tool_result("e1", f"Refused: {key} is no good key here", is_error=True)]},
    ]
    async with opened(tmp_path) as service:
        await service.append_messages([*conversation(3), *added, *conversation(30)[1:]], "s")
        assert (await service.compact("s", SMALL)).status == "compacted"
        found = await service.audit_loss("s")
        assert by_kind(found)["errors"][0] == 1
        assert key not in repr(found)


async def test_an_unknown_session_is_an_error_of_the_caller(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        with pytest.raises(CallerError, match="There is no session"):
            await service.audit_loss("nobody")
