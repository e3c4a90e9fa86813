"""`mcp-compact validate`: a list of messages on disk or stdin by the rules of a provider, without a server."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_compact.cli.compact_file import STDIN, chunks_of
from mcp_compact.cli.files import about_file, readable_file
from mcp_compact.cli.output import plain, print_json, write_whole
from mcp_compact.cli.terminal import Terminal, terminal
from mcp_compact.errors import CallerError

LISTED = 40
"""Findings and changes that are shown; `--json` tells all."""


REPAIRS = "`mcp-compact validate {file} --repair -o OUT` writes a list that is accepted."
NO_REPAIR = "No repair makes a list of it that is accepted."


@dataclass(frozen=True, slots=True)
class Given:
    """A file's messages, and what it was: a list, a request that holds one under `key`, or a message a line."""

    messages: list[Any]
    value: Any = None
    key: str = ""
    by_line: bool = False

    def encoded(self, messages: Sequence[Any]) -> bytes:
        """Messages in the form that the file has."""
        from mcp_compact.messages.codec import clean

        lines = [json.dumps(clean(item), ensure_ascii=False, separators=(",", ":")) for item in messages]
        if self.by_line:
            return "".join(f"{line}\n" for line in lines).encode()
        if self.key:
            whole = {**self.value, self.key: list(messages)}
            return (json.dumps(clean(whole), ensure_ascii=False, indent=1) + "\n").encode()
        return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def run(arguments: argparse.Namespace) -> int:
    """Say what would be refused and where, and write a list that is accepted where that is asked for and can be.

    Ends with 2 where something would be refused and was not repaired.
    """
    from mcp_compact.cli.text import quoted
    from mcp_compact.service.validating import provider_told, validation
    from mcp_compact.transcripts.validity.rules import REFUSED

    if arguments.output and not arguments.repair:
        raise CallerError("nothing_to_write", "Only a repaired list is written to a file.", "Add --repair.")
    name = "stdin" if arguments.file == STDIN else arguments.file
    try:
        data = _data(arguments.file)
        given = _given(data)
        provider = arguments.provider or provider_told(given.messages, data)
        done = validation(provider, given.messages, repair=arguments.repair)
    except CallerError as error:
        raise about_file(error, name) from error
    # A list that no repair can mend is not written: it would be refused all the same.
    is_written = arguments.repair and done.status != REFUSED
    if is_written:
        content = given.encoded(done.messages)
        if arguments.output:
            write_whole(Path(arguments.output).expanduser(), content)
        elif not arguments.json:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.flush()
    if arguments.json:
        report = {key: value for key, value in plain(done).items() if key not in ("messages", "next_cursor")}
        print_json({"source": name, "output": arguments.output if is_written and arguments.output else "", **report})
    else:
        is_list_out = arguments.repair and not arguments.output
        screen = terminal("stderr" if is_list_out else "stdout")
        lines = _lines(done, name, screen, arguments.output if is_written and arguments.output else "")
        if arguments.repair and not is_written:
            lines += ["", "Nothing was written: no repair makes a list of it that is accepted."]
        elif done.refused and not arguments.repair:
            can = validation(provider, given.messages, repair=True).status != REFUSED
            lines += ["", REPAIRS.format(file=quoted(name)) if can else NO_REPAIR]
        print("\n".join(lines), file=sys.stderr if is_list_out else sys.stdout)
    return 2 if done.status == REFUSED else 0


def _data(file: str) -> bytes:
    from mcp_compact.config import load_settings

    path = None if file == STDIN else readable_file(file)
    return b"".join(chunks_of(path, load_settings().max_file_bytes))


def _given(data: bytes) -> Given:
    """The messages of a file. Raises CallerError where it holds none."""
    from mcp_compact.service.validating import LISTS, listed
    from mcp_compact.transcripts.registry import detect_format

    text = data.decode("utf-8-sig", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # Says what it is where it is no JSON at all.
        detect_format(data)
        return Given(_by_line(text), by_line=True)
    key = next((key for key in LISTS if isinstance(value, dict) and key in value), "")
    if isinstance(value, dict) and isinstance(value.get("request"), dict):
        raise CallerError("is_a_log", "This is a log of requests.", "`mcp-compact compact FILE` reads it.")
    return Given(listed(value), value, key if isinstance(value, dict) and isinstance(value.get(key), list) else "")


def _by_line(text: str) -> list[Any]:
    messages = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                messages.append(json.loads(line))
            except (ValueError, RecursionError):
                raise CallerError(
                    "not_json", f"Line {number} is no JSON.", "Give a JSON list, or one message a line."
                ) from None
    return messages


def _lines(done: Any, name: str, screen: Terminal, output: str) -> list[str]:  # noqa: ANN401 (a Validation)
    from mcp_compact.cli.text import count, shown

    head = f"{shown(name)}: {done.status} by the rules of {done.provider}, {count(done.checked, 'message')}"
    lines = [screen.bold(head)]
    if done.changes:
        lines += ["", f"{count(len(done.changes), 'change')}:"]
        lines += _listed([f"  {shown(item.path)}  {shown(item.text)}" for item in done.changes])
    else:
        lines += _listed(
            [f"  {_label(f.severity)}  {shown(f.path)}  {shown(f.text)}  ({f.rule})" for f in _sorted(done)]
        )
    lines += [f"  {shown(warning)}" for warning in done.warnings]
    return [*lines, "", f"Written to {shown(output)}."] if output else lines


def _label(severity: str) -> str:
    return {"refused": "refused", "depends": "depends", "open": "open   "}[severity]


def _sorted(done: Any) -> list[Any]:  # noqa: ANN401 (a Validation)
    """What is refused first."""
    order = {"refused": 0, "open": 1, "depends": 2}
    return sorted(done.findings, key=lambda finding: order[finding.severity])


def _listed(lines: Sequence[str]) -> list[str]:
    more = [f"  ... {len(lines) - LISTED} more (--json tells all)"] if len(lines) > LISTED else []
    return [*lines[:LISTED], *more]
