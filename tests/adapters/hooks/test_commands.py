from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict, replace
from pathlib import Path

import anyio
import pytest

from mcp_compact.adapters.hooks import CommandHooks, load_hooks
from mcp_compact.adapters.hooks.outcomes import CONTEXT_CHARS, REASON_CHARS
from mcp_compact.ports.hooks import HookDetails, HookEvent, HookOutcome, Hooks

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the hooks of these tests are scripts for sh")

PRE = HookDetails("pre_compact", "s1", "agent", "/home/a", "keep x", "summary", 1000, 0, "")
START = replace(PRE, event="session_start")
POST = replace(PRE, event="post_compact", tokens_after=10, summary="what happened")


def hooks_of(folder: Path, commands: dict[str, list[object]], timeout_s: float = 20) -> Hooks:
    file = folder / "hooks.json"
    file.write_text(json.dumps(commands), encoding="utf-8")
    file.chmod(0o600)
    return load_hooks(str(file), entry_points=False, timeout_s=timeout_s)


async def outcome(folder: Path, details: HookDetails, *commands: object) -> HookOutcome:
    return await hooks_of(folder, {details.event: list(commands)}).run(details)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def real(folder: Path) -> str:
    return str(folder.resolve())


async def only_warning(folder: Path, details: HookDetails, command: object) -> str:
    said = await outcome(folder, details, command)
    (warning,) = said.warnings
    assert said == HookOutcome(warnings=(warning,))
    return warning


# --- what a command is told


async def test_a_command_reads_the_details_as_json_under_their_own_names(tmp_path: Path) -> None:
    await outcome(tmp_path, PRE, "cat > told.json")
    told = json.loads((tmp_path / "told.json").read_bytes())
    assert told == {**asdict(PRE), "hook_event_name": "PreCompact"}


@pytest.mark.parametrize(("details", "name"), [(START, "SessionStart"), (POST, "PostCompact")])
async def test_each_event_also_has_the_name_that_clients_use(tmp_path: Path, details: HookDetails, name: str) -> None:
    await outcome(tmp_path, details, "cat > told.json")
    told = json.loads((tmp_path / "told.json").read_bytes())
    assert told["hook_event_name"] == name
    assert told["event"] == details.event
    assert told.get("source") == ("compact" if details is START else None)


async def test_instructions_of_100_kb_in_any_script_reach_the_command_whole(tmp_path: Path) -> None:
    text = "grüße 日本 🙂\n" * 7000
    await outcome(tmp_path, replace(PRE, custom_instructions=text), "cat > told.json")
    assert json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))["custom_instructions"] == text


async def test_a_lone_surrogate_is_replaced(tmp_path: Path) -> None:
    await outcome(tmp_path, replace(PRE, custom_instructions="a\ud800b"), "cat > told.json")
    assert json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))["custom_instructions"] == "a\ufffdb"


async def test_text_of_a_session_is_never_part_of_a_command(tmp_path: Path) -> None:
    evil = replace(PRE, custom_instructions="$(touch owned); `touch owned`", session_id="; touch owned", cwd="/nowhere")
    said = await outcome(tmp_path, evil, "cat >/dev/null; echo done", ["echo", "$(touch owned)"])
    assert said.text == "done\n$(touch owned)"
    assert names(tmp_path) == ["hooks.json"]


async def test_commands_run_beside_their_file_with_the_servers_environment_and_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_SERVER", "server")
    own = {"command": 'echo "$FROM_SERVER $OWN"; pwd -P', "env": {"OWN": "own"}}
    said = await outcome(tmp_path, PRE, own, 'echo "$FROM_SERVER ${OWN-none}"')
    assert said.text.split("\n") == ["server own", real(tmp_path), "server none"]


async def test_only_the_commands_of_the_event_run(tmp_path: Path) -> None:
    every: tuple[HookEvent, ...] = ("pre_compact", "session_start", "post_compact")
    hooks = hooks_of(tmp_path, {event: [f"echo {event}"] for event in every})
    assert [(await hooks.run(replace(PRE, event=event))).text for event in every] == list(every)
    assert await CommandHooks({}, tmp_path).run(PRE) == HookOutcome()


# --- what it says


@pytest.mark.parametrize("details", [PRE, START])
async def test_what_is_written_counts_in_the_order_of_the_file_and_one_runs_after_the_other(
    tmp_path: Path, details: HookDetails
) -> None:
    said = await outcome(
        tmp_path, details, "echo a; sleep 0.1; echo seen > mark", "cat mark", "true", ["printf", "b\\n\\nc\\n"]
    )
    assert said == HookOutcome("a\nseen\nb\n\nc")


async def test_standard_error_of_a_good_hook_does_not_count(tmp_path: Path) -> None:
    assert await outcome(tmp_path, PRE, "echo noise >&2; echo line") == HookOutcome("line")


