"""Runs one command: input in, a bounded part of its output back, and nothing of it left running."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from mcp_compact.adapters.hooks.file import Command

KEPT_BYTES = 64 * 1024
"""So much is kept of each output; the rest is read and dropped, so that the command can go on."""
GRACE_S = 1.0
"""So long a command that has ended may keep its outputs open: a process of its own still holds them."""
REAP_S = 5.0
"""A guard: a killed process that the system does not let go is not waited for without end."""
_PROCESSES = Path("/proc")


@dataclass(slots=True)
class Output:
    """What a command wrote: the first bytes, and how many there were in all."""

    head: bytearray = field(default_factory=bytearray)
    total_bytes: int = 0

    def add(self, chunk: bytes) -> None:
        """Count a chunk; keep what still fits."""
        self.head += chunk[: KEPT_BYTES - len(self.head)]
        self.total_bytes += len(chunk)

    @property
    def is_whole(self) -> bool:
        """Whether nothing was dropped."""
        return self.total_bytes == len(self.head)


@dataclass(slots=True)
class Ran:
    """How a command ended."""

    exit_code: int | None = None
    """Negative: the signal that ended it. None: it took too long and was ended."""
    stdout: Output = field(default_factory=Output)
    stderr: Output = field(default_factory=Output)
    left_process: bool = False
    """Whether something that it started still held its outputs."""


async def run_command(command: Command, details: bytes, folder: Path) -> Ran:
    """Run to the end or to the time limit; whatever it started is ended by then, also when this is cancelled.

    Raises OSError or ValueError where the command cannot be started.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    with anyio.CancelScope(shield=True):
        # Cancelled half way, the process would be there and nobody would know it.
        process = await _start(command, folder)
    ran = Ran()
    try:
        with anyio.move_on_after(command.timeout_s):
            await _converse(process, details, ran)
        ran.exit_code = process.returncode
    finally:
        _end(process)
        with anyio.move_on_after(REAP_S, shield=True):
            await process.aclose()
    return ran


async def _start(command: Command, folder: Path) -> Process:
    return await anyio.open_process(
        command.words,
        cwd=folder,
        env={**os.environ, **dict(command.env)} if command.env else None,  # noqa: TID251 - handed on, not read
        start_new_session=True,
    )


async def _converse(process: Process, details: bytes, ran: Ran) -> None:
    async with anyio.create_task_group() as group:
        if process.stdin is not None:
            group.start_soon(_feed, process.stdin, details)
        for stream, output in ((process.stdout, ran.stdout), (process.stderr, ran.stderr)):
            if stream is not None:
                group.start_soon(_collect, stream, output)
        await process.wait()
        group.cancel_scope.deadline = anyio.current_time() + GRACE_S
    ran.left_process = group.cancel_scope.cancelled_caught


async def _feed(stream: ByteSendStream, details: bytes) -> None:
    # A command need not read what it is told.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        await stream.send(details)
        await stream.aclose()


async def _collect(stream: ByteReceiveStream, output: Output) -> None:
    async for chunk in stream:
        output.add(chunk)


def _end(process: Process) -> None:
    """End the command and all of its session: on POSIX its group, on Linux also groups that a shell made in it."""
    if sys.platform == "win32":
        if process.returncode is None:
            process.terminate()
        return
    # PermissionError: macOS says so of a group of which only ended processes are left.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if sys.platform == "linux":
        for pid in _session_members(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _session_members(session: int) -> Iterator[int]:
    """Processes of a session that still run."""
    for folder in _PROCESSES.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            status = (folder / "stat").read_text(errors="replace")
        except OSError:
            continue
        # After the name in parentheses: state, parent, group, session.
        state, _, _, own, *_ = status.rpartition(")")[2].split()
        if own == str(session) and state not in "ZX":
            yield int(folder.name)
