"""Short looks into the archive: status, sessions, search, memory; and undo."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from mcp_compact.cli.archive import ask, here, listed_ids, named_session
from mcp_compact.cli.output import print_json
from mcp_compact.cli.picture import gauge, scaled, single
from mcp_compact.cli.terminal import Terminal, terminal
from mcp_compact.cli.text import age, count, cut, quoted, share, shown, shown_line, size, table, tokens
from mcp_compact.config import load_settings
from mcp_compact.messages.codec import parse_time
from mcp_compact.service.results import Picture, SearchHit, SearchResult, SessionLine, Status
from mcp_compact.service.searching import BEST, NEWEST, Narrowed
from mcp_compact.service.service import Service

LEVELS = {
    "ok": "nothing to do",
    "warning": "compaction will soon be due",
    "compact": "compaction is due",
    "hard": "compact now: the next answers may not fit",
}


DIFFERS_PERCENT = 1
"""What a client sends and what the archive counts differ by less than this where they are the same context."""

SEARCHES = 30
"""A search that ran out of time goes on so often: about a minute."""


# ---------------------------------------------------------------- status


def status(arguments: argparse.Namespace) -> int:
    """How full a session's context is, and of what."""

    async def work(service: Service) -> tuple[Status, Picture, int]:
        session_id = await named_session(service, arguments.session)
        return await service.status(session_id), await service.picture(session_id), service.deps.clock.now_ms()

    state, picture, now_ms = ask(work)
    if arguments.json:
        print_json({"status": state, "picture": picture})
    else:
        print("\n".join(status_lines(state, picture, now_ms, terminal())))
    return 0


def status_lines(state: Status, picture: Picture, now_ms: int, screen: Terminal) -> list[str]:
    """A session's status to be read: the level, a bar of the window, the context by kind, counters."""
    window = tokens(state.context_window) + ("" if state.window_known else " (assumed)")
    used = share(state.tokens, state.context_window)
    marks = (
        f": warning at {tokens(state.warning_at)}",
        f" | compaction at {tokens(state.compact_at)}",
        f" hard stop at {tokens(state.hard_at)}",
    )
    lines = [
        screen.bold(f"Session {shown(state.session_id)}") + (f"  {shown(state.model)}" if state.model else ""),
        f"  {tokens(state.tokens)} of {window} tokens ({used}), level {state.level}: {LEVELS[state.level]}",
        f"  {gauge(state.tokens, state.warning_at, state.compact_at, state.context_window, screen)}",
        f"  {' '.join(marks)}",
        "",
        *_context_lines(state),
        *single(scaled(picture.slices, state.message_tokens), screen),
        "",
        f"  archive   {count(state.archived_records, 'record')}, {size(state.archived_bytes)}",
        f"  memory    {_memory_line(state)}",
        f"  compacted {_compactions(state, now_ms)}",
    ]
    return [*lines, *(f"  note      {cut(shown(text), 150)}" for text in state.warnings)]


def _context_lines(state: Status) -> list[str]:
    """What the picture below is of, and why its size is not the one above where a client keeps its own history."""
    held = f"{count(state.live_messages, 'message')}, {tokens(state.message_tokens)} tokens"
    overhead = f", and {tokens(state.overhead_tokens)} of overhead" if state.overhead_tokens else ""
    whole = state.message_tokens + state.overhead_tokens
    if state.owner != "client" or 100 * abs(whole - state.tokens) <= DIFFERS_PERCENT * state.tokens:
        return [f"  The live context: {held}{overhead}"]
    return [
        f"  {tokens(state.tokens)} is what the client itself sends, by its last request; only its own",
        f"  compaction changes that. The archive's live context differs, {tokens(whole)} in all:",
        f"  {held}{overhead}",
    ]


def _memory_line(state: Status) -> str:
    if not state.memory_version:
        return "none yet; a compaction writes it"
    newer = count(state.uncovered_messages, "message")
    return f"{tokens(state.memory_tokens)} tokens, version {state.memory_version}, {newer} since"


def _compactions(state: Status, now_ms: int) -> str:
    if not state.compactions:
        return "never"
    at_ms = parse_time(state.last_compaction)
    times = "once" if state.compactions == 1 else f"{state.compactions} times"
    return times + (f", last {age(at_ms, now_ms)}" if at_ms is not None else "")


# ---------------------------------------------------------------- sessions


def sessions(arguments: argparse.Namespace) -> int:
    """List sessions."""

    async def work(service: Service) -> tuple[list[SessionLine], int]:
        lines = await service.sessions(cwd=None if arguments.all else here(), limit=arguments.limit)
        return lines, service.deps.clock.now_ms()

    lines, now_ms = ask(work)
    if arguments.json:
        warnings = load_settings().warnings
        print_json({"cwd": None if arguments.all else here(), "sessions": lines, "warnings": warnings})
        return 0
    for text in load_settings().warnings:
        print(f"note: {cut(shown(text), 150)}", file=sys.stderr)
    if not lines:
        print("There is no session yet." if arguments.all else "No session of this folder; --all lists every folder's.")
        return 0
    print("\n".join(session_lines(lines, now_ms, terminal(wide=True), folders=arguments.all)))
    if len(lines) == arguments.limit:
        print(f"The last {arguments.limit}; --limit shows more.")
    return 0


