"""Names that later work may need again: paths, symbols, numbers, hashes, codes, addresses, quoted text.

One pass splits a line into tokens; what a token names is worked out once and remembered, so a
long session costs little more than the splitting.
"""

from __future__ import annotations

import re

PATH, SYMBOL, NUMBER, HASH, CODE, URL, QUOTED, FLAG = (
    "path", "symbol", "number", "hash", "code", "url", "quoted", "flag",
)  # fmt: skip
MAX_TOKEN = 200
"""Characters; a longer token is data (base64, minified text), no name."""
MAX_CACHE = 50_000
SHORTEST, SHORTEST_PATH, SHORTEST_QUOTED = 3, 4, 4

_TOKEN = re.compile(
    r"[^\s\"'`()\[\]{}<>,;|=!&^*?$%\u2190-\u2193\u3000-\u303f\uff00-\uff0f\uff1a-\uff1f\u2018-\u201f\u2026]+"
)
_QUOTED = re.compile(r"`([^`\n]{4,80})`|\"([^\"\n]{4,80})\"")
_WHOLE = re.compile(r"(https?://[^\s\"'<>)\]}`\\]{4,200})|[A-Za-z]:\\[^\s\"'<>|*?:]{2,200}")
"""Addresses and Windows paths: they hold characters that part other names."""
_SPACED_PATH = re.compile(r"(?:[A-Za-z]:\\|~?/|\.{1,2}/)[\w.][^\n]*[/\\][^\n]*$")
"""A path in quotes may hold blanks."""
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,9}$")
_HEX = re.compile(r"(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}")
_NUMBER = re.compile(r"v?\d+(?:\.\d+){1,3}|\d{3,12}")
_CODE = re.compile(r"[A-Z]{2,}[-_]?\d{2,}|[A-Z]\d{3,4}|0x[0-9a-fA-F]{2,16}|#\d{1,6}")
_WORDS = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SYMBOL = re.compile(
    r"_?[a-z0-9]+_[a-z0-9_]*[a-z0-9]|_?[A-Z][A-Z0-9]*_[A-Z0-9_]+|[a-z]+[a-z0-9]*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*",
    re.ASCII,
)
_KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+){2,}")
_FLAG = re.compile(r"--[a-z][a-z0-9\-]{2,}")
_DOTTED = re.compile(r"(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w{2,}", re.ASCII)
_QUALIFIED = re.compile(r"(?:[A-Za-z_]\w*(?:::|->|#|\.))+[A-Za-z_]\w+", re.ASCII)
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")

Names = tuple[tuple[str, str], ...]
_known: dict[str, Names] = {}


def identifiers(line: str) -> dict[str, str]:
    """Name -> kind of everything in a line (or text) that looks like a name. The first kind found wins."""
    found: dict[str, str] = {}
    if "://" in line or ":\\" in line:
        for match in _WHOLE.finditer(line):
            found.setdefault(match[0].rstrip(".,;:"), URL if match[1] else PATH)
    for token in _TOKEN.findall(line):
        names = _known.get(token)
        for name, kind in _learn(token) if names is None else names:
            found.setdefault(name, kind)
    if '"' in line or "`" in line:
        for match in _QUOTED.finditer(line):
            text = (match[1] or match[2]).strip().strip(".,;:")
            if len(text) >= SHORTEST_QUOTED:
                found.setdefault(text, PATH if _SPACED_PATH.match(text) else QUOTED)
    return found


def stands_alone(text: str, name: str) -> bool:
    """Does a name stand in a text by itself, not as a part of a longer one?"""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at] if at else "", text[end : end + 1]
        if not (_is_word(before) and _is_word(name[0])) and not (_is_word(after) and _is_word(name[-1])):
            return True
        at = text.find(name, at + 1)
    return False


def _is_word(char: str) -> bool:
    """A letter beyond ASCII is none: a name may touch a script that sets no blanks."""
    return char == "_" or (char.isascii() and char.isalnum())


def _learn(token: str) -> Names:
    if len(_known) >= MAX_CACHE:
        _known.clear()
    names = _known[token] = tuple(_names(token).items())
    return names


def _names(token: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if len(token) > MAX_TOKEN or len(token) < SHORTEST:
        return found
    if token[1:].islower() and token.isalpha() and token.isascii():
        return found  # a plain word, as most are
    for part in _CJK.split(token) if not token.isascii() else (token,):
        own = part.rstrip(".,:").lstrip(",:")
        if "://" in own:
            continue
        if "/" in own:
            _path(own, found)
        else:
            for piece in own.split(":") if "::" not in own else (own,):
                _plain(piece.strip(".,"), found)
    return found


def _path(part: str, found: dict[str, str]) -> None:
    """A path, perhaps with `:line` behind it; its file name's own symbols are names too."""
    head, *rest = part.split(":")
    head = head.removeprefix("./").rstrip("/.")
    if len(head) >= SHORTEST_PATH and any(c.isalpha() for c in head) and "//" not in head:
        found.setdefault(head, PATH)
        for piece in head.split("/"):
            _inside(piece, found)
    for piece in rest:
        _plain(piece, found)


def _inside(piece: str, found: dict[str, str]) -> None:
    for word in _WORDS.findall(piece):
        if len(word) > SHORTEST and _SYMBOL.fullmatch(word):
            found.setdefault(word, SYMBOL)
    if piece.count("-") > 1:
        for match in _KEBAB.finditer(piece):
            found.setdefault(match[0], SYMBOL)


def _plain(piece: str, found: dict[str, str]) -> None:
    if len(piece) < SHORTEST:
        return
    if piece.startswith("--"):
        match = _FLAG.match(piece)
        if match:
            found.setdefault(match[0], FLAG)
        return
    if _NUMBER.fullmatch(piece):
        found.setdefault(piece, NUMBER)
    elif _HEX.fullmatch(piece):
        found.setdefault(piece, HASH)
    elif _CODE.fullmatch(piece):
        found.setdefault(piece, CODE)
    elif _DOTTED.fullmatch(piece) or (_EXTENSION.search(piece) and not piece[0].isdigit()):
        found.setdefault(piece, PATH if _EXTENSION.search(piece) and piece.rsplit(".", 1)[1].islower() else SYMBOL)
        _inside(piece, found)
    else:
        if _QUALIFIED.fullmatch(piece):
            found.setdefault(piece, SYMBOL)
        _inside(piece, found)
