"""`mcp-compact install CLIENT` and `uninstall CLIENT`: what will change is shown, tested, then done."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcp_compact.cli import install_claude
from mcp_compact.cli.install_check import Check, client_check, hook_check, server_check
from mcp_compact.cli.install_entries import Entries, JsonEntry, JsonItem, TomlBlock, Wanted
from mcp_compact.cli.install_files import Change, changes_back, changes_for, install, uninstall
from mcp_compact.cli.install_others import OTHERS
from mcp_compact.cli.install_program import this_program
from mcp_compact.cli.install_record import Record, record_of
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import Terminal, terminal
from mcp_compact.cli.text import count, shown
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.masking import masked

ENVIRONMENTS, HIDDEN = ("env", "environment", "headers", "http_headers"), "***"
"""Members of an entry whose values are not shown."""
SERVE = ("serve", "--profile", "agent")
MARKS = {"made": ("+", "32"), "changed": ("~", "33"), "removed": ("-", "31"), "same": ("=", "2")}


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that an installation would do."""

    client: str
    folder: Path
    record: Record
    changes: list[Change]
    wanted: Sequence[Wanted] = ()
    checks: Sequence[Callable[[], Check]] = ()
    notes: Sequence[str] = ()
    copies: list[Path] = field(default_factory=list)

    @property
    def changed(self) -> list[Change]:
        return [change for change in self.changes if change.what != "same"]


def run(arguments: argparse.Namespace) -> int:
    """Install for a client."""
    plan = _plan(arguments.client, statusline=arguments.statusline)
    if not arguments.json:
        _show(plan, terminal())
    checks = [] if arguments.dry_run else _tested(plan, quiet=arguments.json)
    if not arguments.dry_run:
        install(plan.changes, plan.wanted, plan.record)
    if arguments.json:
        print_json(_as_json(plan, "install", dry_run=arguments.dry_run, checks=checks))
    else:
        _say_installed(plan, dry_run=arguments.dry_run)
    return 0


def run_uninstall(arguments: argparse.Namespace) -> int:
    """Take an installation back."""
    folder = _folder(arguments.client)
    record = record_of(arguments.client, folder)
    plan = Plan(arguments.client, folder, record, changes_back(record))
    if not arguments.json:
        _show(plan, terminal())
    if not arguments.dry_run:
        plan.copies.extend(uninstall(plan.changes, record))
    if arguments.json:
        print_json(_as_json(plan, "uninstall", dry_run=arguments.dry_run, checks=[]))
    else:
        _say_uninstalled(plan, dry_run=arguments.dry_run)
    return 0


def _folder(client: str) -> Path:
    return install_claude.folder() if client == install_claude.CLIENT else OTHERS[client].folder()


def _plan(client: str, *, statusline: bool | None) -> Plan:
    folder, program = _folder(client), this_program()
    record = record_of(client, folder)
    server = [*program.words, *SERVE]
    checks: list[Callable[[], Check]] = [lambda: server_check(server, program.env)]
    hook = () if client == install_claude.CLIENT else ("--client", client)
    checks.append(lambda: hook_check(program.hook_line(*hook), _probe()))
    if client != install_claude.CLIENT:
        if statusline:
            raise CallerError("no_status_line", f"{client} has no status line that a program can write.",
                              "Leave --statusline out.")  # fmt: skip
        other = OTHERS[client]
        wanted = other.wanted(folder, program, record)
        own = checks if other.has_server else checks[1:]
        return Plan(client, folder, record, changes_for(wanted, record), wanted, own, other.notes)
    wanted = install_claude.wanted(folder, program, record, statusline=statusline)
    checks.insert(0, lambda: client_check("claude", install_claude.NEEDS))
    notes = tuple(install_claude.notes(folder, wanted, statusline=statusline))
    return Plan(client, folder, record, changes_for(wanted, record), wanted, checks, notes)


def _probe() -> dict[str, object]:
    """What a client tells a hook at the start of a session that has no transcript yet."""
    return {
        "session_id": "00000000-0000-4000-8000-000000000000",
        "transcript_path": "no-transcript-yet.jsonl",
        "hook_event_name": "SessionStart",
        "source": "startup",
    }


