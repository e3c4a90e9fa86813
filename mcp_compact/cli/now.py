"""`mcp-compact now`: a client's own compaction, run without its screen, with the lines that must be kept."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.cli.archive import ask
from mcp_compact.cli.client_folders import claude_transcript
from mcp_compact.cli.named import found_session, imported
from mcp_compact.cli.output import print_json
from mcp_compact.cli.text import count, shown, tokens
from mcp_compact.compaction.injection import must_keep_lines
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.masking import masked
from mcp_compact.service.deps import session_key
from mcp_compact.service.handoff import session_facts
from mcp_compact.service.service import Service
from mcp_compact.service.session_results import BoundaryLine

PROGRAM = "claude"
TIMEOUT_S = 600
"""A model writes the summary: minutes are usual."""
SAID_CHARS = 400


@dataclass(frozen=True, slots=True)
class _Target:
    session_id: str
    cwd: str
    transcript: Path
    lines: tuple[str, ...]
    boundaries: int


@dataclass(frozen=True, slots=True)
class Compacted:
    """What the client's own compaction did, by its transcript. Tokens are the client's."""

    session_id: str
    status: str
    """`compacted`, or `unchanged`: the client ended well but its transcript holds no new boundary."""
    tokens_before: int | None
    tokens_after: int | None
    must_keep_lines: int
    command: str


def run(arguments: argparse.Namespace) -> int:
    """Run the compaction and show what it did."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise CallerError(
            "no_client",
            f"Claude Code is not installed: there is no program {PROGRAM!r} on the path.",
            "Install it, or use `mcp-compact resume`, which needs no client.",
        )

    async def find(service: Service) -> _Target:
        return await _target(service, arguments.session)

    target = ask(find, create=True)
    print(f"Asking Claude Code to compact {target.session_id} ...", file=sys.stderr, flush=True)
    _compact(program, target)

    async def look(service: Service) -> Compacted:
        return await _looked(service, target)

    result = ask(look)
    if arguments.json:
        print_json(result)
    else:
        print("\n".join(_lines(result)))
    return 0


async def _target(service: Service, name: str) -> _Target:
    """The session, which must be one of Claude Code's own on this machine, and what it must keep."""
    session_id = await found_session(service, name)
    key = session_key(service.namespace, session_id)
    row = await service.deps.row(key)
    transcript = claude_transcript(row.cwd, session_id)
    if row.owner != "client" or transcript is None:
        raise CallerError(
            "not_this_client",
            f"Claude Code holds no session {session_id} for {row.cwd or 'an unknown folder'} here.",
            "`mcp-compact resume` makes one of it; `mcp-compact compact` needs no client.",
        )
    if not Path(row.cwd).is_dir():  # noqa: ASYNC240 - one look before a program is started
        raise CallerError("no_folder", f"The session's folder {row.cwd} is not here.", "Use `mcp-compact resume`.")
    _, facts = await session_facts(service.deps, key)
    return _Target(session_id, row.cwd, transcript, must_keep_lines(facts), len(await _native(service, session_id)))


def _compact(program: str, target: _Target) -> None:
    """Raises CallerError or ServerError with what the client said where it does not end well."""
    # No argument of a program may hold a NUL.
    prompt = "/compact " + "\n".join(target.lines).replace("\0", " ")
    command = [program, "-p", prompt.strip(), "--resume", target.session_id, "--output-format", "json"]
    try:
        done = subprocess.run(  # noqa: S603 - the client itself, each word an argument of its own
            command, cwd=target.cwd, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ServerError(
            "client_too_slow", f"Claude Code did not end within {TIMEOUT_S} s and was stopped.", "Try it again."
        ) from None
    except OSError as error:
        raise CallerError(
            "no_client", f"Claude Code could not be started: {error.strerror}.", "Check the installation."
        ) from error
    out = done.stdout.decode("utf-8", "replace")
    failed, said = _answer(out)
    if done.returncode != 0 or failed:
        said = said or done.stderr.decode("utf-8", "replace") or out
        raise CallerError(
            "client_failed",
            f"Claude Code could not compact it: {shown(masked(said))[:SAID_CHARS] or 'it did not say why'}.",
            f"`mcp-compact resume {shlex.quote(target.session_id)}` opens it again also where the client cannot.",
        )


def _answer(out: str) -> tuple[bool, str]:
    """Did the client's JSON answer say that it failed, and its words."""
    try:
        answer = json.loads(out)
    except ValueError:
        return False, ""
    if not isinstance(answer, dict):
        return False, ""
    said = answer.get("result")
    return answer.get("is_error") is True, said if isinstance(said, str) else ""


async def _looked(service: Service, target: _Target) -> Compacted:
    await imported(service, target.transcript)
    native = await _native(service, target.session_id)
    is_new = len(native) > target.boundaries
    return Compacted(
        session_id=target.session_id,
        status="compacted" if is_new else "unchanged",
        tokens_before=native[0].tokens_before if is_new else None,
        tokens_after=native[0].tokens_after if is_new else None,
        must_keep_lines=len(target.lines),
        command=f"cd {shlex.quote(target.cwd)} && {PROGRAM} --resume {shlex.quote(target.session_id)}",
    )


async def _native(service: Service, session_id: str) -> list[BoundaryLine]:
    """The client's own compactions, the newest first."""
    page = await service.boundaries(session_id)
    return [line for line in page.boundaries if line.native and line.kind == "compact_boundary"]


def _lines(result: Compacted) -> list[str]:
    if result.status != "compacted":
        return [f"Claude Code ended, but {shown(result.session_id)} holds no new compaction."]
    before = tokens(result.tokens_before) if result.tokens_before is not None else "?"
    after = tokens(result.tokens_after) if result.tokens_after is not None else "?"
    return [
        f"Claude Code compacted {shown(result.session_id)}: {before} -> {after} tokens by its own count.",
        f"It was given {count(result.must_keep_lines, 'line')} to keep.",
        "A window in which this session is still open does not show it; open it anew with:",
        f"  {result.command}",
    ]
