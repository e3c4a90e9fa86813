"""What an installation puts where: files that are wholly ours, and single entries in files of somebody else."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_compact.cli.install_json import value_at, with_item, with_member, without_item, without_member
from mcp_compact.errors import CallerError


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that nobody but us writes."""

    path: Path
    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class JsonEntry:
    """One member of a JSON file, named by its path of keys. `previous` is what stood there before us."""

    keys: tuple[str, ...]
    value: object
    previous: object = None

    @property
    def name(self) -> str:
        return ".".join(self.keys)

    def present(self, text: str) -> bool:
        """Whether it stands there as it is wanted."""
        return value_at(text, self.keys) == self.value

    def added(self, text: str) -> str:
        return with_member(text, self.keys, self.value)

    def removed(self, text: str) -> str:
        """The text without it, and with what stood there before; unchanged where it is ours no longer."""
        if not self.present(text):
            return text
        if self.previous is not None:
            return with_member(text, self.keys, self.previous)
        return without_member(text, self.keys)


@dataclass(frozen=True, slots=True)
class JsonItem:
    """One value among others in a list of a JSON file; the list is named by its path of keys."""

    keys: tuple[str, ...]
    value: object

    @property
    def name(self) -> str:
        return ".".join(self.keys)

    def present(self, text: str) -> bool:
        """Whether it stands there as it is wanted."""
        found = value_at(text, self.keys)
        return isinstance(found, list) and self.value in found

    def added(self, text: str) -> str:
        return with_item(text, self.keys, self.value)

    def removed(self, text: str) -> str:
        """The text without it; unchanged where it is ours no longer."""
        return without_item(text, self.keys, self.value) if self.present(text) else text


@dataclass(frozen=True, slots=True)
class TomlBlock:
    """Whole tables at the end of a TOML file, between two comments of ours."""

    name: str
    block: str

    def present(self, text: str) -> bool:
        return self.block in text

    def added(self, text: str) -> str:
        """The text with the block at its end. Raises CallerError where the file says the same elsewhere."""
        gap = "" if not text else ("\n" if text.endswith("\n") else "\n\n")
        made = text + gap + self.block
        try:
            tomllib.loads(text)
            tomllib.loads(made)
        except tomllib.TOMLDecodeError as error:
            hint = "Mend the file, or take an entry of that name out, then try again."
            raise CallerError("broken_toml", f"It cannot take {self.name}: {error}.", hint) from None
        return made

    def removed(self, text: str) -> str:
        before, found, after = text.partition(self.block)
        return (before.removesuffix("\n") if before.endswith("\n\n") else before) + after if found else text


Entry = JsonEntry | JsonItem | TomlBlock


@dataclass(frozen=True, slots=True)
class Entries:
    """Our entries in one file of somebody else."""

    path: Path
    entries: tuple[Entry, ...]

    def added(self, text: str) -> str:
        for entry in self.entries:
            text = text if entry.present(text) else entry.added(text)
        return text

    def removed(self, text: str) -> str:
        for entry in reversed(self.entries):
            text = entry.removed(text)
        return text


Wanted = OwnFile | Entries


def entry_as_json(entry: Entry) -> dict[str, Any]:
    """An entry as the record keeps it."""
    match entry:
        case JsonEntry(keys, value, previous):
            return {"keys": list(keys), "value": value, "previous": previous}
        case JsonItem(keys, value):
            return {"keys": list(keys), "item": value}
        case TomlBlock(name, block):
            return {"name": name, "block": block}


def entry_from_json(data: Mapping[str, Any]) -> Entry:
    """The reverse."""
    if "block" in data:
        return TomlBlock(str(data["name"]), str(data["block"]))
    keys: Sequence[str] = data["keys"]
    if "item" in data:
        return JsonItem(tuple(keys), data["item"])
    return JsonEntry(tuple(keys), data["value"], data.get("previous"))
