"""Values as SQLite takes them: text without lone surrogates, integers of 64 bits, JSON in text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import well_formed

MAX_INT = (1 << 63) - 1
_plain = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def safe_id(value: str) -> str:
    """An identifier as it is stored: no lone surrogate, and no NUL, which would end it inside SQLite's JSON."""
    if value.isascii() and "\0" not in value:
        return value
    return well_formed(value.replace("\0", "\ufffd"))


def safe_id_or_none(value: str | None) -> str | None:
    """`safe_id`, None for None."""
    return None if value is None else safe_id(value)


def fitting(value: int | None) -> int | None:
    """The number where it fits into 64 bits, None where it does not."""
    return value if value is not None and -MAX_INT <= value <= MAX_INT else None


def checked(name: str, value: int | None) -> int | None:
    """The number a caller gave; an error that names it where it does not fit into 64 bits."""
    if value is not None and not -MAX_INT <= value <= MAX_INT:
        raise CallerError(
            "number_too_large", f"{name} is {value}; numbers have at most 63 bits.", "Send the real value."
        )
    return value


def json_list(values: Iterable[object]) -> str:
    """A list as the parameter of `json_each`."""
    return _plain(list(values))


def ids_text(ids: Sequence[str]) -> str | None:
    """Tool call ids (safe ones) as a record's column; None for none."""
    # Letters, digits and dashes, as in most ids, need no escape.
    if len(ids) == 1 and f"_{ids[0].replace('-', '_')}".isidentifier():
        return f'["{ids[0]}"]'
    return _plain(ids) if ids else None


def ids_of(text: str | None) -> tuple[str, ...]:
    """The ids of such a column."""
    if not text:
        return ()
    # One id without escapes is by far the commonest.
    return (text[2:-2],) if text.count('"') == 2 and "\\" not in text else tuple(json.loads(text))  # noqa: PLR2004


def json_text(value: object) -> str:
    """JSON that SQLite can hold whatever is in it: escaped throughout."""
    return json.dumps(value, separators=(",", ":"), default=str)


def json_value(text: str) -> Any:  # noqa: ANN401 - JSON
    """What `json_text` wrote."""
    return json.loads(text)
