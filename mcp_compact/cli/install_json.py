"""Changing one member of somebody else's JSON file: the rest of it, comments and blanks too, stays byte for byte.

Clients keep settings as JSON that people edit, some with comments and trailing commas. Parsing and writing it again
would lose those, so a member's place in the text is found and only that place is changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_compact.errors import CallerError

BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
WORD = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
INDENT = re.compile(r"\n([ \t]+)\S")
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an object: where its key begins, and where its value begins and ends."""

    key: str
    start: int
    value: Node

    @property
    def end(self) -> int:
        return self.value.end


@dataclass(frozen=True, slots=True)
class Node:
    """A value's place in the text; `members` is None where it is no object, `items` where it is no list."""

    start: int
    end: int
    members: tuple[Member, ...] | None = None
    trailing_comma: bool = False
    items: tuple[Node, ...] | None = None

    def member(self, key: str) -> Member | None:
        """The last member of this name, as every parser takes it."""
        return next((m for m in reversed(self.members or ()) if m.key == key), None)


def value_at(text: str, path: Sequence[str]) -> object:
    """The value at a path of keys; None where there is none. Raises CallerError `broken_json`."""
    node = None if _empty(text) else _found(text, path)
    return _value(text, node) if node else None


def with_member(text: str, path: Sequence[str], value: object) -> str:
    """The text with a member set, objects on the way made where they are missing. Raises CallerError."""
    if _empty(text):
        text = (text.rstrip() + "\n{}\n").lstrip()
    node = _root(text)
    for depth, key in enumerate(path):
        if node.members is None:
            named = ".".join(path[:depth]) or "The whole file"
            raise CallerError("no_object", f"{named} is no JSON object.", "Mend the file, then try again.")
        found, rest = node.member(key), path[depth + 1 :]
        if found is None:
            return _inserted(text, node, key, _nested(rest, value), depth)
        if not rest:
            return text[: found.value.start] + _dumped(text, value, depth + 1) + text[found.value.end :]
        node = found.value
    return text


def without_member(text: str, path: Sequence[str]) -> str:
    """The text without a member, and without the objects on the way that are empty then."""
    node, parents = _root(text), []
    for key in path:
        found = node.member(key)
        if found is None:
            return text
        parents.append((node, found))
        node = found.value
    while len(parents) > 1 and len(parents[-1][0].members or ()) == 1:
        parents.pop()
    owner, gone = parents[-1]
    return _removed(text, owner, gone)


def with_item(text: str, path: Sequence[str], value: object) -> str:
    """The text with a value at the end of a list, which is made where it is missing. Raises CallerError."""
    node = None if _empty(text) else _found(text, path)
    if node is None:
        return with_member(text, path, [value])
    if node.items is None:
        raise CallerError("no_list", f"{'.'.join(path)} is no JSON list.", "Mend the file, then try again.")
    if not node.items:
        return with_member(text, path, [value])
    return _inserted(text, node, None, value, len(path))


def without_item(text: str, path: Sequence[str], value: object) -> str:
    """The text without the last such value of a list; with it goes a list that is empty then."""
    node = _found(text, path)
    items = [item for item in (node.items or ()) if _value(text, item) == value] if node is not None else []
    if node is None or not items:
        return text
    if len(node.items or ()) == 1:
        return without_member(text, path)
    return _removed(text, node, items[-1])


# ---------------------------------------------------------------- reading


def _found(text: str, path: Sequence[str]) -> Node | None:
    """The node at a path of keys; None where there is none."""
    node: Node | None = _root(text)
    for key in path:
        found = node.member(key) if node else None
        node = found.value if found else None
    return node


def _empty(text: str) -> bool:
    """Whether there are only blanks and comments."""
    return _skip(text, 0) == len(text)


def _root(text: str) -> Node:
    node = _node(text, _skip(text, 0), 0)
    rest = _skip(text, node.end)
    if rest != len(text):
        raise _broken(text, rest, "something follows the end")
    return node


