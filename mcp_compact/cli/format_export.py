"""Sessions in the form that a provider or a client takes: `mcp-compact export SESSION --format F`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from mcp_compact.cli.archive import ask, named_session
from mcp_compact.cli.compact_file import encoded
from mcp_compact.cli.output import print_json, write_whole
from mcp_compact.cli.terminal import terminal
from mcp_compact.service.exporting import Exported
from mcp_compact.service.service import Service

LISTED = 8


def export(arguments: argparse.Namespace) -> int:
    """Write a session's messages, keys masked: to a file (0600), else to stdout; what was done is said beside them."""

    async def work(service: Service) -> Exported:
        session_id = await named_session(service, arguments.session)
        return await service.export(session_id, arguments.format or "anthropic", whole=arguments.all)

    done = ask(work)
    content = _request(done) if arguments.request else encoded(done.messages, done.format)
    path = Path(arguments.output).expanduser() if arguments.output else None
    if path is not None:
        write_whole(path, content)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    if arguments.json:
        report = {name: getattr(done, name) for name in ("session_id", "format", "is_whole", "masked", "warnings")}
        print_json({"file": path, **report, "messages": len(done.messages)})
        return 0
    print("\n".join(_lines(done, arguments)), file=sys.stdout if path is not None else sys.stderr)
    return 0


def _request(done: Exported) -> bytes:
    """The request that these messages belong to: its model and system prompt beside them."""
    from mcp_compact.messages.codec import clean

    system = "\n\n".join(done.system)
    whole: dict[str, Any] = {"model": done.model} if done.model else {}
    match done.format:
        case "gemini":
            told = {"systemInstruction": {"parts": [{"text": system}]}} if system else {}
            whole |= {**told, "contents": list(done.messages)}
        case "responses":
            whole |= {"input": list(done.messages)}
        case _:
            whole |= {**({"system": system} if system else {}), "messages": list(done.messages)}
    return (json.dumps(clean(whole), ensure_ascii=False, indent=1) + "\n").encode()


def _lines(done: Exported, arguments: argparse.Namespace) -> list[str]:
    from mcp_compact.cli.account import warning_lines
    from mcp_compact.cli.text import count, shown

    screen = terminal("stdout" if arguments.output else "stderr")
    what = "everything that was said" if done.is_whole else "the live context"
    lines = [screen.bold(f"{shown(done.session_id)}: {what} as {done.format}, {count(len(done.messages), 'message')}")]
    if done.masked:
        lines.append(f"Keys or passwords were masked in {count(done.masked, 'text')}; `export --raw` leaves them.")
    if done.system and not arguments.request:
        lines.append("Its system prompt stands outside of the list: --request writes both.")
    lines += warning_lines(list(done.warnings), LISTED)
    return [*lines, f"Written to {shown(arguments.output)}."] if arguments.output else lines
