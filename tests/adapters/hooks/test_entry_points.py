"""Hooks of installed packages: each test installs one, as files on the path."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from mcp_compact.adapters.hooks import AllHooks, EntryPointHooks, load_hooks
from mcp_compact.adapters.hooks.outcomes import CONTEXT_CHARS
from mcp_compact.ports.hooks import HookDetails, HookOutcome

PRE = HookDetails("pre_compact", "s1", "agent", custom_instructions="keep x")
START, POST = replace(PRE, event="session_start"), replace(PRE, event="post_compact")
LIMIT_S = 0.3
GUARD_S = 20
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts a package on the path: its module's code, and its entry points by name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    modules = set(sys.modules)

    def write(code: str, **points: str) -> None:
        (tmp_path / "keeping.py").write_text(
            "from mcp_compact.ports.hooks import HookOutcome\n" + textwrap.dedent(code), encoding="utf-8"
        )
        record = tmp_path / "keeping-1.0.dist-info"
        record.mkdir()
        (record / "METADATA").write_text("Metadata-Version: 2.1\nName: keeping\nVersion: 1.0\n", encoding="utf-8")
        lines = [f"{name} = {value}" for name, value in (points or {"keep": "keeping:keep"}).items()]
        (record / "entry_points.txt").write_text("\n".join(["[mcp_compact.hooks]", *lines]), encoding="utf-8")

    yield write
    for name in set(sys.modules) - modules:
        if name == "keeping":
            del sys.modules[name]


async def said(details: HookDetails = PRE, timeout_s: float = 20) -> HookOutcome:
    with anyio.fail_after(GUARD_S * 2):
        return await EntryPointHooks(timeout_s).run(details)


async def test_without_any_nothing_is_said(install: Install) -> None:
    assert await said() == HookOutcome()


async def test_one_that_is_not_asynchronous_runs_in_a_thread_and_is_told_the_details(install: Install) -> None:
    install("""
        import threading
        def keep(details):
            return f"{details.event} {details.custom_instructions} {threading.current_thread().name}"
    """)
    assert (await said()).text == "pre_compact keep x keep"
    assert threading.current_thread().name != "keep"


async def test_one_that_is_asynchronous_is_awaited_in_the_event_loop(install: Install) -> None:
    install("""
        import threading, anyio
        async def keep(details):
            await anyio.sleep(0)
            return threading.current_thread().name
    """)
    assert (await said()).text == threading.current_thread().name


async def test_an_object_whose_call_is_asynchronous_is_awaited_too(install: Install) -> None:
    install("""
        class Keep:
            async def __call__(self, details):
                return "line"
        keep = Keep()
    """)
    assert (await said()).text == "line"


async def test_one_that_is_not_asynchronous_may_start_an_event_loop_of_its_own(install: Install) -> None:
    install("""
        import anyio
        async def inner():
            return "line"
        def keep(details):
            return anyio.run(inner)
    """)
    assert await said() == HookOutcome("line")


async def test_several_are_called_by_name_and_their_results_are_joined(install: Install) -> None:
    code = "def one(details): return 'one'\ndef none(details): return None\nasync def two(details): return 'two'\n"
    install(code, b="keeping:two", a="keeping:one", c="keeping:none")
    assert await said() == HookOutcome("one\ntwo")


async def test_a_text_of_a_post_hook_is_its_verdict(install: Install) -> None:
    install("""def keep(details): return '{"verified": false, "reason": "gone"}'""")
    told = "post_compact hook 'keep' rejects the compaction: gone"
    assert await said(POST) == HookOutcome("gone", verified=False, warnings=(told,))
    assert (await said(START)).verified


async def test_an_outcome_counts_as_far_as_its_event_may_say_it(install: Install) -> None:
    install("""
        def keep(details):
            return HookOutcome("line", blocked="red", verified=False, warnings=("look",))
    """)
    look = "{} hook 'keep': look"
    assert await said(PRE) == HookOutcome("line", "red", warnings=(look.format("pre_compact"),))
    assert await said(START) == HookOutcome("line", warnings=(look.format("session_start"),))
    rejects = "post_compact hook 'keep' rejects the compaction: line"
    assert await said(POST) == HookOutcome("line", verified=False, warnings=(look.format("post_compact"), rejects))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("def keep(details): raise ValueError('no\\nway')", "ValueError: no"),
        ("async def keep(details): raise OSError('disk')", "OSError: disk"),
        ("def keep(details): raise SystemExit(3)", "SystemExit: 3"),
        ("def keep(details): raise TimeoutError('its own')", "TimeoutError: its own"),
        ("def keep(): return 'x'", "TypeError: keep() takes 0 positional arguments but 1 was given"),
        ("def keep(details): return 5", "TypeError: it gave int, not text, a HookOutcome or None"),
        ("def keep(details): return HookOutcome(5)", "AttributeError"),
        ("def keep(details): return HookOutcome(warnings=None)", "TypeError"),
        ("keep = 'text'", "TypeError: 'str' object is not callable"),
        ("other = 1", "AttributeError: module 'keeping' has no attribute 'keep'"),
        ("import no_such_module_here", "ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("def keep(:", "SyntaxError"),
    ],
)
async def test_what_fails_is_a_warning(install: Install, code: str, told: str) -> None:
    install(code)
    outcome = await said()
    (warning,) = outcome.warnings
    assert warning.startswith(f"pre_compact hook 'keep' failed: {told}")
    assert "\n" not in warning
    assert outcome == HookOutcome(warnings=(warning,))


async def test_the_next_one_runs_after_one_that_fails(install: Install) -> None:
    install("def keep(details): return 'line'", a="keeping:none", b="keeping:keep")
    outcome = await said()
    assert outcome.text == "line"
    assert len(outcome.warnings) == 1


async def test_text_is_cleaned_and_cut_as_that_of_commands_is(install: Install) -> None:
    install("def keep(details): return '\\x1b\\ud800' + 'x' * 20_000")
    outcome = await said()
    assert outcome.text == "\ufffd" + "x" * (CONTEXT_CHARS - 1)
    assert len(outcome.warnings) == 1


TOO_LONG = HookOutcome(warnings=("pre_compact hook 'keep' took longer than 0.3 s and is left out",))


async def test_one_that_is_asynchronous_and_hangs_is_cancelled_at_its_time_limit(install: Install) -> None:
    install("""
        import anyio
        ended = []
        async def keep(details):
            try:
                await anyio.sleep_forever()
            finally:
                ended.append(details.event)
    """)
    assert await said(timeout_s=LIMIT_S) == TOO_LONG
    assert sys.modules["keeping"].ended == ["pre_compact"]


async def test_one_that_hangs_in_its_thread_is_left_behind_and_takes_no_second_thread(install: Install) -> None:
    install("""
        import threading
        gate, calls = threading.Event(), []
        def keep(details):
            calls.append(details.event)
            gate.wait()
            return "late"
    """)
    hooks = EntryPointHooks(LIMIT_S)
    assert await hooks.run(PRE) == TOO_LONG
    assert await hooks.run(PRE) == TOO_LONG
    keeping = sys.modules["keeping"]
    assert keeping.calls == ["pre_compact"]
    left = [thread for thread in threading.enumerate() if thread.name == "keep"]
    assert all(thread.daemon for thread in left)
    keeping.gate.set()
    for thread in left:
        thread.join(GUARD_S)
    assert (await hooks.run(PRE)).text == "late"


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes are POSIX")
async def test_cancelling_does_not_wait_for_a_thread_and_is_not_swallowed(install: Install, tmp_path: Path) -> None:
    install("""
        import threading
        gate = threading.Event()
        def keep(details):
            open(details.cwd, "w").close()
            gate.wait()
    """)
    returned = []

    async def run() -> None:
        returned.append(await said(replace(PRE, cwd=str(tmp_path / "started"))))

    os.mkfifo(tmp_path / "started")
    with anyio.fail_after(GUARD_S):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            # Opening a named pipe waits for its other end, which the hook opens.
            await anyio.to_thread.run_sync((tmp_path / "started").read_bytes)
            group.cancel_scope.cancel()
    assert returned == []
    sys.modules["keeping"].gate.set()


async def test_two_sessions_at_once_take_turns_in_one_that_is_not_asynchronous(install: Install) -> None:
    install("""
        running, most = [], []
        def keep(details):
            running.append(1)
            most.append(len(running))
            running.pop()
            return details.session_id
    """)
    hooks, texts = EntryPointHooks(20), []

    async def run(session: str) -> None:
        texts.append((await hooks.run(replace(PRE, session_id=session))).text)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(run, f"s{number}")
    assert sorted(texts) == [f"s{number}" for number in range(8)]
    assert set(sys.modules["keeping"].most) == {1}


# --- both sources


def hooks_file(folder: Path, command: str) -> Path:
    file = folder / "hooks.json"
    file.write_text(f'{{"pre_compact": ["{command}"]}}', encoding="utf-8")
    file.chmod(0o600)
    return file


@pytest.mark.skipif(sys.platform == "win32", reason="the hook is a script for sh")
async def test_entry_points_come_after_the_commands_of_the_file_and_can_be_turned_off(
    install: Install, tmp_path: Path
) -> None:
    install("def keep(details): return 'from a package'")
    file = str(hooks_file(tmp_path, "echo from the file"))
    assert (await load_hooks(file, timeout_s=20).run(PRE)).text == "from the file\nfrom a package"
    assert (await load_hooks(file, entry_points=False, timeout_s=20).run(PRE)).text == "from the file"
    assert (await load_hooks("", timeout_s=20).run(PRE)).text == "from a package"


async def test_both_sources_together_are_cut_at_9500_characters(install: Install) -> None:
    install("def keep(details): return 'x' * 6000")
    outcome = await AllHooks((EntryPointHooks(20), EntryPointHooks(20))).run(PRE)
    assert outcome == HookOutcome(
        "x" * 6000, warnings=("Hooks gave 12,001 characters of text; only the first 6,000 count.",)
    )
