"""The JSON objects of a transcript: those of its lines, or the one value that it is as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import clean
from mcp_compact.transcripts.lines import Json, Line, loads, parse_line, whole_object
from mcp_compact.transcripts.quick_document import Document, quick_document
from mcp_compact.transcripts.quick_json import QUICK_AFTER_BYTES
from mcp_compact.transcripts.report import ImportReport

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def may_hold_half(data: bytes) -> bool:
    """Is there an escaped half of a surrogate pair, or a pair? No value that is used further may hold a half."""
    # Nearly no line has one, and to look for plain bytes is many times cheaper.
    return (b"\\ud" in data or b"\\uD" in data) and _SURROGATE.search(data) is not None


def objects_of(lines: Iterable[Line], report: ImportReport) -> Iterator[tuple[Json, bytes, int]]:
    """The objects of these lines, each with its own bytes and its line; what cannot be read is reported.

    The bytes keep an escaped half of a pair, the value does not: none that is used further may hold it.
    """
    for line in lines:
        data = line.data
        if (sound := whole_object.quickly(data)) is not None:
            yield sound, data, line.number
            continue
        value = whole_object(data)
        if value is not None:
            yield (clean(value) if may_hold_half(data) else value), data, line.number
            continue
        parsed = parse_line(line)
        for problem in parsed.problems:
            report.add_problem(problem)
        report.glued += len(parsed.objects) > 1
        for value, body in parsed.objects:
            yield (clean(value) if may_hold_half(body) else value), body, line.number


class FirstLine:
    """The first line of a file, read once: it may be all of it, and large."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.document = Document(None) if line.data[:1] == b"[" else _object(line.data)
        """The object that the line is; None for anything else."""

    @property
    def value(self) -> Json | None:
        """The same without what writes it."""
        value: Json | None = self.document.value
        return value


def _object(data: bytes) -> Document:
    is_large = len(data) > QUICK_AFTER_BYTES and data.startswith(b"{") and data.endswith(b"}")
    return (quick_document(data) if is_large else None) or Document(whole_object(data))


def begins_value(line: Line) -> bool:
    """Does a line begin a JSON value of several lines, or hold a whole list?"""
    text = line.data.strip()
    return text[:1] == b"[" or text in (b"{", b"{}") or (text[:1] == b"{" and text[-1:] in b",{[")


def document(lines: list[Line]) -> Document:
    """The one value over all lines, as it is. Raises CallerError `not_json`."""
    data = b"\n".join([line.data for line in lines]) if len(lines) > 1 else lines[0].data
    try:
        # The strict one tells whether this is JSON, and where it is none.
        return (quick_document(data) if len(data) > QUICK_AFTER_BYTES else None) or Document(loads(data.decode()))
    except (ValueError, RecursionError) as error:
        at = lines[0].number - 1 + getattr(error, "lineno", 1)
        raise CallerError(
            "not_json",
            f"The file is not valid JSON (near line {at}).",
            "Check that it is complete: it may have been cut while it was written.",
        ) from None


def cleaned(found: Document, lines: Iterable[Line]) -> Document:
    """The value without escaped halves of pairs, which hardly any file has: to look for them costs less."""
    if found.is_sound or not any(may_hold_half(line.data) for line in lines):
        return found
    return Document(clean(found.value))


def several_conversations() -> CallerError:
    """The refusal of a file whose lines are conversations."""
    return CallerError(
        "several_conversations",
        "Each line of this file is a conversation of its own.",
        "Import them one by one, each as its own session.",
    )
