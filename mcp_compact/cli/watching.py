"""`mcp-compact watch`: follows transcripts and imports what is new, for clients without hooks."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp_compact import places
from mcp_compact.cli.archive import ask, here
from mcp_compact.cli.client_folders import SUFFIX, claude_project, claude_projects
from mcp_compact.cli.text import count, shown
from mcp_compact.errors import CallerError, CompactError
from mcp_compact.service.service import Service

CLAUDE_CODE = "claude-code"
CLIENTS = ("claude-code", "codex", "gemini-cli", "pi")
MOST_FILES = 10_000
HEAD_BYTES = 1 << 18
LEFT_ALONE_MS = 3_600_000
"""What was last written longer ago is left alone until it changes: no history is imported unasked."""
SUFFIXES = (SUFFIX, ".json")
PROJECT_ROOT = ".project_root"


@dataclass(slots=True)
class Watch:
    """What is followed, and what was seen of it."""

    roots: tuple[Path, ...]
    project: str
    """Only transcripts of this folder's sessions; empty for all."""
    seen: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Size and time of change when a file was last imported or refused."""
    foreign: set[Path] = field(default_factory=set)
    """Files of other projects, or that are no transcripts."""
    records: int = 0
    sessions: set[str] = field(default_factory=set)


def run(arguments: argparse.Namespace) -> int:
    """Follow transcripts until Ctrl-C or SIGTERM."""
    watch = Watch(tuple(_roots(arguments.what, everywhere=arguments.all)), "" if arguments.all else here())

    async def work(service: Service) -> None:
        await _follow(service, watch, every_s=arguments.every, once=arguments.once)

    print(f"Watching {', '.join(shown(str(root)) for root in watch.roots)}", file=sys.stderr)
    ask(work, create=True)
    print(f"{count(watch.records, 'record')} of {count(len(watch.sessions), 'session')} imported.", file=sys.stderr)
    return 0


def _roots(what: Sequence[str], *, everywhere: bool) -> Iterator[Path]:
    """The folders and files to follow. A client's folder need not be there yet; a path must."""
    for name in what or (CLAUDE_CODE,):
        if name == CLAUDE_CODE:
            yield claude_projects() if everywhere else claude_project(Path(here()))
        elif name in CLIENTS:
            yield from map(Path, places.history_folders()[name])
        else:
            path = Path(name).expanduser()
            if not path.exists():
                raise CallerError(
                    "missing_file", f"There is no file or folder {name!r}.", f"Clients are {', '.join(CLIENTS)}."
                )
            yield path.resolve()


async def _follow(service: Service, watch: Watch, *, every_s: float, once: bool) -> None:
    """Look, wait, look again; a signal ends it, and what was being stored is stored whole or not at all."""
    import anyio

    pass_over_old(watch, service.deps.clock.now_ms())

    async with anyio.create_task_group() as tasks:

        async def until_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()
                    return

        if not once:
            tasks.start_soon(until_signal)
        while True:
            await look(service, watch)
            if once:
                return
            await anyio.sleep(every_s)


async def look(service: Service, watch: Watch) -> None:
    """Import what was written since the last look."""
    for path, facts in changed_files(watch):
        try:
            await _take(service, watch, path)
        except CompactError as error:
            if watch.seen.get(path) is None:
                print(f"left out {shown(str(path))}: {shown(error.message)}", file=sys.stderr)
        watch.seen[path] = facts


def pass_over_old(watch: Watch, now_ms: int) -> None:
    """Leave what nobody has written to lately alone until it changes; files that were named are taken all the same."""
    for path, state in changed_files(watch):
        if path not in watch.roots and state[1] // 1_000_000 < now_ms - LEFT_ALONE_MS:
            watch.seen[path] = state


def changed_files(watch: Watch) -> list[tuple[Path, tuple[int, int]]]:
    """Transcript files that are new or have changed, the oldest change first."""
    found: list[tuple[Path, tuple[int, int]]] = []
    for path in _files(watch.roots):
        try:
            facts = path.stat()
        except OSError:
            continue
        state = (facts.st_size, facts.st_mtime_ns)
        if facts.st_size and watch.seen.get(path) != state and path not in watch.foreign:
            found.append((path, state))
    return sorted(found, key=lambda item: item[1][1])


def _files(roots: Sequence[Path]) -> Iterator[Path]:
    number = 0
    for root in roots:
        for path in [root] if root.is_file() else sorted(root.rglob("*")) if root.is_dir() else []:
            if path == root or (path.suffix in SUFFIXES and path.is_file()):
                number += 1
                if number > MOST_FILES:
                    return
                yield path


async def _take(service: Service, watch: Watch, path: Path) -> None:
    if watch.project and path not in watch.roots and not _is_of(path, watch.project):
        watch.foreign.add(path)
        return
    result = await service.import_file(path)
    watch.sessions.add(result.session_id)
    if result.stored:
        watch.records += result.stored
        print(f"{shown(result.session_id)}: {count(result.stored, 'new record')}", file=sys.stderr, flush=True)


def _is_of(path: Path, project: str) -> bool:
    """Does a transcript tell of work in this folder? Its beginning names the folder, as clients write it.

    Gemini CLI writes the folder into a file above its chats.
    """
    import json

    for folder in list(path.parents)[:3]:
        try:
            return (folder / PROJECT_ROOT).read_text(encoding="utf-8").strip() == project
        except (OSError, ValueError):
            continue
    wanted = json.dumps(project, ensure_ascii=False)[1:-1].encode()
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return False
    return b'"' + wanted + b'"' in head or b'"' + wanted + b"/" in head
