"""The streams that a command writes to: their encoding, colours, width."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TextIO

from mcp_compact.cli.environment import wants_colours

COLUMNS = 80
FEWEST_COLUMNS = 60
BLOCKS = "█▓▒░▏"
RESET = "\x1b[0m"
# Asked for once, before the streams are set to UTF-8: what the terminal itself can show.
_own_encoding: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Terminal:
    """What a stream can show. `blocks`: block characters; otherwise plain ASCII is drawn."""

    colours: bool = False
    blocks: bool = True
    columns: int = COLUMNS

    def paint(self, text: str, code: str) -> str:
        """The text in a colour (an SGR code such as `1` or `32`), where there are colours."""
        return f"\x1b[{code}m{text}{RESET}" if self.colours and code and text else text

    def bold(self, text: str) -> str:
        """The text in bold."""
        return self.paint(text, "1")

    def faint(self, text: str) -> str:
        """The text dimmed."""
        return self.paint(text, "2")


def prepare_streams() -> None:
    """UTF-8 on both streams whatever the locale says; what cannot be encoded becomes a question mark."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        _own_encoding.setdefault(name, getattr(stream, "encoding", None) or "ascii")
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")


def terminal(name: str = "stdout", *, wide: bool = False) -> Terminal:
    """What `stdout` or `stderr` can show. Colours only on a terminal, and not where NO_COLOR is set.

    Pictures are drawn for 80 columns; a list (`wide`) takes what the terminal has.
    """
    stream: TextIO = getattr(sys, name)
    on_screen = is_screen(stream)
    size = shutil.get_terminal_size((COLUMNS, 24)).columns if on_screen else COLUMNS
    return Terminal(
        colours=on_screen and wants_colours(),
        blocks=_can_show(_own_encoding.get(name) or "utf-8"),
        columns=max(FEWEST_COLUMNS, size if wide else min(COLUMNS, size)),
    )


def is_screen(stream: TextIO) -> bool:
    """Is somebody looking at it?"""
    try:
        return stream.isatty()
    except ValueError:
        return False


def _can_show(encoding: str) -> bool:
    try:
        BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def no_more_output() -> None:
    """Let nothing be written at exit to a reader that has gone."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, ValueError):
        return
    finally:
        os.close(devnull)
