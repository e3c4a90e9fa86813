"""Schemas of the tools, kept small: answers are made from the service's dataclasses, titles are left out."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType
from typing import Annotated, Any, cast, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, Field, create_model

ALWAYS = frozenset({"session_id", "status", "level", "messages", "hits", "next_cursor", "content", "text", "uuids"})
"""Fields that programs rely on: there even when they are empty."""

DESCRIBED = {
    "live_messages": "Stored messages that are live, without what a compaction put before them. The list that is "
    "given out has these too, leaves empty ones out and may join neighbours.",
}
"""Fields of answers whose names do not say enough."""

PLAIN = (int, str, bool, float, NoneType, dict)
"""Values that are JSON as they are."""


def _text(value: object) -> object:
    return "" if value is None else value


def _zero(value: object) -> object:
    return 0 if value is None else value


def _minus_one(value: object) -> object:
    return -1 if value is None else value


# Plain `str` and `int` underneath: the SDK parses texts given to any other type as JSON, which would turn
# the text `null` into None and refuse text that looks like an object. JSON null counts as left out.
Text = Annotated[str, BeforeValidator(_text)]
Count = Annotated[int, BeforeValidator(_zero)]
"""0 is the default. What is less is refused where it is used, with what the number is for."""
Limit = Annotated[int, BeforeValidator(_minus_one), Field(ge=-1)]
"""-1 is the default, 0 means zero."""
Flag = Annotated[bool, BeforeValidator(bool)]

Session = Annotated[Text, Field(description="Default: the one session active in this folder.")]
Cursor = Annotated[Text, Field(description="next_cursor of the page before.")]
Now = Annotated[Text, Field(description="Take this as the present: ISO time or milliseconds since 1970.")]


def answer_model(kind: type, *, without: Collection[str] = (), **replaced: Any) -> type[BaseModel]:  # noqa: ANN401
    """A model of what `as_json` makes of a dataclass; `replaced` fields have other types."""
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind) if field.name not in without]
    shape = {name: _field(name, replaced.get(name, hints[name])) for name in names}
    return cast("type[BaseModel]", create_model(kind.__name__, **cast("Any", shape)))


def _field(name: str, hint: Any) -> tuple[Any, Any]:  # noqa: ANN401 - types of fields
    plain = _without_none(hint)
    shown = _nested(plain)
    may_be_left_out = name not in ALWAYS and (plain is not hint or _may_be_empty(plain))
    default = None if may_be_left_out else ...
    return (shown, Field(default, description=DESCRIBED[name]) if name in DESCRIBED else default)


def _nested(hint: Any) -> Any:  # noqa: ANN401
    """The type with dataclasses turned into models, themselves and as items of a tuple."""
    if is_dataclass(hint):
        return answer_model(cast("type", hint))
    if get_origin(hint) is tuple:
        return list[_nested(hint.__args__[0])]  # type: ignore[misc]
    return hint


def _may_be_empty(hint: Any) -> bool:  # noqa: ANN401
    return hint is str or get_origin(hint) is not None


def _without_none(hint: Any) -> Any:  # noqa: ANN401
    others = [arg for arg in getattr(hint, "__args__", ()) if arg is not type(None)]
    return others[0] if type(None) in getattr(hint, "__args__", ()) and len(others) == 1 else hint


def as_json(value: Any, *, without: Collection[str] = ()) -> Any:  # noqa: ANN401
    """A result as JSON: what is empty is left out, unless programs rely on it. Mappings are data and stay whole."""
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    names = _names(cast("Hashable", type(value)))
    if names is None:
        return value
    shown: dict[str, Any] = {}
    for name in names:
        item = getattr(value, name)
        if type(item) not in PLAIN:
            item = as_json(item)
        if name not in without and (name in ALWAYS or not _is_empty(item)):
            shown[name] = item
    return shown


@cache
def _names(kind: Hashable) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def _is_empty(item: object) -> bool:
    return item is None or item == "" or item == [] or item == {}  # noqa: PLR1714 - a number is compared with a text


def lean(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """A schema without the titles that pydantic makes of names, and without defaults of null."""
    if isinstance(schema, list):
        return [lean(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {
        key: {name: lean(item) for name, item in value.items()} if key in ("properties", "$defs") else lean(value)
        for key, value in schema.items()
        if key != "title" and not (key == "default" and value is None)
    }
