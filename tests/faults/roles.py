"""What the processes of the kill storm do until they are killed: write, compact and read one archive.

Writers go every way there is: two through the library, one through a server over stdio, one as a client that writes its
own transcript and starts hooks and the command line. What was acknowledged to them stands in their logs.

A log is JSON, a line for what is about to be done and one for what was acknowledged. It is neither buffered nor
synced: what a killed process wrote is there, as that needs no disk.
"""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_compact import hook
from mcp_compact.cli.main import main as command_line
from mcp_compact.compaction.micro import MicroMode, MicroRequest
from mcp_compact.compaction.snip import SnipRequest
from mcp_compact.config import Settings, load_settings
from mcp_compact.errors import CallerError
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.paging import joined
from mcp_compact.service.service import Service
from mcp_compact.testing import tool_result
from mcp_compact.wiring import open_service
from tests.faults.stdio_talk import ServerTalk
from tests.problems import problems

ROOT = Path(__file__).resolve().parents[2]
SHARED_SESSION = "both"
"""Three writers append to this one; each has one of its own as well."""
BY_LIBRARY, BY_SERVER, BY_CLIENT = ("w0", "w1"), "w2", "w3"
WRITERS = (*BY_LIBRARY, BY_SERVER, BY_CLIENT)
READERS = ("reader0", "reader1")
COMPACTOR = "compactor"
ROLES = (*WRITERS, *READERS, COMPACTOR)
SESSIONS = (*WRITERS, SHARED_SESSION)
EXPECTED = "context_changed"
"""A page that is asked for after its context was compacted."""
FIRST = "The first words of"


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


def settings_of(folder: Path) -> Settings:
    return replace(load_settings({}), db=folder / "a.db", hook_entry_points=False)


def transcript_of(folder: Path) -> Path:
    """Where the client of the hooks keeps its session."""
    return folder / "client" / "projects" / "-project" / f"{BY_CLIENT}.jsonl"


async def everything(service: Service, session: str) -> list[dict[str, Any]]:
    """The whole live context, page by page."""
    page = await service.messages(session)
    pages: list[Mapping[str, Any]] = list(page.messages)
    while page.next_cursor:
        page = await service.messages(session, cursor=page.next_cursor)
        pages += page.messages
    return joined(pages)


async def play(folder: Path, name: str, seed: str) -> None:
    """One role over the library, until the process is killed."""
    chance = random.Random(seed)
    log = Log(folder / f"{name}.log")
    made = made_before(folder, name)
    async with open_service(settings_of(folder)) as service:
        log.write(started=name)
        if name == COMPACTOR:
            await compact(service, log, chance)
        elif name in READERS:
            await read(service, log, chance)
        else:
            await write(service, log, name, chance, made)


def made_before(folder: Path, name: str) -> int:
    """How many exchanges a writer had begun before it was killed: its marks are never used twice."""
    return max((line.get("number", 0) for line in lines_of(folder / f"{name}.log")), default=0)


# ---------------------------------------------------------------- writing


def exchange(mark: str) -> Iterator[dict[str, Any]]:
    """Four messages, each naming itself: a request, a call, its result and an answer."""
    yield {"role": "user", "content": f"<{mark}.0> please look at module {mark}"}
    call = {"type": "tool_use", "id": f"t-{mark}", "name": "Read", "input": {"file_path": f"src/{mark}.py"}}
    yield {"role": "assistant", "content": [{"type": "text", "text": f"<{mark}.1> reading"}, call]}
    yield {"role": "user", "content": [tool_result(f"t-{mark}", f"<{mark}.2>\n" + f"line of {mark} = value\n" * 60)]}
    yield {"role": "assistant", "content": [{"type": "text", "text": f"<{mark}.3> the module is in order"}]}


def parts(mark: str, chance: random.Random) -> Iterator[tuple[list[str], list[dict[str, Any]]]]:
    """An exchange in one piece or in several; a kill may leave any of them unfinished."""
    messages = list(exchange(mark))
    size = chance.choice((1, 1, 2, 4))
    for start in range(0, 4, size):
        part = messages[start : start + size]
        yield [f"{mark}.{at}" for at in range(start, start + len(part))], part


async def write(service: Service, log: Log, name: str, chance: random.Random, made: int) -> None:
    """Exchange after exchange through the library."""
    while True:
        session = chance.choice((name, SHARED_SESSION))
        made += 1
        for marks, part in parts(f"{name}-{made - 1}", chance):
            log.write(about_to=marks, session=session, number=made)
            done = await service.append_messages(part, session)
            log.write(acknowledged=marks, session=session, uuids=done.uuids)


def write_by_server(folder: Path, name: str, seed: str) -> None:
    """The same through a server of its own, as a client speaks to it over stdio."""
    chance, log, made = random.Random(seed), Log(folder / f"{name}.log"), made_before(folder, name)
    server = ServerTalk(settings_of(folder))
    log.write(started=name)
    while True:
        session = chance.choice((name, SHARED_SESSION))
        made += 1
        for marks, part in parts(f"{name}-{made - 1}", chance):
            log.write(about_to=marks, session=session, number=made)
            done = server.call("append_messages", messages=part, session_id=session)
            log.write(acknowledged=marks, session=session, uuids=done["uuids"])


