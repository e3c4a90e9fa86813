"""Prints a command of README.md word for word, so that CI runs what readers run.

A command is one line in a fenced block of its own, right under a marker such as `<!-- command: demo -->`:

    python .ci/readme_commands.py demo
    python .ci/readme_commands.py --list
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
COMMAND = re.compile(
    r"^<!-- command: (?P<name>[a-z-]+) -->\n+```(?:bash|sh)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
MARKER = re.compile(r"^<!-- command:(?P<rest>.*)$", re.MULTILINE)


class ReadmeError(Exception):
    """README.md does not hold its commands in the form that this script reads."""


def commands(text: str) -> dict[str, str]:
    """The marked commands of a README by name; raises ReadmeError for a marker without its one line."""
    found: dict[str, str] = {}
    for match in COMMAND.finditer(text):
        name, lines = match["name"], match["body"].splitlines()
        if name in found:
            raise ReadmeError(f"the command {name!r} is marked twice")
        if len(lines) != 1 or not lines[0].strip():
            raise ReadmeError(f"the command {name!r} has {len(lines)} lines; it must be exactly one")
        found[name] = lines[0]
    markers = len(MARKER.findall(text))
    if markers != len(found):
        raise ReadmeError(f"{markers} command markers, but {len(found)} of them stand right over a fenced bash block")
    return found


def main(arguments: list[str]) -> int:
    """Print the asked command (or all names); 0 if it is there, 2 with the reason if not."""
    if len(arguments) != 1:
        print("usage: readme_commands.py NAME | --list", file=sys.stderr)
        return 2
    try:
        known = commands(README.read_text(encoding="utf-8"))
    except ReadmeError as error:
        print(f"README.md: {error}", file=sys.stderr)
        return 2
    if arguments[0] == "--list":
        print("\n".join(known))
        return 0
    if arguments[0] not in known:
        print(f"README.md: no command {arguments[0]!r}; there are: {', '.join(known) or 'none'}", file=sys.stderr)
        return 2
    print(known[arguments[0]])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
