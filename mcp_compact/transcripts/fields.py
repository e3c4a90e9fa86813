"""Reading a field of foreign JSON: the value if it is of the expected sort, else nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.ids import MessageUuid

UUID_CHARS = 200
"""Longer ids are no ids."""


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


def uuid_of(value: object) -> MessageUuid | None:
    """A usable uuid. Any text is one that is neither empty nor unreasonably long."""
    return MessageUuid(value) if isinstance(value, str) and 0 < len(value) <= UUID_CHARS else None


def uuids_of(raw: Mapping[str, Any], *keys: str) -> tuple[MessageUuid, ...]:
    """The usable uuids of a list."""
    return tuple(uuid for text in texts_of(raw, *keys) if (uuid := uuid_of(text)) is not None)
