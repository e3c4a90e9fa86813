"""Read the story: plain text in blocks, each begun by a line ``%% kind arguments``.

``%%+kind`` is a call made in parallel with the call before it; ``side.kind`` belongs to
the sub-agent of the task above it. The body of a block is the lines up to the next one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

CALLS = frozenset(
    ("read", "readimage", "grep", "glob", "bash", "edit", "write", "todo", "task", "webfetch", "websearch", "plan")
)
OTHERS = frozenset(
    ("user", "think", "say", "out", "time", "fork", "back", "hook", "enqueue", "remove", "summary", "stop")
)
_HEAD = re.compile(r"%%(\+?) ?(side\.)?([a-z]+) ?(.*)$")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of the story; ``line`` is its place for error messages."""

    kind: str
    arguments: str
    body: str
    line: str
    parallel: bool = False
    side: bool = False


def parse_story(text: str, name: str) -> list[Block]:
    """Split ``text`` into blocks. Raises ValueError for a line no block owns or a bad kind."""
    blocks: list[Block] = []
    head: tuple[str, str, str, bool, bool] | None = None
    body: list[str] = []

    def close() -> None:
        if head is not None:
            kind, arguments, line, parallel, side = head
            blocks.append(Block(kind, arguments, "\n".join(body).rstrip("\n"), line, parallel, side))
            body.clear()

    for number, line in enumerate(text.splitlines(), start=1):
        match = _HEAD.match(line)
        if match is None:
            if head is None:
                raise ValueError(f"{name}:{number}: text before the first block")
            body.append(line)
            continue
        close()
        plus, side, kind, arguments = match.groups()
        if kind not in CALLS | OTHERS:
            raise ValueError(f"{name}:{number}: unknown block {kind!r}")
        head = (kind, arguments.strip(), f"{name}:{number}", bool(plus), bool(side))
    close()
    return blocks


def read_story(folder: Path) -> list[Block]:
    """Read every ``*.story.txt`` of ``folder`` in the order of the names."""
    blocks: list[Block] = []
    for path in sorted(folder.glob("*.story.txt")):
        blocks.extend(parse_story(path.read_text(encoding="utf-8"), path.name))
    return blocks


def read_project(path: Path) -> dict[str, str]:
    """Read the project's first version: files joined by lines ``==== path``."""
    files: dict[str, str] = {}
    for part in path.read_text(encoding="utf-8").split("\n==== ")[1:]:
        name, _, content = part.partition("\n")
        files[name] = content if content.endswith("\n") else content + "\n"
    return files


def options(arguments: str) -> tuple[list[str], dict[str, str]]:
    """Split ``a b key=value`` into words and options."""
    words: list[str] = []
    named: dict[str, str] = {}
    for word in arguments.split():
        key, mark, value = word.partition("=")
        if mark:
            named[key] = value
        else:
            words.append(word)
    return words, named