async def test_control_characters_and_odd_line_ends_are_left_out(tmp_path: Path) -> None:
    said = await outcome(tmp_path, PRE, r"printf '\357\273\277a\r\n\033[1mb\000\tc\r50%%\r100%%\n'")
    assert said == HookOutcome("a\n[1mb\tc\n50%\n100%")


async def test_exit_2_of_a_pre_hook_blocks_with_its_standard_error_and_later_hooks_still_run(tmp_path: Path) -> None:
    said = await outcome(
        tmp_path, PRE, "echo out; echo 'tests are red' >&2; exit 2", "echo keep", "echo no >&2; exit 2"
    )
    assert said == HookOutcome("keep", "tests are red\nno")


async def test_blocking_without_a_reason_names_the_hook(tmp_path: Path) -> None:
    assert (await outcome(tmp_path, PRE, "true", "exit 2")).blocked == "pre_compact hook 2 gave no reason."


async def test_a_reason_is_bounded(tmp_path: Path) -> None:
    said = await outcome(tmp_path, PRE, *(["yes no | head -c 5000 >&2; exit 2"] * 2))
    assert len(said.blocked) == REASON_CHARS


@pytest.mark.parametrize("details", [START, POST])
async def test_exit_2_of_other_hooks_is_a_warning(tmp_path: Path, details: HookDetails) -> None:
    warning = await only_warning(tmp_path, details, "echo out; echo no >&2; exit 2")
    assert warning == f"{details.event} hook 1 exited with 2: no"


async def test_any_other_exit_is_a_warning_with_the_first_line_of_standard_error(tmp_path: Path) -> None:
    assert await only_warning(tmp_path, PRE, "echo out; exit 1") == "pre_compact hook 1 exited with 1"
    warning = await only_warning(tmp_path, PRE, "echo; printf '\\n first \\nsecond' >&2; exit 77")
    assert warning == "pre_compact hook 1 exited with 77: first"
    assert len(await only_warning(tmp_path, PRE, "head -c 9000 /dev/zero | tr '\\0' x >&2; exit 3")) < 400


async def test_of_a_python_traceback_the_last_line_is_told(tmp_path: Path) -> None:
    warning = await only_warning(tmp_path, PRE, python("raise ValueError('broken config')"))
    assert warning == "pre_compact hook 1 exited with 1: ValueError: broken config"


# --- verdicts


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("true", ""),
        ("echo", ""),
        ("echo ok", "ok"),
        ("echo ' OK '", "OK"),
        ("echo 'all 3 names are there'", "all 3 names are there"),
        ('echo \'{"verified": true, "reason": "fine"}\'', "fine"),
        ("echo '{}'", ""),
        ("echo '{broken'", "{broken"),
    ],
)
async def test_these_verdicts_are_good(tmp_path: Path, command: str, text: str) -> None:
    assert await outcome(tmp_path, POST, command) == HookOutcome(text)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ('echo \'{"verified": false, "reason": "the port is gone"}\'', "the port is gone"),
        ('printf \' \\n{"verified": false, "reason": "the port is gone"}\'', "the port is gone"),
        ("echo 'the port is gone'; exit 1", "the port is gone"),
        ("echo 'the port is gone' >&2; exit 1", "the port is gone"),
        ('echo \'{"reason": "the port is gone"}\'; exit 1', "the port is gone"),
        ("echo '{\"verified\": false}'", ""),
        ("exit 1", ""),
        ('echo \'{"verified": false, "reason": 5}\'', ""),
    ],
)
async def test_these_verdicts_are_bad(tmp_path: Path, command: str, reason: str) -> None:
    told = f"post_compact hook 1 rejects the compaction: {reason or 'it gave no reason'}"
    assert await outcome(tmp_path, POST, command) == HookOutcome(reason, verified=False, warnings=(told,))


async def test_one_bad_verdict_is_enough(tmp_path: Path) -> None:
    said = await outcome(tmp_path, POST, "echo ok", "echo bad; exit 1", "echo ok")
    assert not said.verified
    assert said.text == "ok\nbad\nok"


async def test_a_verdict_that_is_neither_true_nor_false_is_left_out_and_warned_of(tmp_path: Path) -> None:
    said = await outcome(tmp_path, POST, 'echo \'{"verified": "no"}\'')
    assert said.verified
    assert "true or false" in said.warnings[0]


# --- what goes wrong


async def test_a_command_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    warning = await only_warning(tmp_path, PRE, {"command": ["no-such-program-anywhere"]})
    assert warning == "pre_compact hook 1 cannot be started: No such file or directory: no-such-program-anywhere"
    assert "exited with 127" in await only_warning(tmp_path, PRE, "no-such-program-anywhere")


