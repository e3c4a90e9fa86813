"""JSON without blanks, nothing escaped that need not be, by an encoder that is made once."""

from __future__ import annotations

import json
from collections.abc import Callable


def writer(*, default: Callable[[object], object] | None = None, allow_nan: bool = True) -> Callable[[object], str]:
    """What writes a value as JSON text; `default` and `allow_nan` are those of `json.JSONEncoder`."""
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=default, allow_nan=allow_nan)
    # Python makes this anew for each text, which is half of the time of a small one; not every Python has it.
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return encoder.encode
    chunks = make(None, encoder.default, json.encoder.encode_basestring, None, ":", ",", False, False, allow_nan)  # noqa: FBT003 - by place
    return lambda value: "".join(chunks(value, 0))
