"""JSON lines as they are found: split into lines, and each line into objects, whatever happened to the file.

A line ends at LF and nowhere else: U+2028, U+0085 and form feeds are ordinary characters of a
JSON text. A lost LF glues two objects together; a writer that died leaves half an object, and the
next writer goes on right behind it. What is whole is recovered, the rest is reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_compact.messages.values import value
from mcp_compact.transcripts.quick_json import STRICT, ObjectDecoder

Json: TypeAlias = dict[str, Any]

BOM = b"\xef\xbb\xbf"
EXCERPT_CHARS = 80
RECOVERY_TRIES = 32
"""How often a whole object is looked for in one torn line; each try may read the line to its end."""

ENVELOPE_KEYS = ("parentUuid", "sessionId", "isSidechain")
"""Only a record that stands on a line of its own has one of these."""
RECORD_KEYS = ("uuid", "message", "timestamp", "payload", "data")


@value
class Line:
    """One line that is not blank. `start` and `end` are byte offsets in the file, `end` behind its LF.

    `data` has neither line end nor byte order mark. To read on later, start at `end`
    (or at `start`, with the same number, if the line was not terminated).
    """

    number: int
    start: int
    end: int
    data: bytes
    terminated: bool = True


@dataclass(frozen=True, slots=True)
class Problem:
    """A line, or a part of one, that could not be read."""

    line: int
    reason: str
    excerpt: str = ""
    """At most 80 characters of it: content of the file, for those who may see the file."""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """The objects of a line, each with its own bytes as they stand in the file, and what was not understood."""

    objects: tuple[tuple[Json, bytes], ...]
    problems: tuple[Problem, ...] = ()


def read_lines(chunks: Iterable[bytes], first_line: int = 1, offset: int = 0) -> Iterator[Line]:
    """The lines of a file that is handed over in pieces of any size; holds no more than one line and one piece.

    `first_line` and `offset` are the number and the byte offset of what comes first.
    """
    number, start = first_line, offset
    pending: list[bytes] = []
    for chunk in chunks:
        at, found = 0, chunk.find(b"\n")
        # To look for each end is quicker than to split: a search for one byte takes many at once.
        while found >= 0:
            data = chunk[at:found]
            if pending:
                data, pending = b"".join((*pending, data)), []
            end = start + len(data) + 1
            if data[-1:] == b"\r" or data[:3] == BOM:
                data, start = _trimmed(data, start)
            if data and not data.isspace():
                yield Line(number, start, end, data)
            number, start, at = number + 1, end, found + 1
            found = chunk.find(b"\n", at)
        if at < len(chunk):
            pending.append(chunk[at:])
    data = b"".join(pending)
    end = start + len(data)
    data, start = _trimmed(data, start)
    if data and not data.isspace():
        yield Line(number, start, end, data, terminated=False)


def _trimmed(data: bytes, start: int) -> tuple[bytes, int]:
    """Without the rest of a line end, and without byte order mark (there is one wherever files were joined)."""
    if data.startswith(BOM):
        data, start = data[len(BOM) :], start + len(BOM)
    return data.rstrip(b"\r"), start


def parse_line(line: Line) -> ParsedLine:
    """The objects of a line. Never raises: what cannot be read becomes a problem."""
    value = whole_object(line.data)
    return _Torn(line).parse() if value is None else ParsedLine(((value, line.data),))


whole_object = ObjectDecoder()
"""The object, if the bytes are exactly one, else None; this is how nearly every line is read."""

_NEXT = re.compile(r"[ \t\r\n]*")
_RECORD_START = re.compile(r'\{\s*"(?:type|parentUuid|logicalParentUuid|isSidechain|uuid|sessionId|timestamp)"\s*:')


def loads(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """A JSON text, without NaN, infinities and numbers out of range. Raises ValueError or RecursionError."""
    return STRICT.decode(text)


class _Torn:
    """Takes a line apart that is not exactly one object."""

    def __init__(self, line: Line) -> None:
        self.line = line
        try:
            self.text, self.is_utf8 = line.data.decode(), True
        except UnicodeDecodeError:
            # The undecodable bytes become surrogates, so that every slice can be turned back into its own bytes.
            self.text, self.is_utf8 = line.data.decode("utf-8", "surrogateescape"), False
        self.objects: list[tuple[Json, bytes]] = []
        self.problems: list[Problem] = []
        self.tries = RECOVERY_TRIES

    def parse(self) -> ParsedLine:
        at, reason, failed = self._take(self._skip(0))
        while at < len(self.text):
            found = self._next_whole(at, failed)
            self._report(at, found if found is not None else len(self.text), reason)
            if found is None:
                break
            at, reason, failed = self._take(found)
        return ParsedLine(tuple(self.objects), tuple(self.problems))

    def _take(self, at: int) -> tuple[int, str, int]:
        """Take whole objects from `at` on: where they end, why, and where the reading failed."""
        while at < len(self.text):
            value, end, reason = self._decode(at)
            if reason:
                return at, reason, end
            body = self._bytes(at, end)
            if type(value) is not dict:
                return at, "not a JSON object", end
            self.objects.append((value, body))
            at = self._skip(end)
        return at, "", at

    def _decode(self, at: int) -> tuple[object, int, str]:
        """The value at `at` and its end; or a reason, and where it failed."""
        try:
            value, end = STRICT.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            cut = error.pos >= len(self.text) or error.msg.startswith("Unterminated string")
            return None, len(self.text) if cut else error.pos, "an unfinished object" if cut else "not JSON"
        except RecursionError:
            return None, len(self.text), "nested too deep"
        except ValueError as error:
            return None, at, str(error) if "is not JSON" in str(error) else "a number too large"
        if not self.is_utf8 and not self._is_clean(at, end):
            return None, end, "not UTF-8"
        return value, end, ""

    def _next_whole(self, at: int, failed: int) -> int | None:
        """Where the next whole object starts behind the torn part `at`, or None.

        The torn object's text was read on into the next object, so that the failure lies close
        behind that object's brace. Only if everything up to the end was good syntax may the next
        object have been taken for a part of the torn one, and then only an envelope tells them apart.
        """
        keys: tuple[str, ...] = (*ENVELOPE_KEYS, *RECORD_KEYS)
        starts = self._braces(at, failed)
        if failed >= len(self.text):
            keys = ENVELOPE_KEYS
            starts = (match.start() for match in _RECORD_START.finditer(self.text, at + 1))
        for start in starts:
            if self.tries <= 0:
                break
            self.tries -= 1
            if self._is_whole(start, keys):
                return start
        return None

    def _braces(self, at: int, failed: int) -> Iterator[int]:
        start = self.text.rfind("{", at + 1, failed + 1)
        if start < 0:
            start = self.text.find("{", max(failed, at + 1))
        while start >= 0:
            yield start
            start = self.text.find("{", start + 1)

    def _is_whole(self, start: int, keys: tuple[str, ...]) -> bool:
        """Does a whole record start here, with nothing but other objects behind it?"""
        value, end, reason = self._decode(start)
        if reason or not isinstance(value, dict):
            return False
        looks = isinstance(value.get("type"), str) or isinstance(value.get("role"), str)
        end = self._skip(end)
        return looks and any(key in value for key in keys) and (end == len(self.text) or self.text[end] == "{")

    def _report(self, start: int, end: int, reason: str) -> None:
        if not self.is_utf8 and not self._is_clean(start, end):
            reason = "not UTF-8"
        if end == len(self.text) and not self.line.terminated:
            reason = f"truncated: the last line has no end ({reason})"
        self.problems.append(Problem(self.line.number, reason, excerpt(self._bytes(start, end))))

    def _skip(self, at: int) -> int:
        match = _NEXT.match(self.text, at)
        return match.end() if match else at

    def _is_clean(self, start: int, end: int) -> bool:
        try:
            self.text[start:end].encode()
        except UnicodeEncodeError:
            return False
        return True

    def _bytes(self, start: int, end: int) -> bytes:
        return self.text[start:end].encode("utf-8", "surrogateescape")


def excerpt(data: bytes) -> str:
    """The first characters, printable, for a report."""
    text = data[: EXCERPT_CHARS * 4].decode("utf-8", "replace")
    return "".join(char if char.isprintable() else " " for char in text[:EXCERPT_CHARS]).strip()
