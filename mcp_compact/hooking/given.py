"""What a client tells a hook on its standard input: one JSON object."""

from __future__ import annotations

import json

from mcp_compact.errors import CallerError

MOST_BYTES = 32 << 20
"""A prompt or a summary may stand in it; nothing larger is read."""
EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop", "SessionEnd")


class Given:
    """The input, as far as it is of use. A plain class: a dataclass costs a hook more than its work."""

    __slots__ = ("cwd", "event", "session_id", "source", "summary", "transcript", "trigger")

    def __init__(self, raw: dict[str, object], named: str = "") -> None:
        self.event = event_named(_text(raw, "hook_event_name") or named)
        self.session_id = _text(raw, "session_id").strip()
        self.transcript = _text(raw, "transcript_path")
        self.cwd = _text(raw, "cwd")
        self.source = _text(raw, "source")
        """Of a start: `startup`, `resume`, `clear` or `compact`."""
        self.trigger = _text(raw, "trigger")
        """Of a compaction: `manual` or `auto`."""
        self.summary = _text(raw, "compact_summary")


def given(data: bytes, named: str = "") -> Given:
    """The input read. `named` is the event of the command line, for a client that does not say it.

    Raises CallerError `bad_hook_input`.
    """
    if len(data) > MOST_BYTES:
        raise CallerError("bad_hook_input", f"The hook's input is larger than {MOST_BYTES >> 20} MB.")
    try:
        raw = json.loads(data.decode("utf-8", "replace") or "null")
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise CallerError("bad_hook_input", "The hook's input is no JSON object.", "A client starts it, not a person.")
    return Given(raw, named)


def event_named(name: str) -> str:
    """An event by the client's name for it, or as the command line has it (`pre-compact`); empty for any other."""
    plain = name.replace("-", "").replace("_", "").lower()
    return next((event for event in EVENTS if event.lower() == plain), "")


def _text(raw: dict[str, object], name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""
