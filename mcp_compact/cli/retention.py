"""`mcp-compact retention`: remove sessions that are older than a setting says. Off unless it is set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing

from mcp_compact import ancestors
from mcp_compact.adapters.sqlite.operations.backups import known_backups
from mcp_compact.adapters.sqlite.operations.forgetting import forget
from mcp_compact.adapters.sqlite.operations.growth import SessionSize, keys, past
from mcp_compact.cli.archive import opened, require_database
from mcp_compact.cli.forget import agreed
from mcp_compact.cli.output import print_json
from mcp_compact.cli.text import age, count, shown, size
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.service.service import LOCAL

DAY_MS = 24 * 3600 * 1000
SHOWN = 20


def run(arguments: argparse.Namespace) -> int:
    """Show what would go, ask, and remove it."""
    from mcp_compact.wiring import system_clock

    settings = load_settings()
    days = arguments.days or settings.retention_days
    if not days:
        raise CallerError(
            "retention_off",
            "Nothing is removed by age: MCP_COMPACT_RETENTION_DAYS is not set.",
            "Set it, or name an age once: `mcp-compact retention --days 180`.",
        )
    require_database(settings)
    now_ms = system_clock().now_ms()
    with closing(opened(settings)) as conn:
        going, used = past(conn, LOCAL, now_ms - days * DAY_MS, ancestors.is_alive)
        if not arguments.json:
            print("\n".join(_lines(going, used, days, now_ms)))
        if going and not (arguments.yes or arguments.dry_run or agreed()):
            raise CallerError("not_agreed", "Nothing was removed.", "--yes removes it without asking.")
        # Somebody may have gone on with one while the person was asked.
        still, _ = past(conn, LOCAL, now_ms - days * DAY_MS, ancestors.is_alive)
        going = [item for item in going if item in still]
        removed = 0 if arguments.dry_run or not going else forget(conn, keys(going))
    backups = [str(path) for path in known_backups(settings.db)]
    if arguments.json:
        names = [item.session_id for item in going]
        print_json(
            {
                "days": days,
                "forgotten": [] if arguments.dry_run else names,
                "would_forget": names if arguments.dry_run else [],
                "in_use": [item.session_id for item in used],
                "records": removed,
                "text_bytes": sum(item.text for item in going),
                "backups": backups,
            }
        )
    elif going:
        print("Nothing was removed (--dry-run)." if arguments.dry_run else f"Removed: {count(removed, 'record')}.")
        if backups and not arguments.dry_run:
            print("Backups still hold them:", *(f"  {shown(path)}" for path in backups), sep="\n")
    return 0


def _lines(going: Sequence[SessionSize], used: Sequence[SessionSize], days: int, now_ms: int) -> list[str]:
    kept = (
        [f"  {count(len(used), 'session')} of that age stay: in use, or of the family of one that stays"]
        if used
        else []
    )
    if not going:
        return [f"No session is older than {count(days, 'day')}; nothing goes.", *kept]
    text = size(sum(item.text for item in going))
    names = [
        f"  {shown(item.session_id)}  {size(item.text)}, at work {age(item.active_ms, now_ms)}  {shown(item.title)}"
        for item in going[:SHOWN]
    ]
    more = [f"  and {len(going) - SHOWN:,} more"] if len(going) > SHOWN else []
    what = f"{count(len(going), 'session')} older than {count(days, 'day')}"
    return [f"{what}, {text} of text: all of it goes. There is no undo.", *names, *more, *kept]
