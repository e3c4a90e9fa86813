"""What the environment says to any program: is a variable set, does the terminal want colours.

Settings are read by config.py alone; here is only what is no setting, or whether one is there at all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

_environ = os.environ  # noqa: TID251 (see above)


def value_of(name: str) -> str:
    """A variable's text, trimmed; empty where it is not set. For showing it; what it means is config's."""
    return _environ.get(name, "").strip()


def wants_colours() -> bool:
    """Not where NO_COLOR is set (https://no-color.org), and not on a terminal that has none."""
    return not value_of("NO_COLOR") and value_of("TERM") != "dumb"


def surroundings(more: Mapping[str, str]) -> dict[str, str]:
    """The environment for a program that is started from here, with a few variables set."""
    return {**_environ, **more}
