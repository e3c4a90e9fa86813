"""Entries as text: JSON, and the small parts of TOML and YAML that clients' files need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mcp_compact.cli.install_entries import TomlBlock
from mcp_compact.errors import CallerError

BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
KEY_LINE = re.compile(r"(?P<key>[A-Za-z_][\w.-]*|\"[^\"\\\n]*\"|'[^'\n]*'):(?=[ \t\r]|$)(?P<rest>.*)")
INDENT = 2


def as_json(value: object) -> str:
    """A whole JSON file."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


# ---------------------------------------------------------------- TOML


def as_toml(value: Mapping[str, Any], path: Sequence[str] = ()) -> str:
    """Tables of texts, whole numbers, truth values and lists of those; tables that only hold tables get no header."""
    plain = {key: item for key, item in value.items() if not isinstance(item, Mapping)}
    tables = {key: item for key, item in value.items() if isinstance(item, Mapping)}
    lines = [f"[{'.'.join(map(_key, path))}]"] if path and (plain or not tables) else []
    lines += [f"{_key(key)} = {_scalar(item)}" for key, item in plain.items()]
    own = "\n".join(lines) + "\n" if lines else ""
    return own + "".join(as_toml(item, (*path, key)) for key, item in tables.items())


def toml_block(name: str, value: Mapping[str, Any]) -> TomlBlock:
    """Tables between two comments of ours, to stand at the end of a file."""
    return TomlBlock(name, f"# {name}: by `mcp-compact manifest`\n{as_toml(value)}# {name}: end\n")


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _scalar(name)


def _scalar(value: object) -> str:
    # JSON's texts, numbers, truth values and lists of them are TOML's and YAML's too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# ---------------------------------------------------------------- YAML


def as_yaml(value: Mapping[str, Any], depth: int = 0) -> str:
    """A mapping in block style, texts in quotes wherever they could be taken for something else."""
    return "".join(f"{' ' * depth}{line}\n" for line in _yaml_lines(value))


def _yaml_lines(value: Mapping[str, Any]) -> Iterator[str]:
    for key, item in value.items():
        if isinstance(item, Mapping) and item:
            yield f"{_key(key)}:"
            yield from (" " * INDENT + line for line in _yaml_lines(item))
        else:
            yield f"{_key(key)}: {_scalar(item)}"


class YamlBlock(TomlBlock):
    """An entry of a mapping at the top of a YAML file, found by its lines; everything else stays as it is.

    The record of an installation keeps it as any other block of text, and takes it out as such.
    """

    __slots__ = ()

    def added(self, text: str) -> str:
        """The text with the entry below its key. Raises CallerError where its place cannot be told for sure."""
        top, below = self.name.split(".")
        lines = text.splitlines(keepends=True)
        at = _top_key(lines, top)
        if at is None:
            gap = "" if not text or text.endswith("\n") else "\n"
            return text + gap + self.block
        _refuse_other(lines, at, top, below)
        head = "".join(lines[: at + 1])
        return head + ("" if head.endswith("\n") else "\n") + self.block + "".join(lines[at + 1 :])


def yaml_block(keys: tuple[str, str], entry: Mapping[str, Any], text: str) -> YamlBlock:
    """The entry as it fits into a file: as deep as its neighbours, with the key above it where that is missing."""
    lines = text.splitlines(keepends=True)
    at = _top_key(lines, keys[0])
    if at is None:
        return YamlBlock(".".join(keys), as_yaml({keys[0]: {keys[1]: entry}}))
    return YamlBlock(".".join(keys), as_yaml({keys[1]: entry}, _depth(lines, at)))


def _top_key(lines: Sequence[str], key: str) -> int | None:
    """The line of a key at the top; None where it is missing. Raises CallerError for a file of another form."""
    found = []
    for number, line in enumerate(lines):
        if not line.strip() or line[0] in " #\r\n":
            continue
        match = KEY_LINE.match(line.rstrip("\r\n"))
        if match is None:
            raise _unclear(f"line {number + 1} is no plain key")
        if match["key"].strip("\"'") == key:
            found.append(number)
    if len(found) > 1:
        raise _unclear(f"{key} is there more than once")
    if found and (rest := lines[found[0]].partition(":")[2].strip()) and not rest.startswith("#"):
        raise _unclear(f"what follows {key} stands on its line")
    return found[0] if found else None


def _children(lines: Sequence[str], at: int) -> Iterator[str]:
    """The lines below a key at the top, without blanks and comments."""
    for line in lines[at + 1 :]:
        if line.strip() and not line.lstrip().startswith("#"):
            if line[0] != " ":
                return
            yield line


def _depth(lines: Sequence[str], at: int) -> int:
    """How deep the members of a key at the top stand."""
    return next((len(line) - len(line.lstrip(" ")) for line in _children(lines, at)), INDENT)


def _refuse_other(lines: Sequence[str], at: int, top: str, below: str) -> None:
    depth = _depth(lines, at)
    # What lies deeper is the neighbours' own, text of several lines among it.
    for line in (line for line in _children(lines, at) if not line[:depth].strip() and line[depth] != " "):
        if line.lstrip().startswith("- "):
            raise _unclear(f"{top} is a list")
        if (match := KEY_LINE.match(line.strip())) and match["key"].strip("\"'") == below:
            raise _unclear(f"{top} has an entry {below} already")


def _unclear(what: str) -> CallerError:
    return CallerError("unclear_yaml", f"Where the entry belongs cannot be told: {what}.", "Put it in by hand.")
