"""The hooks file: JSON that names, for each event, the commands to run. Checked whole when it is read."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn, get_args

from mcp_compact.errors import CallerError, ServerError
from mcp_compact.ports.hooks import HookEvent

EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
KEYS = ("command", "timeout_s", "env")
MAX_BYTES = 1024 * 1024
MAX_TIMEOUT_S = 600.0
EXAMPLE = 'For example {"pre_compact": ["echo keep this line"]}.'

Commands = Mapping[HookEvent, tuple["Command", ...]]


@dataclass(frozen=True, slots=True)
class Command:
    """One command. A text is run by the shell, words are run as they are."""

    words: str | tuple[str, ...]
    timeout_s: float
    env: tuple[tuple[str, str], ...] = ()
    """Added to the server's own environment."""


def read_hooks_file(path: Path, timeout_s: float) -> Commands:
    """The commands by event, in the order of the file; `timeout_s` holds for those that state none.

    Raises CallerError for a file that is missing, may be changed by other users, or is wrong in itself;
    ServerError where the system does not let it be read.
    """
    try:
        known = _object(json.loads(_text(path), object_pairs_hook=_once), "the file", EVENTS, "event")
        return {event: _commands(known[event], event, timeout_s) for event in EVENTS if event in known}
    except _WrongError as wrong:
        raise CallerError("bad_hooks_file", f"Hooks file {path}: {wrong}.", wrong.hint) from None
    except RecursionError:
        raise CallerError("bad_hooks_file", f"Hooks file {path}: it is nested too deep.", EXAMPLE) from None
    except ValueError as error:
        raise CallerError("bad_hooks_file", f"Hooks file {path} is no JSON: {error}.", EXAMPLE) from None


class _WrongError(Exception):
    def __init__(self, what: str, hint: str = EXAMPLE) -> None:
        super().__init__(what)
        self.hint = hint


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            _no_file(path)
        with path.open("rb") as file:
            _refuse_shared(path, os.fstat(file.fileno()))
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ServerError(
            "unreadable_file", f"The hooks file {path} cannot be read: {error.strerror}.", "Check its permissions."
        ) from error
    if len(content) > MAX_BYTES:
        raise _WrongError(f"it is larger than {MAX_BYTES} bytes")
    return content.decode("utf-8-sig")


def _no_file(path: Path) -> NoReturn:
    hint = "Correct MCP_COMPACT_HOOKS, or unset it to run no hooks."
    if path.exists():
        raise CallerError("not_a_file", f"The hooks file {path} is no regular file.", hint)
    raise CallerError("no_such_file", f"The hooks file {path} does not exist.", hint)


def _refuse_shared(path: Path, status: os.stat_result) -> None:
    """Whoever may write the file decides what this user runs."""
    if sys.platform == "win32":
        return
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CallerError(
            "unsafe_file", f"The hooks file {path} may be changed by other users.", "Run chmod go-w on it."
        )
    if status.st_uid not in (0, os.geteuid()):
        raise CallerError(
            "unsafe_file", f"The hooks file {path} belongs to another user.", "Let the server's user own it."
        )


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    known = dict(pairs)
    if len(known) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in known if names.count(name) > 1)
        raise _WrongError(f"{twice!r} is there twice", "Join the two.")
    return known


def _object(value: object, where: str, names: Iterable[str], kind: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _WrongError(f"{where} holds {_shown(value)}, no JSON object")
    known = tuple(names)
    for name in value:
        if name not in known:
            near = get_close_matches(name.lower().replace("-", "_"), known, 1)
            hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
            raise _WrongError(f"{where}: {_shown(name)} is no {kind}", hint)
    return value


def _commands(value: object, event: HookEvent, timeout_s: float) -> tuple[Command, ...]:
    if not isinstance(value, list):
        raise _WrongError(f"{event} is {_shown(value)}, no list of hooks")
    return tuple(_command(item, f"{event}, hook {place}", timeout_s) for place, item in enumerate(value, 1))


def _command(value: object, where: str, timeout_s: float) -> Command:
    if isinstance(value, str | list):
        return Command(_words(value, where), timeout_s)
    known = _object(value, where, KEYS, "key of a hook")
    if "command" not in known:
        raise _WrongError(f"{where} has no 'command'")
    return Command(
        _words(known["command"], where),
        _timeout(known["timeout_s"], where) if "timeout_s" in known else timeout_s,
        _env(known.get("env", {}), where),
    )


def _words(value: object, where: str) -> str | tuple[str, ...]:
    if isinstance(value, str) and value.strip() and _passable(value):
        return value
    if isinstance(value, list) and all(isinstance(word, str) and _passable(word) for word in value):
        words = tuple(value)
        if words and words[0].strip():
            return words
    raise _WrongError(
        f"{where}: the command is {_shown(value)}", "Give a text for the shell, or a list: the program and its words."
    )


def _timeout(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_TIMEOUT_S:
        return float(value)
    raise _WrongError(f"{where}: timeout_s is {_shown(value)}", f"Give seconds above 0, at most {MAX_TIMEOUT_S:g}.")


def _env(value: object, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise _WrongError(f"{where}: env is {_shown(value)}, no JSON object", 'Give {"NAME": "text"}.')
    for name, text in value.items():
        if not name or "=" in name or not _passable(name):
            raise _WrongError(f"{where}: {_shown(name)} cannot name a variable", 'Give {"NAME": "text"}.')
        if not isinstance(text, str) or not _passable(text):
            # The value itself may be a secret.
            raise _WrongError(f"{where}: the value of {name} is no text that a variable can hold", "Give a text.")
    return tuple(value.items())


def _passable(text: str) -> bool:
    """Whether the system can hand the text to a program: no NUL, no lone surrogate."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 - as much as helps to find the place
