"""A file that is one JSON value, and how its parts are written again: what is large quickly, as it is read.

msgspec writes the same bytes as `canonical`, in an eighth of its time, but for a few floats and for halves of
surrogate pairs. The one it refuses, and those floats are seen while the value is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from mcp_compact.messages.codec import canonical
from mcp_compact.transcripts.quick_json import finite

Write: TypeAlias = Callable[[object], bytes]
"""A JSON value as we store it: what `canonical` gives."""


class Document(NamedTuple):
    """The value of a file, and what writes its parts."""

    value: Any
    write: Write = canonical
    is_sound: bool = False
    """Surely without halves of surrogate pairs."""


class _Floats:
    """Reads the floats of one value, and notes whether msgspec writes them as Python does."""

    def __init__(self, encode: Write) -> None:
        self._encode = encode
        self.are_alike = True

    def read(self, digits: str) -> float:
        value = finite(digits)
        if self.are_alike and self._encode(value) != canonical(value):
            self.are_alike = False
        return value


def quick_document(data: bytes) -> Document | None:
    """The value with msgspec; None where it cannot be loaded, or does not take these bytes for JSON."""
    try:
        from msgspec.json import Decoder, Encoder  # noqa: PLC0415 - it is taken where it pays
    except ImportError:
        return None
    encode = Encoder().encode
    floats = _Floats(encode)
    try:
        value = Decoder(float_hook=floats.read).decode(data)
    except Exception:  # noqa: BLE001 - whatever it was: the strict one tells whether this is JSON, and where it is none
        return None
    return Document(value, _writer(encode) if floats.are_alike else canonical, is_sound=True)


def _writer(encode: Write) -> Write:
    def write(value: object) -> bytes:
        try:
            return encode(value)
        except (UnicodeEncodeError, RecursionError):
            # Half of a surrogate pair makes the whole text escaped.
            return canonical(value)

    return write
