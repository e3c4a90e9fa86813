"""`mcp-compact resume`: a new session file of a client that begins with the compacted context of an old one."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcp_compact.cli.account import warning_lines
from mcp_compact.cli.archive import ask, here
from mcp_compact.cli.client_folders import claude_project, codex_provider, codex_rollout
from mcp_compact.cli.named import found_session
from mcp_compact.cli.output import print_json
from mcp_compact.cli.text import shown, tokens
from mcp_compact.errors import CallerError, CompactError
from mcp_compact.service.resume import NewContext
from mcp_compact.service.service import Service
from mcp_compact.transcripts.registry import CLAUDE_CODE, CODEX

LISTED = 8


@dataclass(frozen=True, slots=True)
class Resumed:
    """A new session file, and how to open it."""

    session_id: str
    """Of the session that it goes on from."""
    new_session_id: str
    format: str
    path: str
    cwd: str
    command: str
    status: str
    """`compacted`, or why it holds the context as it was."""
    tokens_before: int
    tokens_after: int
    records: int
    pins: int
    warnings: tuple[str, ...]


def run(arguments: argparse.Namespace) -> int:
    """Write a new session file, and say how to open it."""

    async def work(service: Service) -> Resumed:
        return await _resumed(service, arguments)

    result = ask(work, create=True)
    if arguments.json:
        print_json(result)
    else:
        print("\n".join(_lines(result)))
    return 0


async def _resumed(service: Service, arguments: argparse.Namespace) -> Resumed:
    session_id = await found_session(service, arguments.session)
    context = await service.new_context(session_id, target_tokens=arguments.target)
    cwd = _folder(arguments.cwd or "", context.facts.cwd or "")
    context = replace(context, facts=replace(context.facts, cwd=str(cwd)))
    new_id = service.deps.clock.new_uuid()
    format_name = arguments.format or context.client or CLAUDE_CODE
    entries, path = _file(format_name, service, context, new_id, cwd)
    write_new(path, entries)
    context = replace(context, has_boundary=format_name == CLAUDE_CODE)
    pins, untaken = await _archived(service, context, new_id, path)
    return Resumed(
        session_id=session_id,
        new_session_id=new_id,
        format=format_name,
        path=str(path),
        cwd=str(cwd),
        command=_command(format_name, new_id, cwd),
        status=context.status,
        tokens_before=context.tokens_before,
        tokens_after=context.tokens_after,
        records=len(entries),
        pins=pins,
        warnings=(*context.warnings, *untaken),
    )


async def _archived(service: Service, context: NewContext, new_id: str, path: Path) -> tuple[int, tuple[str, ...]]:
    """Take the new session into the archive; the number of pins that went along, and why it could not be taken."""
    try:
        pins = await service.hand_on(context, new_id)
        await service.import_file(path)
    except CompactError as error:
        # The file is whole and can be opened: that is not to be hidden by what failed after it.
        return 0, (f"the new session is not in the archive yet: {error.message}",)
    return pins, ()


def _file(
    format_name: str, service: Service, context: NewContext, new_id: str, cwd: Path
) -> tuple[list[dict[str, Any]], Path]:
    """The new session's objects in the client's own form, and where the client keeps them."""
    if format_name == CODEX:
        from mcp_compact.transcripts.codex_out import OPENAI, session_items

        now_ms = service.deps.clock.now_ms()
        items = session_items(context.turns, context.facts, new_id, now_ms, codex_provider() or OPENAI)
        return list(items), codex_rollout(new_id, now_ms)
    from mcp_compact.messages.ids import MessageUuid
    from mcp_compact.transcripts.claude_code_out import NewSession, session_entries

    new = NewSession(
        new_id,
        MessageUuid(service.deps.clock.new_uuid()),
        context.facts,
        context.tokens_before,
        context.tokens_after,
        context.overhead_tokens,
        context.last_uuid,
    )
    return list(session_entries(context.turns, new, context.records)), claude_project(cwd) / f"{new_id}.jsonl"


def _folder(asked: str, own: str) -> Path:
    """The folder in which the new session is opened: as asked, else the old session's."""
    name = asked or own or here()
    path = Path(name).expanduser()
    if path.is_dir():
        # Clients name a project by the real path of the folder that they are started in.
        return path.resolve()
    what = "The folder" if asked else "The session's folder"
    raise CallerError("no_folder", f"{what} {name} is not here.", "Name the one to work in with --cwd FOLDER.")


def write_new(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines to a file that is not there yet, for its owner's eyes only (0600): all of it, or nothing.

    Raises CallerError where the file exists or the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CallerError("file_exists", f"{path} exists already and is left as it is.", "Run it again.") from None
    except OSError as error:
        raise CallerError(
            "output_refused", f"{path} cannot be written: {error.strerror}.", "Check the folder's permissions."
        ) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            for entry in entries:
                stream.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _command(format_name: str, new_id: str, cwd: Path) -> str:
    opens = ["codex", "resume", new_id] if format_name == CODEX else ["claude", "--resume", new_id]
    return f"cd {shlex.quote(str(cwd))} && {shlex.join(opens)}"


def _lines(result: Resumed) -> list[str]:
    change = f"{tokens(result.tokens_before)} -> {tokens(result.tokens_after)} tokens"
    if result.status != "compacted":
        change = f"{tokens(result.tokens_after)} tokens, not compacted ({result.status.replace('_', ' ')})"
    return [
        f"New session {result.new_session_id} from {shown(result.session_id)}: {change}.",
        f"Written to {shown(result.path)}; the old session's file is as it was.",
        *warning_lines(list(result.warnings), LISTED),
        "Open it with:",
        f"  {result.command}",
    ]