def _tested(plan: Plan, *, quiet: bool) -> list[Check]:
    """All tests, before anything is written. Raises where one failed."""
    screen, checks = terminal(), []
    for test in plan.checks:
        check = test()
        checks.append(check)
        if not quiet:
            mark = {True: ("ok", "32"), False: ("FAILED", "31"), None: ("note", "33")}[check.ok]
            print(f"  {screen.paint(f'{mark[0]:<6}', mark[1])} {check.name}: {check.text}", flush=True)
        if check.ok is False:
            kind = CallerError if check.name == "client" else ServerError
            raise kind(f"{check.name}_failed", f"The {check.name} cannot be used: {check.text}. Nothing was changed.",
                       "`mcp-compact doctor` looks at the rest of the installation.")  # fmt: skip
    return checks


# ---------------------------------------------------------------- what is said


def _show(plan: Plan, screen: Terminal) -> None:
    print(screen.bold(f"{plan.client} in {shown(str(plan.folder))}"))
    for change in plan.changes:
        sign, code = MARKS[change.what]
        only = f" (only {', '.join(change.entries)})" if change.entries else ""
        note = f": {change.note}" if change.note else ""
        print(f"  {screen.paint(sign, code)} {change.what:<7} {shown(str(change.path))}{only}{note}")
        for text in _entry_lines(plan, change) if change.what != "same" else ():
            print(f"      {text}")
    for note in plan.notes:
        print(f"  {note}")


def _entry_lines(plan: Plan, change: Change) -> Iterator[str]:
    """Our entries in a file of somebody else, as they will stand there."""
    for item in plan.wanted:
        for entry in item.entries if isinstance(item, Entries) and item.path == change.path else ():
            match entry:
                case JsonEntry(value=value, previous=previous):
                    yield f"{entry.name}: {_as_line(value)}"
                    if previous is not None:
                        yield f"instead of: {_as_line(previous)}"
                case JsonItem(value=value):
                    yield f"{entry.name}, one more: {_as_line(value)}"
                case TomlBlock(block=block):
                    yield from (shown(line) for line in block.splitlines() if line)


def _as_line(value: object) -> str:
    """A value of somebody's settings as one line. What an environment holds may be a key or a token, known or not."""
    return shown(masked(json.dumps(_without_secrets(value), ensure_ascii=False)))


def _without_secrets(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: dict.fromkeys(inner, HIDDEN) if key in ENVIRONMENTS and isinstance(inner, dict)
            else _without_secrets(inner)
            for key, inner in value.items()
        }  # fmt: skip
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value


def _say_installed(plan: Plan, *, dry_run: bool) -> None:
    done = count(len(plan.changed), "file")
    if dry_run:
        print(f"\nThat would change {done}. Nothing was changed." if plan.changed else "\nNothing would change.")
    elif not plan.changed:
        print("\nInstalled already: nothing was changed.")
    else:
        shows = "; `/mcp-compact status` shows what is kept" if plan.client == "claude-code" else ""
        print(f"\nInstalled: {done} changed. Start a new session of the client{shows}.")
        print(f"`mcp-compact uninstall {plan.client}` takes it back. The record is kept in {plan.record.home}.")


def _say_uninstalled(plan: Plan, *, dry_run: bool) -> None:
    if not plan.record.files and not plan.changes:
        print("\nIt is not installed there: nothing was changed.")
    elif dry_run:
        print(f"\nThat would change {count(len(plan.changed), 'file')}. Nothing was changed.")
    else:
        print(f"\nTaken back: {count(len(plan.changed), 'file')} changed. The archive stays where it is.")
    for copy in plan.copies:
        print(f"A changed file was copied to {copy}")


def _as_json(plan: Plan, action: str, *, dry_run: bool, checks: Sequence[Check]) -> dict[str, object]:
    changes = [
        {"path": change.path, "what": change.what, "entries": change.entries, "note": change.note}
        for change in plan.changes
    ]
    return {
        "client": plan.client,
        "action": action,
        "dry_run": dry_run,
        "folder": plan.folder,
        "changed": bool(plan.changed) and not dry_run,
        "changes": changes,
        "checks": checks,
        "notes": plan.notes,
        "copies": plan.copies,
        "record": plan.record.home,
    }
