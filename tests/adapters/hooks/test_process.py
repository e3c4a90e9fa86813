"""Nothing that a hook starts outlives it. Whoever lives holds the writing end of a pipe: at its end, all are gone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from mcp_compact.adapters.hooks import Command, CommandHooks
from mcp_compact.adapters.hooks.process import run_command
from mcp_compact.ports.hooks import HookDetails, HookOutcome

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups and named pipes are POSIX")

PRE = HookDetails("pre_compact", "s1", "agent")
LIMIT_S = 0.3
GUARD_S = 20
"""Far beyond what any of these tests takes."""


@dataclass
class Life:
    """The reading end of a named pipe that the processes of a test hold."""

    pipe: Path
    reader: int

    async def words(self, count: int) -> list[str]:
        """The first words that were written, as soon as they are there."""
        text = b""
        while len(text.split()) < count or not text.endswith(b"\n"):
            text += await self._more()
        return text.decode().split()

    async def to_the_end(self) -> list[str]:
        """All that is still written; returns when nobody holds the pipe any more."""
        # Only a pipe that once had a writer tells that it has none.
        os.close(os.open(self.pipe, os.O_WRONLY))
        text = b""
        while more := await self._more():
            text += more
        return text.decode().split()

    async def _more(self) -> bytes:
        with anyio.fail_after(GUARD_S):
            await anyio.wait_readable(self.reader)
        return os.read(self.reader, 65_536)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    os.mkfifo(tmp_path / "life")
    reader = os.open(tmp_path / "life", os.O_RDONLY | os.O_NONBLOCK)
    yield Life(tmp_path / "life", reader)
    os.close(reader)


def hook(folder: Path, script: str, timeout_s: float = LIMIT_S) -> CommandHooks:
    return CommandHooks({"pre_compact": (Command("exec 9>life; " + script, timeout_s),)}, folder)


async def cancelled(hooks: CommandHooks, life: Life, *words: str) -> None:
    """Run the hooks, wait until they have written the words, and cancel them."""
    returned = []

    async def run() -> None:
        returned.append(await hooks.run(PRE))

    with anyio.fail_after(GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            assert sorted(await life.words(len(words))) == sorted(words)
            group.cancel_scope.cancel()
    assert returned == []


async def test_a_hook_that_hangs_is_ended_at_its_time_limit_and_reported(tmp_path: Path, life: Life) -> None:
    with anyio.fail_after(GUARD_S):
        said = await hook(tmp_path, "echo partial; sleep 60").run(PRE)
    warning = "pre_compact hook 1 took longer than 0.3 s: it was ended, and what it wrote is left out"
    assert said == HookOutcome(warnings=(warning,))
    await life.to_the_end()


DEEP = "sh -c '(echo grandchild >&9; exec sleep 60) & echo child >&9; sleep 60' & echo parent >&9; wait"


async def test_children_and_theirs_are_ended_at_the_time_limit(tmp_path: Path, life: Life) -> None:
    # A longer limit, so that all are there by then on a busy machine too.
    await hook(tmp_path, DEEP, timeout_s=1.5).run(PRE)
    assert sorted(await life.to_the_end()) == ["child", "grandchild", "parent"]


async def test_cancelling_ends_a_hook_and_its_children_and_is_not_swallowed(tmp_path: Path, life: Life) -> None:
    await cancelled(hook(tmp_path, DEEP, timeout_s=50), life, "child", "grandchild", "parent")
    assert await life.to_the_end() == []


async def test_a_hook_that_ignores_polite_signals_is_ended_too(tmp_path: Path, life: Life) -> None:
    stubborn = "trap '' TERM INT HUP; echo up >&9; while :; do sleep 60; done"
    await cancelled(hook(tmp_path, stubborn, timeout_s=50), life, "up")
    assert await life.to_the_end() == []


@pytest.mark.skipif(sys.platform != "linux", reason="the members of a session are looked up in /proc")
async def test_a_child_with_a_process_group_of_its_own_is_ended_too(tmp_path: Path, life: Life) -> None:
    # As shells do for their jobs.
    job = "import os, time; os.setpgid(0, 0); os.write(9, b'job\\n'); time.sleep(60)"
    await cancelled(hook(tmp_path, f'{sys.executable} -c "{job}" & wait', timeout_s=50), life, "job")
    assert await life.to_the_end() == []


async def test_an_endless_flood_ends_at_the_time_limit(tmp_path: Path, life: Life) -> None:
    ran = await run_command(Command("exec 9>life; yes", LIMIT_S), b"", tmp_path)
    assert ran.exit_code is None
    assert ran.stdout.total_bytes > len(ran.stdout.head) == 65_536
    assert await life.to_the_end() == []


async def test_a_hook_that_does_not_read_and_hangs_is_ended(tmp_path: Path, life: Life) -> None:
    ran = await run_command(Command("exec 9>life; exec sleep 60", LIMIT_S), b"x" * 1_000_000, tmp_path)
    assert ran.exit_code is None
    assert await life.to_the_end() == []


async def test_a_child_that_holds_the_outputs_does_not_keep_the_compaction_waiting(tmp_path: Path, life: Life) -> None:
    with anyio.fail_after(GUARD_S):
        said = await hook(tmp_path, "echo line; sleep 60 & echo up >&9", timeout_s=50).run(PRE)
    warning = "pre_compact hook 1 left a process that held its output open; it was ended"
    assert said == HookOutcome("line", warnings=(warning,))
    assert await life.to_the_end() == ["up"]


async def test_a_child_that_has_its_own_outputs_is_ended_with_its_hook_in_silence(tmp_path: Path, life: Life) -> None:
    said = await hook(tmp_path, "echo line; sleep 60 >/dev/null 2>&1 </dev/null & echo up >&9", timeout_s=50).run(PRE)
    assert said == HookOutcome("line")
    assert await life.to_the_end() == ["up"]


async def test_a_hook_may_hand_its_outputs_to_a_child_that_ends_soon(tmp_path: Path, life: Life) -> None:
    said = await hook(tmp_path, "(sleep 0.1; echo late) & echo early", timeout_s=50).run(PRE)
    assert said == HookOutcome("early\nlate")
    assert await life.to_the_end() == []


async def test_a_process_that_leaves_the_session_outlives_its_hook(tmp_path: Path, life: Life) -> None:
    leave = "import os; os.fork() and os._exit(0); os.setsid(); open('away', 'w').close(); open('gate').read(); "
    leave += "os.write(9, b'later')"
    os.mkfifo(tmp_path / "gate")
    outputs = ">/dev/null 2>&1 </dev/null"
    command = f'{sys.executable} -c "{leave}" {outputs}; until [ -e away ]; do :; done; echo started'
    said = await hook(tmp_path, command, timeout_s=50).run(PRE)
    assert said == HookOutcome("started")
    os.close(os.open(tmp_path / "gate", os.O_WRONLY))
    assert await life.to_the_end() == ["later"]


async def test_cancelled_before_its_start_a_hook_leaves_nothing_either(tmp_path: Path, life: Life) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await hook(tmp_path, "echo up >&9; sleep 60").run(PRE)
    assert scope.cancelled_caught
    assert await life.to_the_end() == []


async def test_cancelled_while_it_starts_a_hook_leaves_nothing_either(tmp_path: Path, life: Life) -> None:
    hooks = hook(tmp_path, "echo up >&9; sleep 60", timeout_s=50)
    for rounds in range(12):
        async with anyio.create_task_group() as group:
            group.start_soon(hooks.run, PRE)
            for _ in range(rounds):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
    await life.to_the_end()


async def test_the_next_hook_runs_after_one_that_hung(tmp_path: Path) -> None:
    commands = (Command("sleep 60", LIMIT_S), Command("echo next", 50))
    said = await CommandHooks({"pre_compact": commands}, tmp_path).run(PRE)
    assert said.text == "next"
    assert len(said.warnings) == 1


async def test_many_sessions_run_their_hooks_at_once(tmp_path: Path, life: Life) -> None:
    said = []

    async def run(number: int) -> None:
        command = Command(f"exec 9>life; echo {number}; cat >/dev/null", 50)
        said.append((await CommandHooks({"pre_compact": (command,)}, tmp_path).run(PRE)).text)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(run, number)
    assert sorted(said) == [str(number) for number in range(10)]
    assert await life.to_the_end() == []
