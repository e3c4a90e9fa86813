"""The processes of the kill storm: each writes, compacts or reads the archive until it is killed.

    python -m tests.faults.storm_child FOLDER

loads everything once, forks a process for each line `start NAME SEED` of its input and answers its id; `kill ID`
kills one in the middle of whatever it does, and answers how it ended. So a restart takes no second of loading, and
the storm has its kills in the work and not before it. Logs lie in the folder, as does the archive.

A log is JSON, a line for what is about to be done and one for what the archive acknowledged. The log is neither
buffered nor synced: what a killed process wrote is there, as that needs no disk.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.paging import joined
from mcp_compact.service.prepare import best_counter
from mcp_compact.service.service import Service
from mcp_compact.testing import tool_result
from mcp_compact.wiring import open_service, tokenizer
from tests.problems import problems

SHARED_SESSION = "both"
"""Both writers append to this one; each has one of its own as well."""
WRITERS = ("w0", "w1")
SESSIONS = (*WRITERS, SHARED_SESSION)
EXPECTED = "context_changed"
"""A page that is asked for after its context was compacted."""


async def everything(service: Service, session: str) -> list[dict[str, Any]]:
    """The whole live context, page by page."""
    page = await service.messages(session)
    pages: list[Mapping[str, Any]] = list(page.messages)
    while page.next_cursor:
        page = await service.messages(session, cursor=page.next_cursor)
        pages += page.messages
    return joined(pages)


class Log:
    """A file of JSON lines that survives the process."""

    def __init__(self, path: Path) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, **line: Any) -> None:
        os.write(self.file, json.dumps(line).encode() + b"\n")


def lines_of(path: Path) -> list[dict[str, Any]]:
    """What a log holds; a last line that the kill cut off was never written whole."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def exchange(mark: str) -> Iterator[dict[str, Any]]:
    """Four messages, each naming itself: a request, a call, its result and an answer."""
    yield {"role": "user", "content": f"<{mark}.0> please look at module {mark}"}
    call = {"type": "tool_use", "id": f"t-{mark}", "name": "Read", "input": {"file_path": f"src/{mark}.py"}}
    yield {"role": "assistant", "content": [{"type": "text", "text": f"<{mark}.1> reading"}, call]}
    yield {"role": "user", "content": [tool_result(f"t-{mark}", f"<{mark}.2>\n" + f"line of {mark} = value\n" * 60)]}
    yield {"role": "assistant", "content": [{"type": "text", "text": f"<{mark}.3> the module is in order"}]}


async def write(service: Service, log: Log, name: str, chance: random.Random, made: int) -> None:
    """Exchange after exchange, in one append or in several; a kill may leave any of them unfinished."""
    while True:
        session = chance.choice((name, SHARED_SESSION))
        mark = f"{name}-{made}"
        made += 1
        messages = list(exchange(mark))
        size = chance.choice((1, 1, 2, 4))
        for start in range(0, 4, size):
            part = messages[start : start + size]
            marks = [f"{mark}.{at}" for at in range(start, start + len(part))]
            log.write(about_to=marks, session=session, number=made)
            done = await service.append_messages(part, session)
            log.write(acknowledged=marks, session=session, uuids=done.uuids)


async def compact(service: Service, log: Log, chance: random.Random) -> None:
    """Compactions to a small target, clearings and undos, of any session."""
    while True:
        session = chance.choice(SESSIONS)
        match chance.choice(("compact", "compact", "clear", "undo")):
            case "compact":
                call = CompactCall(trigger="manual", force=True, target_tokens=chance.choice((1_500, 4_000)))
                status = (await service.compact(session, call)).status
            case "clear":
                request = MicroRequest(mode=MicroMode.ALL, keep=chance.randrange(3))
                status = "cleared " + (await service.microcompact(session, request)).status
            case _:
                status = (await service.undo(session)).status
        log.write(did=status, session=session)


async def read(service: Service, log: Log, chance: random.Random) -> None:
    """The whole live context, page by page: valid at any moment."""
    while True:
        session = chance.choice(SESSIONS)
        try:
            messages = await everything(service, session)
            await service.search("module", session_id=session)
        except CallerError as error:
            if error.code != EXPECTED:
                raise
            log.write(read=error.code, session=session)
        else:
            log.write(read=len(messages), session=session, problems=problems(messages))


async def play(folder: Path, name: str, seed: str) -> None:
    """One role, until the process is killed."""
    chance = random.Random(seed)
    path = folder / f"{name}.log"
    made = max((line.get("number", 0) for line in lines_of(path)), default=0)
    log = Log(path)
    settings = replace(load_settings({}), db=folder / "a.db", hook_entry_points=False)
    async with open_service(settings) as service:
        log.write(started=name)
        match name:
            case "compactor":
                await compact(service, log, chance)
            case "reader":
                await read(service, log, chance)
            case _:
                await write(service, log, name, chance, made)


def start(folder: Path, name: str, seed: str) -> int:
    """Fork one process. It has no thread and no event loop yet, and opens the archive itself."""
    process = os.fork()
    if process:
        return process
    try:
        errors = os.open(folder / f"{name}.err", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        anyio.run(play, folder, name, seed)
    except BaseException:  # noqa: BLE001 - whatever it was is shown, and never goes on in the parent's place
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(1)


def kill(process: int) -> str:
    """`killed`, or with what code it had ended by itself, which it never should."""
    ended, code = os.waitpid(process, os.WNOHANG)
    if ended:
        return f"ended by itself with {os.waitstatus_to_exitcode(code)}"
    os.kill(process, signal.SIGKILL)
    _, code = os.waitpid(process, 0)
    return "killed" if os.waitstatus_to_exitcode(code) == -signal.SIGKILL else f"ended with {code}"


def serve(folder: Path) -> None:
    """Start and kill as the input says; at its end all that still run are killed."""
    best_counter(tokenizer())
    running: set[int] = set()
    while line := sys.stdin.readline():
        match line.split():
            case ["start", name, seed]:
                running.add(process := start(folder, name, seed))
                answer = str(process)
            case ["kill", number]:
                running.discard(int(number))
                answer = kill(int(number))
            case _:
                answer = "unknown"
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()
    for process in running:
        kill(process)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
