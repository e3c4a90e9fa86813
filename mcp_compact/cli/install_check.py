"""An installation tests itself: what the client will start is started, as the client starts it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_compact.cli.environment import surroundings
from mcp_compact.cli.text import count, shown

SECONDS = 90
TOOLS = 2
"""The request whose answer is looked at."""

VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class Check:
    """What was tried, whether it went well (None: could not be tried), and what was seen."""

    name: str
    ok: bool | None
    text: str


def server_check(words: Sequence[str], env: Mapping[str, str]) -> Check:
    """Start the server, shake hands, list its tools."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "install", "version": "1"}}
    lines: list[dict[str, object]] = [
        _request("initialize", params, 1),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _request("tools/list", {}, TOOLS),
    ]
    with tempfile.TemporaryDirectory(prefix="mcp-compact-") as folder:
        done = _talk(words, lines, {**env, "MCP_COMPACT_DB": str(Path(folder) / "probe.db")})
    if isinstance(done, str):
        return Check("server", ok=False, text=done)
    answer: dict[str, list[object]] = next(
        (item["result"] for item in done if item.get("id") == TOOLS and "result" in item), {}
    )
    tools = answer.get("tools", [])
    if not tools:
        return Check("server", ok=False, text="it started but listed no tools")
    return Check("server", ok=True, text=f"it answered with {count(len(tools), 'tool')}")


def hook_check(command: str, probe: Mapping[str, object]) -> Check:
    """Run the hook's own command line once, by a shell, with an archive that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="mcp-compact-") as folder:
        env = surroundings({"MCP_COMPACT_DB": str(Path(folder) / "probe.db")})
        try:
            done = subprocess.run(  # noqa: S602 (a client runs it by a shell too; the line is ours)
                command, shell=True, input=json.dumps({**probe, "cwd": folder}).encode(), capture_output=True, env=env,
                cwd=folder, timeout=SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            return Check("hook", ok=False, text=shown(str(error)))
    if done.returncode:
        said = shown(done.stderr.decode(errors="replace"))[-300:]
        return Check("hook", ok=False, text=f"it ended with {done.returncode}: {said}")
    return Check("hook", ok=True, text="it ran and was quiet" if not done.stdout else "it ran and answered")


def client_check(program: str, needs: tuple[int, int, int]) -> Check:
    """Whether the client is here and new enough."""
    found = shutil.which(program)
    if found is None:
        return Check("client", ok=None, text=f"the command {program} is not on the path; its version is not known")
    try:
        done = subprocess.run([found, "--version"], capture_output=True, timeout=SECONDS, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("client", ok=None, text=shown(str(error)))
    version = VERSION.search(done.stdout.decode(errors="replace"))
    if version is None:
        return Check("client", ok=None, text=f"{found} does not tell its version")
    least = ".".join(map(str, needs))
    if tuple(map(int, version.groups())) < needs:
        return Check("client", ok=False, text=f"{found} is {version[0]}; {least} or newer is needed: update it first")
    return Check("client", ok=True, text=f"{found} is {version[0]}")


def _request(method: str, params: Mapping[str, object], number: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _talk(words: Sequence[str], lines: Sequence[Mapping[str, object]], env: Mapping[str, str]) -> list[Any] | str:
    """The server's answers to a few lines; or what went wrong."""
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    try:
        with subprocess.Popen(  # noqa: S603 (our own program)
            list(words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings(env)
        ) as server:
            return _answers(server, text)
    except OSError as error:
        return shown(str(error))


def _answers(server: subprocess.Popen[bytes], text: bytes) -> list[Any] | str:
    """What it answers, until the last request is answered: then its stdin is closed, which ends it."""
    guard = threading.Timer(SECONDS, server.kill)
    guard.start()
    try:
        found, is_protocol = _until_answered(server, text)
        _, errors = server.communicate()
    finally:
        in_time = guard.is_alive()
        guard.cancel()
    if not in_time:
        return f"no answer within {SECONDS} s"
    if server.returncode:
        return f"it ended with {server.returncode}: {shown(errors.decode(errors='replace'))[-300:]}"
    return found if is_protocol else "what it wrote is no MCP"


def _until_answered(server: subprocess.Popen[bytes], text: bytes) -> tuple[list[Any], bool]:
    """The lines that it writes, up to the answer to the last request, and whether all of them are JSON."""
    found: list[Any] = []
    if server.stdin is None or server.stdout is None:
        return found, True
    try:
        server.stdin.write(text)
        server.stdin.flush()
        for line in server.stdout:
            if line.strip():
                found.append(json.loads(line))
                if isinstance(found[-1], dict) and found[-1].get("id") == TOOLS:
                    break
    except OSError:
        # It has ended: its exit code tells.
        return found, True
    except ValueError:
        return [], False
    return [item for item in found if isinstance(item, dict)], True