def session_lines(lines: list[SessionLine], now_ms: int, screen: Terminal, *, folders: bool) -> list[str]:
    """A table of sessions; a sub-agent's session is indented where it stands below its parent."""
    ids = listed_ids(lines)
    below = _below_parents(lines)
    heading = ("session", "updated", "messages", "tokens", "level", "title")
    rows = [heading, *(_session_row(line, ids, below, now_ms, folders=folders) for line in lines)]
    first, *rest = table(rows, right=(2, 3), columns=screen.columns, stretch=5)
    return [screen.faint(first), *rest]


def _below_parents(lines: list[SessionLine]) -> set[str]:
    """The sessions that are shown below their parents: with nothing between but other children of its family."""
    family: set[str] = set()
    below: set[str] = set()
    for line in lines:
        if line.parent_session_id in family and not line.is_fork:
            below.add(line.session_id)
        else:
            family = set()
        family.add(line.session_id)
    return below


def _session_row(
    line: SessionLine, ids: dict[str, str], below: set[str], now_ms: int, *, folders: bool
) -> tuple[str, ...]:
    at_ms = parse_time(line.updated)
    title = shown(line.title) or "(no title)"
    if folders and line.cwd:
        title = f"{shown(line.cwd).rstrip('/').rsplit('/', 1)[-1]}: {title}"
    return (
        ("  " if line.session_id in below else "") + ids[line.session_id],
        age(at_ms, now_ms) if at_ms is not None else "",
        f"{line.messages:,}",
        tokens(line.tokens),
        line.level,
        title,
    )


# ---------------------------------------------------------------- search


def search(arguments: argparse.Namespace) -> int:
    """Find messages by their words."""
    text = " ".join(arguments.text)

    async def work(service: Service) -> tuple[Any, int]:
        session_id = await named_session(service, arguments.session) if arguments.session else ""
        cwd = None if arguments.all or session_id else here()
        found = await _searched(service, text, session_id, cwd, arguments)
        return found, service.deps.clock.now_ms()

    found, now_ms = ask(work)
    if arguments.json:
        print_json(found)
        return 0
    if not found.hits:
        narrow = not (arguments.all or arguments.session)
        print("Nothing holds all of these words" + (" in this folder; --all searches every folder." if narrow else "."))
    for hit in found.hits:
        print("\n".join(hit_lines(hit, now_ms, terminal())))
    for note in (found.note, "There is more: --limit shows it." if found.next_cursor else ""):
        if note:
            print(note)
    return 0


async def _searched(
    service: Service, text: str, session_id: str, cwd: str | None, arguments: argparse.Namespace
) -> SearchResult:
    """The first hits; where time ran out before there were enough, the search goes on for a while."""
    side = "before" if arguments.before_boundary else "after" if arguments.after_boundary else ""
    order = BEST if arguments.best else NEWEST
    narrowed = Narrowed(arguments.role or "", arguments.tool, arguments.since, arguments.until, side, order)
    hits: list[SearchHit] = []
    cursor = ""
    for _ in range(SEARCHES):
        left = arguments.limit - len(hits)
        found = await service.search(text, session_id=session_id, limit=left, cwd=cwd, narrowed=narrowed, cursor=cursor)
        hits, cursor = [*hits, *found.hits], found.next_cursor
        if found.complete or not cursor or len(hits) >= arguments.limit:
            break
    return replace(found, hits=tuple(hits))


def hit_lines(hit: SearchHit, now_ms: int, screen: Terminal) -> list[str]:
    """A hit: where it stands, and the words around it."""
    at_ms = parse_time(hit.time)
    where = "in the live context" if hit.in_context else "in the archive only"
    head = [hit.session_id, hit.tool or hit.role, age(at_ms, now_ms) if at_ms is not None else "", where, hit.uuid]
    title = "  ".join(shown(part) for part in head if part)
    return [screen.faint(cut(title, 150)), f"  {cut(shown(hit.snippet), 240)}"]


# ---------------------------------------------------------------- memory, undo


def memory(arguments: argparse.Namespace) -> int:
    """Show a session's memory."""

    async def work(service: Service) -> Any:  # noqa: ANN401 (a MemoryResult)
        return await service.get_memory(await named_session(service, arguments.session))

    found = ask(work)
    if arguments.json:
        print_json(found)
    elif found.is_empty:
        print(f"Session {shown(found.session_id)} has no memory yet; a compaction writes it.")
    else:
        print("\n".join(shown_line(line) for line in found.content.splitlines()))
    return 0


def undo(arguments: argparse.Namespace) -> int:
    """Take back the last compaction. 1 where there is none."""

    async def work(service: Service) -> tuple[Any, Status]:
        session_id = await named_session(service, arguments.session)
        return await service.undo(session_id), await service.status(session_id)

    done, state = ask(work)
    if arguments.json:
        print_json(done)
    elif done.status == "undone":
        print("\n".join(_undone_lines(done, state)))
    else:
        print("There is no compaction to undo; nothing changed.")
    return 0 if done.status == "undone" else 1


def _undone_lines(done: Any, state: Status) -> list[str]:  # noqa: ANN401 (an UndoResult)
    change = f"{tokens(done.tokens_before)} -> {tokens(done.tokens_after)} tokens"
    if state.owner != "client":
        return [f"Undone: {change}. What came since is kept."]
    return [
        f"Undone in the archive: {change}. What came since is kept.",
        "Only the archive's view changed: the client keeps its own history and goes on sending what it sent.",
        f"To go on with this context: mcp-compact resume {quoted(state.session_id)}",
    ]
