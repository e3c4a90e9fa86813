"""A file that grows belongs to one session, whatever it names further down."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_compact.config import Settings
from mcp_compact.wiring import open_service
from tests.transcripts.samples import SESSION, jsonl, user

OTHER = "5e551011-0000-4000-8000-000000000002"


@pytest.mark.parametrize("stem", ["notes", OTHER])
async def test_what_is_written_on_belongs_to_the_session_that_the_file_was_read_into(tmp_path: Path, stem: str):
    """As in a session that goes on with the copied beginning of another one."""
    path = tmp_path / f"{stem}.jsonl"
    path.write_bytes(jsonl([user("u1", "copied"), user("u2", "copied too", "u1")]))
    async with open_service(Settings(db=tmp_path / "a.db", hook_entry_points=False)) as service:
        first = await service.import_file(path)
        with path.open("ab") as stream:
            stream.write(jsonl([user("u3", "new", "u2", sessionId=OTHER)]))
        second = await service.import_file(path)
        assert (first.session_id, first.stored) == (SESSION, 2)
        assert (second.session_id, second.stored) == (SESSION, 1)
        page = await service.messages(SESSION)
        assert [message["content"] for message in page.messages] == ["copied", "copied too", "new"]
