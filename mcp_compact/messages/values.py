"""Values that are made by the ten thousand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """A slotted dataclass that type checkers hold frozen.

    It is not frozen at run time: that makes an object cost seven times as much (3.4 µs instead of 0.4 for a record),
    and an import makes about ten for each line of a transcript.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