async def test_a_command_that_is_not_executable_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\necho x\n", encoding="utf-8")
    warning = await only_warning(tmp_path, PRE, {"command": ["./script"]})
    assert warning == "pre_compact hook 1 cannot be started: Permission denied: ./script"
    assert "exited with 126" in await only_warning(tmp_path, PRE, "./script")


async def test_a_file_that_is_no_program_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "script").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "script").chmod(0o700)
    assert "cannot be started" in await only_warning(tmp_path, PRE, {"command": ["./script"]})


async def test_a_crash_by_signal_is_a_warning_that_names_it(tmp_path: Path) -> None:
    warning = await only_warning(tmp_path, PRE, "echo out; kill -SEGV $$")
    assert warning == "pre_compact hook 1 was ended by SIGSEGV"


@pytest.mark.skipif(sys.platform != "linux", reason="numbers of signals differ")
async def test_a_signal_without_a_name_is_told_by_its_number(tmp_path: Path) -> None:
    assert await only_warning(tmp_path, PRE, "kill -40 $$") == "pre_compact hook 1 was ended by signal 40"


async def test_a_folder_that_went_meanwhile_is_named(tmp_path: Path) -> None:
    hooks = hooks_of(tmp_path, {"pre_compact": ["echo x"]})
    await anyio.Path(tmp_path).rename(tmp_path.with_name("elsewhere"))
    assert (await hooks.run(PRE)).warnings == (
        f"pre_compact hook 1 cannot be started: No such file or directory: {tmp_path}",
    )


async def test_binary_output_is_replaced_and_warned_of(tmp_path: Path) -> None:
    said = await outcome(tmp_path, PRE, r"printf 'port \377\376 8080\000\n'")
    assert said.text == "port \ufffd\ufffd 8080"
    assert said.warnings == ("pre_compact hook 1 wrote text that is not UTF-8; what cannot be read is replaced",)


async def test_random_bytes_never_do_harm(tmp_path: Path) -> None:
    said = await outcome(tmp_path, START, "head -c 100000 /dev/urandom")
    assert len(said.text) <= CONTEXT_CHARS
    assert len(said.warnings) == 3
    json.dumps(said.text).encode()


async def test_a_flood_is_read_to_its_end_and_64_kib_are_kept(tmp_path: Path) -> None:
    lines = "import sys; [sys.stdout.write(f'{n:09}\\n') for n in range(300_000)]; open('done', 'w')"
    said = await outcome(tmp_path, PRE, {"command": python(lines)})
    assert (tmp_path / "done").exists()
    assert said.text == "\n".join(f"{n:09}" for n in range(950))
    cut, told = said.warnings[1], said.warnings[0]
    assert told == "pre_compact hook 1 wrote 3,000,000 bytes to standard output; the first 65,536 were kept"
    assert cut == "Hooks gave 65,536 characters of text; only the first 9,499 count."


async def test_a_flood_of_errors_is_noted_too(tmp_path: Path) -> None:
    said = await outcome(tmp_path, PRE, "yes | head -c 1000000 >&2; echo line")
    assert said.text == "line"
    assert said.warnings == ("pre_compact hook 1 wrote 1,000,000 bytes to standard error; the first 65,536 were kept",)


async def test_a_character_that_the_limit_cuts_in_two_is_no_fault(tmp_path: Path) -> None:
    said = await outcome(tmp_path, PRE, {"command": python("print('x' + 'é' * 40_000)"), "env": {"PYTHONUTF8": "1"}})
    assert not any("UTF-8" in warning for warning in said.warnings)
    assert said.text == "x" + "é" * (CONTEXT_CHARS - 1)


async def test_all_hooks_of_an_event_together_are_cut_at_9500_characters(tmp_path: Path) -> None:
    said = await outcome(tmp_path, PRE, *(["head -c 4000 /dev/zero | tr '\\0' x"] * 3))
    assert said.text == "x" * 4000 + "\n" + "x" * 4000
    assert said.warnings == ("Hooks gave 12,002 characters of text; only the first 8,001 count.",)


async def test_a_hook_that_never_reads_what_it_is_told_is_fine(tmp_path: Path) -> None:
    large = replace(PRE, custom_instructions="x" * 1_000_000)
    assert await outcome(tmp_path, large, "exec <&-; echo a", "echo b", "head -c 10 >/dev/null; echo c") == HookOutcome(
        "a\nb\nc"
    )


async def test_nothing_of_a_hook_reaches_the_servers_own_outputs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = shlex.join(python("import sys; print('out'); print('err', file=sys.stderr)"))
    for command in (script, f"{script}; exit 2", f"{script}; exit 5", "no-such-program-anywhere", f"{script} &"):
        for details in (PRE, START, POST):
            await outcome(tmp_path, details, command)
    assert capfd.readouterr() == ("", "")
