"""Mutants of real-looking transcripts and arguments: by structure where there is one, else by bytes.

Everything is drawn from one `Random`: the same seed gives the same mutant, and hypothesis can shrink it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

MOST_BYTES = 400_000
MOST_STEPS = 5
DEEP = (10, 100, 130, 300, 2_000)

Path = tuple[Any, ...]
"""Keys and positions that lead to a node."""


def nested(levels: int, inner: Any = "x") -> Any:
    """Lists in lists, objects in between."""
    for level in range(levels):
        inner = [inner] if level % 2 else {"content": inner}
    return inner


def odd_value(chance: Random) -> Any:
    """What a field never holds, or hardly ever."""
    makers: tuple[Callable[[], Any], ...] = (
        lambda: chance.choice((None, True, False, "", " ", [], {}, [None], [[]], {"": ""}, {"type": None}, [{}])),
        lambda: chance.choice((0, -1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400, 1e308, -0.0, 0.1)),
        lambda: chance.choice((float("nan"), float("inf"), float("-inf"))),
        lambda: chance.choice(("\0", "a\0b", "\ud800", "x\udfff", "\u2028", "\ufeff", "\x1b[31m", "e\u0301" * 9)),
        lambda: chance.choice(("null", "{", '{"a": 1}', "[1]", "1e999", "../../etc/passwd", "' OR 1=1 --", "%s%n")),
        lambda: chance.choice(
            ("9" * 40, "2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9+23:59")
        ),
        lambda: chance.choice(("user", "assistant", "system", "tool", "tool_result", "tool_use", "message", "text")),
        lambda: "word " * chance.choice((1, 100, 5_000)),
        lambda: "x" * chance.choice((1, 300, 20_000)),
        lambda: nested(chance.choice(DEEP[:4])),
        lambda: [{"type": "text", "text": "t"}] * chance.choice((2, 50)),
        lambda: {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "late"}]},
        lambda: {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
        lambda: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    )
    return chance.choice(makers)()


def nodes(value: Any, most: int = 3_000) -> list[tuple[Path, Any]]:
    """Every node of a JSON value with the way to it, breadth first, up to so many."""
    found: list[tuple[Path, Any]] = [((), value)]
    at = 0
    while at < len(found) < most:
        path, node = found[at]
        at += 1
        if isinstance(node, dict):
            found += [((*path, key), inner) for key, inner in node.items()]
        elif isinstance(node, list):
            found += [((*path, place), inner) for place, inner in enumerate(node)]
    return found


def _put(root: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    holder = root
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return root


def _drop(root: Any, path: Path) -> Any:
    if not path:
        return root
    holder = root
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    return root


def mutated_value(chance: Random, root: Any, others: Sequence[Any]) -> Any:
    """One change somewhere in a JSON value (which is changed itself)."""
    everywhere = nodes(root)
    path, node = chance.choice(everywhere)
    match chance.choice(("odd", "odd", "odd", "drop", "rename", "splice", "list", "list", "type", "copy", "text")):
        case "drop":
            return _drop(root, path)
        case "rename":
            holders = [inner for _, inner in everywhere if isinstance(inner, dict) and inner]
            if holders:
                holder = chance.choice(holders)
                name = chance.choice(list(holder))
                keys = [key for inner in holders for key in inner]
                holder[chance.choice((chance.choice(keys), name.upper(), f"{name}\0", "type"))] = holder.pop(name)
            return root
        case "splice" if others:
            _, inner = chance.choice(nodes(chance.choice(others)))
            return _put(root, path, _copied(inner))
        case "list":
            _in_a_list(chance, [inner for _, inner in everywhere if isinstance(inner, list) and inner])
            return root
        case "type":
            return _put(root, path, chance.choice((lambda: [node], lambda: {"value": node}, lambda: _as_text(node)))())
        case "copy":
            _, inner = chance.choice(everywhere)
            return _put(root, path, _copied(inner))
        case "text" if isinstance(node, str):
            cut = chance.randrange(len(node) + 1)
            return _put(root, path, chance.choice((node[:cut], node[cut:], node * 3, node[::-1], node + "\ud83d")))
        case _:
            return _put(root, path, odd_value(chance))


def _copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _as_text(node: Any) -> str:
    return json.dumps(node)[:10_000]


def _in_a_list(chance: Random, lists: list[list[Any]]) -> None:
    """Reorder, double, or leave out what a list holds."""
    if not lists:
        return
    chosen = chance.choice(lists)
    match chance.choice(("swap", "double", "shuffle", "reverse", "drop", "repeat")):
        case "swap":
            a, b = chance.randrange(len(chosen)), chance.randrange(len(chosen))
            chosen[a], chosen[b] = chosen[b], chosen[a]
        case "double":
            at = chance.randrange(len(chosen))
            chosen.insert(chance.randrange(len(chosen) + 1), _copied(chosen[at]))
        case "shuffle":
            chance.shuffle(chosen)
        case "reverse":
            chosen.reverse()
        case "drop":
            at = chance.randrange(len(chosen))
            del chosen[at : at + chance.choice((1, 1, 3))]
        case _:
            chosen *= 2


def _parsed(data: bytes) -> tuple[list[Any], bool] | None:
    """The values of a transcript, and whether each has a line of its own; None where it is no JSON any more."""
    try:
        return [json.loads(data)], False
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in data.splitlines() if line.strip()], True
    except (ValueError, RecursionError):
        return None


def _written(chance: Random, values: Any, *, is_lines: bool) -> bytes:
    if not is_lines:
        document = values[0] if isinstance(values, list) and values else values
        return json.dumps(document, indent=chance.choice((None, None, 1))).encode()
    if not isinstance(values, list):
        values = [values]
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def mutated_bytes(chance: Random, data: bytes, other: bytes) -> bytes:
    """One change of the bytes as they stand."""
    at, length = chance.randrange(len(data) + 1), chance.choice((1, 1, 5, 50, 500))
    odd = (b"\0", b"\xff", b"\n", b"{", b"}", b'"', b"\\ud800", b"null", b"\xe2\x80\xa8", b"NaN", b"[" * 300)
    changes: tuple[Callable[[], bytes], ...] = (
        lambda: data[:at] + data[at + length :],
        lambda: data[:at],
        lambda: data[at:],
        lambda: data[: at + length] + data[at:],
        lambda: data[:at] + chance.choice(odd) + data[at:],
        lambda: data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :],
        lambda: data[:at] + other[chance.randrange(len(other) + 1) :],
        lambda: b"\n".join(chance.sample(lines := data.split(b"\n"), len(lines))),
        lambda: data.replace(b"\n", b"", chance.choice((1, 3, -1))),
        lambda: b"\xef\xbb\xbf" + data,
    )
    return chance.choice(changes)()


def mutant(chance: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """A transcript with up to five changes; `others` is what may be spliced in."""
    other = chance.choice(others) if others else data
    for _ in range(chance.randint(1, MOST_STEPS)):
        parsed = _parsed(data) if chance.random() < 0.8 else None
        if parsed is None:
            data = mutated_bytes(chance, data, other)
            continue
        values, is_lines = parsed
        spliced = _parsed(other)
        changed = mutated_value(chance, values, spliced[0] if spliced else [])
        try:
            data = _written(chance, changed, is_lines=is_lines)
        except RecursionError:
            data = mutated_bytes(chance, data, other)
    return data[:MOST_BYTES]
