"""Reading one variable at a time. A bad value is ignored and warned of, never raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import TypeVar

from mcp_compact.compaction.policy import levels
from mcp_compact.errors import CallerError
from mcp_compact.settings_table import SETTINGS, Setting

PREFIX = "MCP_COMPACT_"
TRUTHY = ("1", "true", "yes", "on")
FALSY = ("0", "false", "no", "off")
SHOWN = 40
"""Characters of a bad value that a warning shows."""


def is_truthy(value: str) -> bool:
    """`1 true yes on`, any case, trimmed."""
    return value.strip().lower() in TRUTHY


_Value = TypeVar("_Value")


def setting_of(name: str) -> Setting:
    """The setting of that name."""
    return next(item for item in SETTINGS if item.name == name)


@dataclass(slots=True)
class SettingsReader:
    """Reads variables one by one; what cannot be read is ignored and warned of."""

    environ: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)

    def given(self, name: str) -> Iterator[tuple[str, str]]:
        """The variable and its historic names, as far as they are set: name and value, trimmed."""
        setting = setting_of(name)
        for known in (name, *setting.historic):
            value = self.environ.get(known, "").strip()
            if value:
                yield known, value

    def text(self, name: str) -> str:
        """What is set first of the variable and its historic names."""
        return next((value for _, value in self.given(name)), "")

    def first(self, name: str, read: Callable[[str, str], _Value | None], default: _Value) -> _Value:
        """The first value that can be read: a bad one is ignored, and the next one counts."""
        found = (read(known, value) for known, value in self.given(name))
        return next((value for value in found if value is not None), default)

    def warn(self, text: str) -> None:
        """Keep a warning, once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def flag(self, name: str, *, default: bool) -> bool:
        return self.first(name, self._flag, default)

    def _flag(self, name: str, value: str) -> bool | None:
        if value.lower() in TRUTHY + FALSY:
            return is_truthy(value)
        self.warn(f"{name}: {value[:SHOWN]!r} is no flag (1, true, yes, on or 0, false, no, off)")
        return None

    def number(self, name: str, default: int) -> int:
        most = setting_of(name).most
        return self.first(name, lambda known, value: self.positive(known, value, most), default)

    def positive(self, name: str, value: object, most: int) -> int | None:
        """A positive whole number up to `most`; anything else is ignored and warned of."""
        try:
            number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else 0.0
        except (ValueError, OverflowError):
            number = 0.0
        shown = str(value)[:SHOWN]
        if not isfinite(number) or number < 1:
            self.warn(f"{name}: {shown!r} is no positive number and is ignored")
        elif int(number) > most:
            self.warn(f"{name}: {shown!r} is more than {most}, the most that it can be, and is ignored")
        else:
            return int(number)
        return None

    def choice(self, name: str, choices: tuple[str, ...]) -> str:
        def read(known: str, value: str) -> str | None:
            found = next((choice for choice in choices if choice.lower() == value.lower()), None)
            if found is None:
                self.warn(f"{known}: {value[:SHOWN]!r} is none of {', '.join(choices)}")
            return found

        return self.first(name, read, choices[0])

    def path(self, name: str, text: str) -> Path | None:
        """A path, `~` resolved; None, and a warning, where that user has no home."""
        try:
            return Path(text).expanduser()
        except RuntimeError:
            self.warn(f"{name}: the home directory in {text[:SHOWN]!r} cannot be found")
            return None

    def compact_at(self) -> str:
        def read(name: str, value: str) -> str | None:
            try:
                levels(None, value)
            except CallerError as error:
                self.warn(f"{name}: {error.message}")
                return None
            exact = value.endswith("%") or value.lower().startswith("window")
            return value if exact else str(int(float(value)))

        return self.first("MCP_COMPACT_AT", read, "")

    def historic(self) -> tuple[str, ...]:
        """The historic names that are set."""
        names = (name for item in SETTINGS for name in item.historic)
        return tuple(name for name in names if self.environ.get(name, "").strip())

    def unknown_names(self) -> None:
        known = [item.name for item in SETTINGS]
        for name in sorted(self.environ):
            if name.startswith(PREFIX) and name not in known and name not in _ELSEWHERE:
                from difflib import get_close_matches  # noqa: PLC0415 - hooks load this module, and few need that

                near = get_close_matches(name, known, 1)
                self.warn(f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else ""))


_ELSEWHERE = ("MCP_COMPACT_SHARED",)
"""Names that the project's tests use."""
