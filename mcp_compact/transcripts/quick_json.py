"""Reading much JSON: the values of `json.loads`, in a fourth of its time.

msgspec's decoder refuses what is no JSON (NaN, halves of surrogate pairs) and numbers that no float can hold, and
keeps whole numbers of any length, as we need it. Loading it takes as long as it saves over some megabytes, and a
client's hook mostly reads a few kilobytes; so `json` is used until so much was read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from mcp_compact.messages.codec import canonical

QUICK_AFTER_BYTES = 1 << 20


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def finite(digits: str) -> float:
    """The float of a JSON number. Raises ValueError where no float can hold it."""
    value = float(digits)
    if math.isinf(value):
        raise ValueError("a number out of range is not JSON")
    return value


_EXPONENT = re.compile(rb"\de-?\d")
STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=finite)
"""Takes no NaN, no infinity, no number out of range. It tells where and why it failed."""


def quick_decoder() -> Callable[[bytes], Any] | None:
    """A function that decodes JSON with msgspec, to be called where it pays; None where msgspec cannot be loaded."""
    try:
        from msgspec.json import Decoder  # noqa: PLC0415 - it is taken where it pays
    except ImportError:
        return None
    return Decoder().decode


class ObjectDecoder:
    """Decodes objects from bytes, at first with `json`, after a megabyte with msgspec."""

    def __init__(self) -> None:
        self._read = 0
        self._looked = False
        self._quick: Callable[[bytes], Any] | None = None

    def __call__(self, data: bytes) -> dict[str, Any] | None:
        """The object, if the bytes are exactly one: nothing before its brace and nothing behind it."""
        if self._quick is None:
            self._count(len(data))
        elif data.startswith(b"{") and data.endswith(b"}"):
            try:
                value: dict[str, Any] = self._quick(data)
            except Exception:  # noqa: BLE001 - whatever it was: the strict one tells whether this is JSON
                return _strictly(data)
            return value
        return _strictly(data)

    def quickly(self, data: bytes) -> dict[str, Any] | None:
        """The object, if msgspec is there and takes it: then no text in it is half of a surrogate pair. Else None."""
        quick = self._quick
        if quick is None or data[:1] != b"{" or data[-1:] != b"}":
            return None
        try:
            value: dict[str, Any] = quick(data)
        except Exception:  # noqa: BLE001 - as above
            return None
        return value

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > QUICK_AFTER_BYTES and not self._looked:
            self._looked, self._quick = True, quick_decoder()


def _strictly(data: bytes) -> dict[str, Any] | None:
    try:
        text = data.decode()
        value, end = STRICT.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return value if end == len(text) and type(value) is dict else None


class ValueWriter:
    """Writes JSON values as `canonical` does, to the byte: after a megabyte with msgspec, in an eighth of the time."""

    def __init__(self) -> None:
        self._written = 0
        self._quick: Callable[[object], bytes] | None = None

    def __call__(self, value: object) -> bytes:
        """The value's JSON."""
        if self._quick is not None:
            try:
                data = self._quick(value)
            except Exception:  # noqa: BLE001 - halves of surrogate pairs, long numbers, great depth: the other one decides
                return canonical(value)
            # Exponents are written in another way there. Few texts hold what looks like one.
            return canonical(value) if _EXPONENT.search(data) else data
        data = canonical(value)
        self._count(len(data))
        return data

    def _count(self, size: int) -> None:
        before, self._written = self._written, self._written + size
        if before <= QUICK_AFTER_BYTES < self._written:
            self._quick = _quick_encoder()


def _quick_encoder() -> Callable[[object], bytes] | None:
    try:
        from msgspec.json import Encoder  # noqa: PLC0415 - it is taken where it pays
    except ImportError:
        return None
    return Encoder().encode
