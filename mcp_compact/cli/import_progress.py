"""How far an import is, for who waits for it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from mcp_compact.cli.picture import bar
from mcp_compact.cli.terminal import Terminal, is_screen
from mcp_compact.cli.text import share, shown, size

BAR_COLUMNS = 30
REDRAW_S = 0.1
PLAIN_LINE_S = 10.0
"""Where nobody watches, a line of progress comes so rarely."""


class Progress:
    """A bar on stderr where somebody watches; else a line now and then. Called with done, total and what.

    `measure` writes how much that is: bytes, unless it says otherwise.
    """

    def __init__(self, screen: Terminal, measure: Callable[[int], str] = size) -> None:
        self._screen, self._measure = screen, measure
        self._watched = is_screen(sys.stderr)
        self._last_s = time.monotonic()
        self._drawn = 0

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show how far it is; `total` 0 means unknown."""
        now_s = time.monotonic()
        if now_s - self._last_s < (REDRAW_S if self._watched else PLAIN_LINE_S):
            return
        self._last_s = now_s
        if not self._watched:
            so_far = f": {self._measure(done)}" if done or total else " ..."
            print(shown(what) + so_far + (f" of {self._measure(total)}" if total else ""), file=sys.stderr)
            return
        drawn = bar(min(done, total), total, BAR_COLUMNS, self._screen) if total else ""
        line = f"{shown(what)} {drawn} {share(done, total) if total else self._measure(done)}"[
            : self._screen.columns - 1
        ]
        print("\r" + line.ljust(self._drawn), end="", file=sys.stderr, flush=True)
        self._drawn = len(line)

    def end(self) -> None:
        """Take the bar away."""
        if self._drawn:
            print("\r" + " " * self._drawn + "\r", end="", file=sys.stderr, flush=True)
            self._drawn = 0
