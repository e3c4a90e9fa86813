"""JSON to values and back. Nothing is dropped: what is not understood stays in `raw` and `body`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from mcp_compact.messages.blocks import OBJECT, parse_content
from mcp_compact.messages.ids import ApiMessageId
from mcp_compact.messages.json_writer import writer
from mcp_compact.messages.message import Message, Usage

HASH_BYTES = 16
_SENT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
SECONDS_BELOW = 1e11
"""A number up to this is seconds (until the year 5138), a larger one milliseconds."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_HERE = datetime(1970, 1, 1)  # noqa: DTZ001 - for times without a zone, which are UTC
DAY_SECONDS = 86_400
MAX_MS = 100_000_000_000_000
"""The year 5138: what is later is no time of a record."""

_plain = writer(allow_nan=False)
_escaped = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def canonical(value: object) -> bytes:
    """JSON as we store it: UTF-8, no blanks; a lone surrogate makes the whole text escaped."""
    try:
        return _plain(value).encode()
    except UnicodeEncodeError:
        return _escaped(value).encode()


def body_hash(body: bytes) -> bytes:
    """Sixteen bytes that tell whether a stored body is still what it was."""
    return blake2b(body, digest_size=HASH_BYTES).digest()


def well_formed(text: str) -> str:
    """The text with every lone surrogate replaced, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clean(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A JSON value in which every text is well formed; equal to the value where it was already."""
    try:
        return _clean(value)
    except RecursionError:
        # JSON's own reader and writer go deeper than functions of ours do.
        return json.loads(well_formed(json.dumps(value, ensure_ascii=False)))


def _clean(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return {well_formed(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


def decode_message(raw: object, role: str = "") -> Message | None:
    """A message from its JSON; None where it is no object. The role falls back to the given one."""
    if not isinstance(raw, OBJECT):
        return None
    get = raw.get
    content, own_role, message_id = get("content"), get("role"), get("id")
    model, usage, stop_reason = get("model"), get("usage"), get("stop_reason")
    # By place: every message of every import is made here.
    return Message(
        own_role if isinstance(own_role, str) else role,
        content,
        parse_content(content),
        ApiMessageId(message_id) if isinstance(message_id, str) and message_id else None,
        model if isinstance(model, str) else None,
        None if usage is None else decode_usage(usage),
        stop_reason if isinstance(stop_reason, str) else None,
    )


def decode_usage(raw: object) -> Usage | None:
    """Usage of one request; None where nothing was counted (locally made error messages count nothing)."""
    if not isinstance(raw, OBJECT):
        return None
    sent = 0
    for name in _SENT:
        # A bool is no count, and JSON has no other kinds of whole numbers.
        if type(count := raw.get(name)) is int and count > 0:
            sent += count
    output = raw.get("output_tokens")
    output = output if type(output) is int and output > 0 else 0
    return Usage(sent, output) if sent or output else None


def parse_time(value: object) -> int | None:
    """Milliseconds since 1970 of an ISO time or a number of seconds or milliseconds; None where it is none.

    A time before 1970 is nobody's record of a session, and some could not be written again: it is none.
    """
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return None
        since = at - (EPOCH if at.tzinfo else EPOCH_HERE)
        at_ms = (since.days * DAY_SECONDS + since.seconds) * 1000 + since.microseconds // 1000
        return at_ms if 0 <= at_ms < MAX_MS else None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MAX_MS:
        return int(value if value > SECONDS_BELOW else value * 1000)
    return None


def format_time(at_ms: int) -> str:
    """The ISO form that transcripts use."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
