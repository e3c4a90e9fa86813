"""What a failed call says: a code, what was wrong, what to do next. Defects say nothing and are logged."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from math import isfinite
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from mcp_compact.errors import CallerError, CompactError, ServerError
from mcp_compact.messages.codec import clean, well_formed

MAX_DEPTH = 128
"""Levels of nesting in a call or an answer. Serialisation gives up at about 255, which would end a stdio server."""
MAX_NAMED = 5
MAX_SHOWN = 80
MAX_NUMBER_BITS = 1024
"""Whole numbers up to here, the range of a double, can be written as JSON by everybody."""
MAX_COMMON = 2**53

logger = logging.getLogger(__name__)


def tool_error(error: CompactError) -> ToolError:
    """An expected failure as the caller reads it; our own faults are logged as well."""
    if isinstance(error, ServerError):
        logger.warning("%s: %s", error.code, error)
    return ToolError(well_formed(f"{error.code}: {error}"))


def argument_error(error: ValidationError) -> CallerError:
    """Which arguments a tool does not take, and why; their values are not repeated."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = [f"{'.'.join(map(str, item['loc']))[:MAX_SHOWN]}: {item['msg']}" for item in found[:MAX_NAMED]]
    more = f"; and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return CallerError("bad_arguments", f"{'; '.join(named)}{more}.", "Nothing was done; mend them and call again.")


def checked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call with every text well formed. Raises CallerError for what JSON cannot carry."""
    if is_plain(arguments):
        return dict(arguments)
    fault = unwritable(arguments)
    if fault:
        raise CallerError("bad_arguments", f"The arguments hold {fault}.", "Nothing was stored.")
    cleaned: dict[str, Any] = clean(arguments)
    return cleaned


def is_plain(value: Any, levels: int = MAX_DEPTH) -> bool:  # noqa: ANN401 - JSON
    """At a glance: ASCII texts, common numbers, few levels. Then nothing is wrong with it, and nothing to be mended."""
    kind = type(value)
    if kind is str:
        return bool(value.isascii())
    if kind is int:
        return bool(-MAX_COMMON <= value <= MAX_COMMON)
    if value is None or kind is bool:
        return True
    if not levels:
        return False
    if kind is dict:
        return all(is_plain(item, levels - 1) and is_plain(key, 0) for key, item in value.items())
    return kind is list and all(is_plain(item, levels - 1) for item in value)


def unwritable(value: object) -> str:
    """What in a JSON value cannot be stored and sent again; empty if nothing."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [item for holder in level for item in _items(holder)]
        if not level:
            return ""
        for item in level:
            if isinstance(item, float) and not isfinite(item):
                return "a number that is not finite"
            if isinstance(item, int) and item.bit_length() > MAX_NUMBER_BITS:
                return "a number beyond the range of JSON's readers"
    return f"JSON nested deeper than {MAX_DEPTH} levels"


def _items(holder: object) -> list[object]:
    if isinstance(holder, Mapping):
        return list(holder.values())
    return list(holder) if isinstance(holder, list | tuple) else []
