"""Which client a process works for. A client starts its server and its hooks, and so they find each other.

A process is named by its number and the moment of its start, for numbers are used again. Where the system
does not tell the moment (all but Linux), the number alone is the name.
"""

from __future__ import annotations

import os
import sys

_LAUNCHERS = frozenset(("sh", "bash", "dash", "zsh", "fish", "ash", "ksh", "uv", "uvx", "timeout", "env", "nice"))
"""What may stand between a client and what it starts."""
_MOST = 8
_PPID, _START = 1, 19
"""Places in /proc/PID/stat, behind the name of the program."""


def client(stated: int = 0) -> str:
    """The process that this one works for: the one that is stated, else the nearest ancestor that is no launcher."""
    pid = os.getppid()
    if stated:
        return name_of(stated) or name_of(pid)
    for _ in range(_MOST):
        facts = _facts(pid)
        if facts is None:
            break
        program, parent, start = facts
        if program not in _LAUNCHERS or parent <= 1:
            return f"{pid}:{start}"
        pid = parent
    return name_of(os.getppid())


def own() -> str:
    """This process."""
    return name_of(os.getpid())


def name_of(pid: int) -> str:
    """The name of a process; empty where it has ended, as far as the system tells."""
    facts = _facts(pid)
    if facts is not None:
        return f"{pid}:{facts[2]}"
    return "" if os.path.isdir("/proc/self") else f"{pid}:"


def is_alive(name: str) -> bool:
    """Does the process of this name still run? False also where the system cannot tell without harm."""
    number = name.partition(":")[0]
    if not number.isdigit():
        return False
    if os.path.isdir("/proc/self"):
        return name_of(int(number)) == name
    if sys.platform == "win32":
        # There the call below would end the process.
        return False
    try:
        os.kill(int(number), 0)
    except OSError:
        return False
    return True


def _facts(pid: int) -> tuple[str, int, str] | None:
    """A process's program, parent and start; None where there is no such file."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return head.partition("(")[2], int(fields[_PPID]), fields[_START]
