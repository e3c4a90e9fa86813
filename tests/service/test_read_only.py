"""What can be asked of an archive on a disk that cannot be written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mcp_compact.config import load_settings
from mcp_compact.wiring import open_service
from tests.adapters.sqlite.test_disks import mounted, needs_mounts
from tests.service.test_summaries import conversation

PLANNED = """
import anyio, json, sys
from dataclasses import replace
from pathlib import Path
from mcp_compact.config import load_settings
from mcp_compact.errors import ServerError
from mcp_compact.service.jobs import CompactCall
from mcp_compact.wiring import open_service
call = CompactCall(trigger="manual", force=True, target_tokens=6_000)
async def main():
    settings = replace(load_settings({}), db=Path(sys.argv[1]) / "a.db", hook_entry_points=False)
    async with open_service(settings) as service:
        planned = await service.compact("s", replace(call, dry_run=True))
        asked = replace(call, dry_run=True, custom_instructions="dwell", agent_writes=True)
        waits = await service.compact("s", asked)
        try:
            code = (await service.compact("s", call)).status
        except ServerError as error:
            code = error.code
        print(json.dumps({
            "planned": [planned.status, planned.plan_id, planned.tokens_after < planned.tokens_before],
            "spans": [span.fate for span in planned.spans], "next": planned.next,
            "waits": waits.status, "compacted": code,
        }))
anyio.run(main)
"""


@needs_mounts
async def test_a_dry_run_plans_where_nothing_can_be_written_and_says_that_the_plan_is_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    async with open_service(replace(load_settings({}), db=folder / "a.db", hook_entry_points=False)) as service:
        await service.append_messages(conversation(), "s")
    found = mounted(folder, 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"', PLANNED)
    assert "could not be kept: The store cannot be written." in found.pop("next")
    assert found == {
        "planned": ["dry_run", "", True],
        "spans": ["summarised", "kept"],
        "waits": "dry_run",
        "compacted": "store_read_only",
    }