def _skip(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def _node(text: str, at: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise _broken(text, at, "it is nested too deeply")
    if text[at : at + 1] == "{":
        return _object(text, at, depth)
    if text[at : at + 1] == "[":
        return _list(text, at, depth)
    found = STRING.match(text, at) or WORD.match(text, at)
    if found is None:
        raise _broken(text, at, "a value is missing")
    return Node(at, found.end())


def _object(text: str, start: int, depth: int) -> Node:
    members: list[Member] = []
    at, comma = _skip(text, start + 1), False
    while text[at : at + 1] != "}":
        if members and not comma:
            raise _broken(text, at, "a comma or a closing brace is missing")
        key = STRING.match(text, at)
        if key is None:
            raise _broken(text, at, "a key in quotes or a closing brace is missing")
        colon = _skip(text, key.end())
        if text[colon : colon + 1] != ":":
            raise _broken(text, colon, "a colon is missing")
        members.append(Member(json.loads(key[0], strict=False), at, _node(text, _skip(text, colon + 1), depth + 1)))
        at, comma = _after(text, members[-1].end)
    return Node(start, at + 1, tuple(members), trailing_comma=comma)


def _list(text: str, start: int, depth: int) -> Node:
    items: list[Node] = []
    at, comma = _skip(text, start + 1), False
    while text[at : at + 1] != "]":
        if items and not comma:
            raise _broken(text, at, "a comma or a closing bracket is missing")
        items.append(_node(text, at, depth + 1))
        at, comma = _after(text, items[-1].end)
    return Node(start, at + 1, trailing_comma=comma, items=tuple(items))


def _after(text: str, at: int) -> tuple[int, bool]:
    """What follows a value: the place of the next thing, and whether a comma stood before it."""
    at = _skip(text, at)
    if text[at : at + 1] != ",":
        return at, False
    return _skip(text, at + 1), True


def _broken(text: str, at: int, what: str) -> CallerError:
    line = text.count("\n", 0, at) + 1
    return CallerError("broken_json", f"It is no valid JSON: {what} in line {line}.", "Mend the file, then try again.")


def _value(text: str, node: Node) -> object:
    if node.members is not None:
        return {member.key: _value(text, member.value) for member in node.members}
    if node.items is not None:
        return [_value(text, item) for item in node.items]
    return json.loads(text[node.start : node.end], strict=False)


# ---------------------------------------------------------------- writing


def _nested(path: Sequence[str], value: object) -> object:
    for key in reversed(path):
        value = {key: value}
    return value


def _unit(text: str) -> str:
    """One step of the file's own indent; two blanks where it shows none, nothing where it is one line."""
    found = INDENT.search(text)
    body = text.strip()
    return found[1] if found else ("  " if "\n" in body or body in ("", "{}") else "")


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _dumped(text: str, value: object, depth: int) -> str:
    """A value as JSON in the file's own manner, to stand at a depth of objects."""
    unit = _unit(text)
    if not unit:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (_newline(text) + unit * depth).join(lines)


def _inserted(text: str, owner: Node, key: str | None, value: object, depth: int) -> str:
    """A new member (of a list: an item, without a key) after the last one and its comments, before the closing brace.

    One line stays one line.
    """
    parts = _parts(owner)
    on_one_line = bool(parts) and "\n" not in text[owner.start : owner.end]
    unit, newline = "" if on_one_line else _unit(text), _newline(text)
    between = newline + unit * (depth + 1) if unit else (" " if parts else "")
    dumped = _dumped(text, value, depth + 1) if unit else json.dumps(value, ensure_ascii=False)
    entry = dumped if key is None else f"{json.dumps(key, ensure_ascii=False)}: {dumped}"
    last = parts[-1].end if parts else owner.start + 1
    comma = "," if parts and not owner.trailing_comma else ""
    tail = text[last : owner.end - 1]
    kept = tail.rstrip()
    closing = tail[len(kept) :] if "\n" in tail[len(kept) :] else (newline + unit * depth if unit else "")
    own_comma = "," if owner.trailing_comma else ""
    return text[:last] + comma + kept + between + entry + own_comma + closing + text[owner.end - 1 :]


def _removed(text: str, owner: Node, gone: Member | Node) -> str:
    """The text without a member or an item and the one comma that parted it; comments beside it stay."""
    parts = _parts(owner)
    at = parts.index(gone)
    comma = _skip(text, gone.end)
    after = text[comma + 1 :] if text[comma] == "," else text[gone.end :]
    if at < len(parts) - 1:
        return text[: gone.start] + after.lstrip()
    head = text[: gone.start].rstrip()
    if at > 0 and not owner.trailing_comma:
        comma = _skip(text, parts[at - 1].end)
        head = (text[:comma] + text[comma + 1 : gone.start]).rstrip()
    return head + (after.lstrip() if head.endswith(("{", "[")) else after)


def _parts(owner: Node) -> Sequence[Member | Node]:
    return owner.members if owner.members is not None else owner.items or ()