def client_lines(mark: str, parent: str | None, folder: Path) -> list[dict[str, Any]]:
    """An exchange as a client writes it into its transcript."""
    lines = []
    for at, message in enumerate(exchange(mark)):
        uuid = f"{mark}.{at}"
        line = {"type": message["role"], "uuid": uuid, "parentUuid": parent, "sessionId": BY_CLIENT}
        line |= {"cwd": str(folder), "timestamp": "2026-01-01T00:00:00.000Z"}
        lines.append({**line, "message": {**message, "id": f"m-{mark}"} if at % 2 else message})
        parent = uuid
    return lines


def write_by_client(folder: Path, name: str, seed: str) -> None:
    """A client that writes its transcript; after an answer a hook imports what is new, or the command line does."""
    chance, log, made = random.Random(seed), Log(folder / f"{name}.log"), made_before(folder, name)
    path = transcript_of(folder)
    parent = lines_of(path)[-1]["uuid"]
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    log.write(started=name)
    while True:
        made += 1
        lines = client_lines(f"{name}-{made - 1}", parent, folder)
        parent, marks = lines[-1]["uuid"], [line["uuid"] for line in lines]
        log.write(about_to=marks, session=name, number=made)
        os.write(file, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        if import_again(folder, chance):
            log.write(acknowledged=marks, session=name, uuids=marks)


def import_again(folder: Path, chance: random.Random) -> bool:
    """Start a hook or the command line on the transcript; True where what it holds is stored.

    Mostly forked, with everything loaded; now and then started anew, as a client does it.
    """
    path = transcript_of(folder)
    run = _started if chance.random() < 0.05 else _forked
    if chance.random() < 0.25:
        run(folder, ["mcp_compact", "import", str(path)], b"")
        return True
    told = {"session_id": BY_CLIENT, "transcript_path": str(path), "cwd": str(folder), "hook_event_name": "Stop"}
    run(folder, ["mcp_compact.hook"], json.dumps(told).encode())
    # A hook keeps silent to its client; what went wrong is kept for the doctor.
    return not (folder / "hook-notes.jsonl").exists()


def _surroundings(folder: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MCP_COMPACT_", "CLAUDE"))}
    own |= {"PYTHONPATH": str(ROOT), "HOME": str(folder), "CLAUDE_CONFIG_DIR": str(folder / "client")}
    return own | {"MCP_COMPACT_DB": str(folder / "a.db")}


def _started(folder: Path, words: list[str], given: bytes) -> None:
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, input=given, capture_output=True, env=_surroundings(folder), cwd=folder, check=False)
    if done.returncode or (not done.stdout and "hook" not in words[0]):
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr.decode()}")


def _forked(folder: Path, words: list[str], given: bytes) -> None:
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(writing)
        _played(folder, words, reading)
    os.close(reading)
    os.write(writing, given)
    os.close(writing)
    if code := os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]):
        raise AssertionError(f"{words} ended with {code}")


def _played(folder: Path, words: list[str], given: int) -> None:
    """Be the hook or the command line, and never return."""
    code = 1
    try:
        os.dup2(given, 0)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(_surroundings(folder))
        sys.stdin, sys.stdout = os.fdopen(0), io.StringIO()
        code = hook.main([]) if words[0].endswith("hook") else command_line(words[1:])
    except BaseException:  # noqa: BLE001 - shown, and never goes on in the parent's place
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


# ---------------------------------------------------------------- compacting and reading


async def compact(service: Service, log: Log, chance: random.Random) -> None:
    """Compactions to a small target, clearings, snips and undos, of any session."""
    while True:
        session = chance.choice(SESSIONS)
        match chance.choice(("compact", "compact", "clear", "snip", "undo")):
            case "compact":
                call = CompactCall(trigger="manual", force=True, target_tokens=chance.choice((1_500, 4_000)))
                status = (await service.compact(session, call)).status
            case "clear":
                request = MicroRequest(mode=MicroMode.ALL, keep=chance.randrange(3))
                status = "cleared " + (await service.microcompact(session, request)).status
            case "snip":
                status = await snip(service, session, chance)
            case _:
                status = (await service.undo(session)).status
        log.write(did=status, session=session)


async def snip(service: Service, session: str, chance: random.Random) -> str:
    """Take some messages of the live context out; another writer may have changed it meanwhile."""
    page = await service.deps.store.live(SessionKey("local", session), after=0, limit=500, max_bytes=1 << 24)
    uuids: list[MessageUuid] = [record.uuid for record in page.records] if page else []
    asked = tuple(chance.sample(uuids, min(len(uuids), 3)))
    try:
        return "snipped " + (await service.snip(session, SnipRequest(uuids=asked, force=chance.random() < 0.5))).status
    except CallerError as error:
        return f"snip refused: {error.code}"


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


def read_by_server(folder: Path, name: str, seed: str) -> None:
    """The same through a server of its own."""
    chance, log = random.Random(seed), Log(folder / f"{name}.log")
    server = ServerTalk(settings_of(folder))
    log.write(started=name)
    while True:
        session = chance.choice(SESSIONS)
        try:
            messages = server.context(session)
        except LookupError as error:
            if EXPECTED not in str(error):
                raise
            log.write(read=EXPECTED, session=session)
            continue
        server.call("search_messages", query="module", session_id=session)
        log.write(read=len(messages), session=session, problems=problems(messages))
