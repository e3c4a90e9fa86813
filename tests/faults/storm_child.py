"""The processes of the kill storm: each plays a role on the archive until it is killed.

    python -m tests.faults.storm_child FOLDER

loads everything once, forks a process for each line `start NAME SEED` of its input and answers its id; `kill ID`
kills one, with all that it started, in the middle of whatever it does, and answers how it ended. So a restart takes
no second of loading, and the storm has its kills in the work and not before it. Logs lie in the folder, as does the
archive.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from importlib import import_module
from pathlib import Path

import anyio

from mcp_compact.service.prepare import best_counter
from mcp_compact.wiring import tokenizer
from tests.faults.roles import BY_CLIENT, BY_SERVER, READERS, play, read_by_server, write_by_client, write_by_server

LOADED = (
    "mcp_compact.adapters.sqlite.store",
    "mcp_compact.cli.importing",
    "mcp_compact.hooking.working",
    "mcp_compact.server.toolset",
    "mcp_compact.service.offline",
)
"""What a server, a hook or a command loads when it is first needed: here it is loaded once for all of them."""


def start(folder: Path, name: str, seed: str) -> int:
    """Fork one process. It has no thread and no event loop yet, and opens the archive itself."""
    process = os.fork()
    if process:
        return process
    try:
        os.setsid()
        errors = os.open(folder / f"{name}.err", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        if name == BY_SERVER:
            write_by_server(folder, name, seed)
        elif name == BY_CLIENT:
            write_by_client(folder, name, seed)
        elif name == READERS[-1]:
            read_by_server(folder, name, seed)
        else:
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
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        # So young that it has no group of its own yet.
        os.kill(process, signal.SIGKILL)
    _, code = os.waitpid(process, 0)
    return "killed" if os.waitstatus_to_exitcode(code) == -signal.SIGKILL else f"ended with {code}"


def serve(folder: Path) -> None:
    """Start and kill as the input says; at its end all that still run are killed."""
    best_counter(tokenizer())
    for module in LOADED:
        import_module(module)
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
