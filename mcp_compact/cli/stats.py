"""`mcp-compact stats`: how large the archive is, of what, and which sessions hold most."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_compact.adapters.sqlite.operations.growth import SessionSize, Sizes, months, session_sizes, sizes
from mcp_compact.cli.archive import opened, require_database
from mcp_compact.cli.output import plain, print_json
from mcp_compact.cli.picture import bar
from mcp_compact.cli.terminal import Terminal, terminal
from mcp_compact.cli.text import age, count, cut, share, shown, size, table
from mcp_compact.config import load_settings
from mcp_compact.messages.masking import masked

BAR_COLUMNS = 24
MOST_MONTHS = 12


def run(arguments: argparse.Namespace) -> int:
    """Say what the archive holds."""
    from mcp_compact.wiring import system_clock

    settings = load_settings()
    require_database(settings)
    with closing(opened(settings)) as conn:
        whole, found = sizes(conn), session_sizes(conn)
    if arguments.json:
        print_json(_as_json(settings.db, whole, found, arguments.limit))
    else:
        print("\n".join(lines(settings.db, whole, found, arguments.limit, system_clock().now_ms(), terminal())))
    return 0


def _as_json(path: Path, whole: Sizes, found: Sequence[SessionSize], limit: int) -> dict[str, Any]:
    return {
        "path": str(path),
        "bytes": plain(whole) | {"rest": whole.rest, "wal": _wal(path)},
        "sessions": len(found),
        "messages": sum(item.messages for item in found),
        "largest": [replace(item, title=masked(item.title)) for item in found[:limit]],
        "months": [{"month": m, "sessions": number, "text": text} for m, number, text in months(found)],
    }


def lines(
    path: Path, whole: Sizes, found: Sequence[SessionSize], limit: int, now_ms: int, screen: Terminal
) -> list[str]:
    """The account to be read: the file by kind, growth by month, the largest sessions."""
    messages = sum(item.messages for item in found)
    return [
        screen.bold(f"{shown(str(path))}: {size(whole.file)}")
        + f" in {count(len(found), 'session')}, {count(messages, 'message')}",
        *_kinds(whole, _wal(path), screen),
        "",
        *_growth(found, screen),
        *_largest(found[:limit], now_ms, screen),
        *([f"  and {len(found) - limit:,} more; --limit shows them"] if len(found) > limit else []),
    ]


def _kinds(whole: Sizes, wal: int, screen: Terminal) -> list[str]:
    kinds = (
        ("text", whole.text, "what was said, byte for byte"),
        ("rows", whole.rest, "records, calls, results, markers and their indexes"),
        ("index", whole.index, "full-text search"),
        ("memory", whole.memory, "session memories and pins"),
        ("free", whole.free, "used again; `mcp-compact vacuum` gives it back"),
    )
    largest = max(1, *(number for _, number, _ in kinds))
    out = [
        f"  {name:<7}{size(number):>9} {share(number, whole.file):>4} "
        f"{bar(number, largest, BAR_COLUMNS, screen)} {text}".rstrip()
        for name, number, text in kinds
    ]
    return [*out, f"  {'WAL':<7}{size(wal):>9}      not in the file yet"] if wal else out


def _growth(found: Sequence[SessionSize], screen: Terminal) -> list[str]:
    known = months(found)
    if not known:
        return []
    largest = max(1, *(text for _, _, text in known[-MOST_MONTHS:]))
    out = [screen.faint("  text by the month in which its session was last at work")]
    earlier = known[:-MOST_MONTHS]
    if earlier:
        out.append(f"  before   {size(sum(text for _, _, text in earlier)):>9} in {len(earlier)} months")
    for month, number, text in known[-MOST_MONTHS:]:
        out.append(f"  {month}  {size(text):>9} {bar(text, largest, BAR_COLUMNS, screen)} {count(number, 'session')}")
    return [*out, ""]


def _largest(found: Sequence[SessionSize], now_ms: int, screen: Terminal) -> list[str]:
    if not found:
        return []
    rows = [("session", "text", "memory", "messages", "last at work", "title")]
    rows += [
        (
            ("  " if item.is_agent else "") + cut(shown(item.session_id), 24),
            size(item.text),
            size(item.memory),
            f"{item.messages:,}",
            age(item.active_ms, now_ms),
            shown(item.title) or shown(item.cwd),
        )
        for item in found
    ]
    first, *rest = table(rows, right=(1, 2, 3), columns=screen.columns, stretch=5)
    return [screen.faint(first), *rest]


def _wal(path: Path) -> int:
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return 0
