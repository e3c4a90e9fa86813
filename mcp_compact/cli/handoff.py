"""`mcp-compact handoff`: a brief for whoever goes on with a session's work."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from mcp_compact import handoff_note
from mcp_compact.cli.archive import ask, here
from mcp_compact.cli.git_state import git_state
from mcp_compact.cli.named import found_session
from mcp_compact.cli.output import plain, print_json, write_whole
from mcp_compact.cli.text import shown
from mcp_compact.config import load_settings
from mcp_compact.errors import CallerError
from mcp_compact.service.deps import session_key
from mcp_compact.service.handoff import Handoff, brief, handoff
from mcp_compact.service.service import Service

AFTER_CLEAR = "It is given to the next conversation that /clear starts in {cwd}, once, within an hour."


def run(arguments: argparse.Namespace) -> int:
    """Show a brief, write it to a file, or leave it for the next fresh conversation of the project."""

    async def work(service: Service) -> tuple[Handoff, int]:
        session_id = await found_session(service, arguments.session)
        return await handoff(service.deps, session_key(service.namespace, session_id)), service.deps.clock.now_ms()

    facts, now_ms = ask(work, create=True)
    facts = replace(facts, git=git_state(facts.cwd))
    text = brief(facts)
    note = _left(facts, text, now_ms) if arguments.after_clear else ""
    if arguments.output:
        write_whole(Path(arguments.output).expanduser(), text.encode("utf-8", "replace"))
    if arguments.json:
        print_json({**plain(facts), "text": text, "output": arguments.output or "", "after_clear": bool(note)})
        return 0
    if not arguments.output:
        print("\n".join(_visible(line) for line in text.splitlines()))
    for said in (f"Written to {shown(arguments.output)}." if arguments.output else "", note):
        if said:
            print(said, file=sys.stderr)
    return 0


def _left(facts: Handoff, text: str, now_ms: int) -> str:
    """Leave the brief for the project's next fresh conversation; what is said of it."""
    cwd = facts.cwd or here()
    try:
        handoff_note.put(str(load_settings().db), cwd, text, now_ms)
    except OSError as error:
        raise CallerError(
            "note_refused", f"The brief cannot be left beside the archive: {error}.", "Check the folder's permissions."
        ) from error
    return AFTER_CLEAR.format(cwd=shown(cwd))


def _visible(line: str) -> str:
    """A line that can do nothing to a terminal."""
    return "".join(char if char.isprintable() else " " for char in line)
