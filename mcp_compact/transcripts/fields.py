"""Reading a field of foreign JSON: the value if it is of the expected sort, else nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.codec import MAX_MS, parse_time
from mcp_compact.messages.ids import MessageUuid

UUID_CHARS = 200
"""Longer ids are no ids."""
MINUTE_MS = 60_000
_SECONDS = {f"{number:02}": number * 1000 for number in range(60)}
_MILLISECONDS = {f"{number:03}": number for number in range(1000)}


def first(raw: Mapping[str, Any], *keys: str) -> object:
    """The value of the first key that has one."""
    for key in keys:
        value = raw.get(key)
        if value is not None:
            return value
    return None


def object_of(raw: Mapping[str, Any], key: str, *others: str) -> Mapping[str, Any]:
    """An object, empty where there is none."""
    value = raw.get(key)
    if type(value) is dict:
        return value
    if value is None:
        value = first(raw, *others) if others else None
    # To ask for an abstract class costs much, and mostly there is nothing.
    return value if value is not None and isinstance(value, OBJECT) else {}


def count_of(raw: Mapping[str, Any], key: str, *others: str) -> int | None:
    """A whole number from 0 on."""
    value = raw.get(key)
    if value is None and others:
        value = first(raw, *others)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def text_of(raw: Mapping[str, Any], key: str, *others: str) -> str | None:
    """A text that is not empty."""
    value = raw.get(key)
    if value is None and others:
        value = first(raw, *others)
    return value if isinstance(value, str) and value else None


def texts_of(raw: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    """The texts of a list."""
    value = first(raw, *keys)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def uuid_of(value: Any) -> MessageUuid | None:  # noqa: ANN401 - any JSON value
    """A usable uuid. Any text is one that is neither empty nor unreasonably long."""
    # To call the type would cost as much as the look.
    uuid: MessageUuid = value
    return uuid if isinstance(value, str) and 0 < len(value) <= UUID_CHARS else None


def uuids_of(raw: Mapping[str, Any], *keys: str) -> tuple[MessageUuid, ...]:
    """The usable uuids of a list."""
    return tuple(uuid for text in texts_of(raw, *keys) if (uuid := uuid_of(text)) is not None)


def time_of(value: object) -> int | None:
    """`parse_time`, in a fourth of its time for what most clients write: 2026-01-02T03:04:05.678Z."""
    if type(value) is str and len(value) == 24 and value[19] == "." and value[23] == "Z":  # noqa: PLR2004 - as above
        seconds, rest = _SECONDS.get(value[17:19]), _MILLISECONDS.get(value[20:23])
        # Records that follow each other mostly are of one minute.
        if seconds is not None and rest is not None and (minute := _minute_ms(value[:17])) is not None:
            return minute + seconds + rest
    return parse_time(value)


@lru_cache(maxsize=256)
def _minute_ms(start: str) -> int | None:
    """When a minute begins, by the start of a time in it; None where it is not certain that all of it counts."""
    at_ms = parse_time(f"{start}00.000Z")
    return at_ms if at_ms is not None and at_ms < MAX_MS - MINUTE_MS else None
