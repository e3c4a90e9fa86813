"""Logs on standard error: lines for people, or one JSON object a line; keys and passwords are masked in both."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from mcp_compact.config import Settings

PLAIN = "%(levelname)s %(name)s: %(message)s"
MAX_CHARS = 20_000
"""Of one line: a traceback fits, a message with a transcript in it does not."""


class PlainLines(logging.Formatter):
    """`LEVEL logger: message`, and the traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        return _shown(super().format(record))


class JsonLines(logging.Formatter):
    """One object a line: `time`, `level`, `logger`, `message`, and `error` where there is a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": _shown(record.getMessage()),
        }
        if record.exc_info:
            line["error"] = _shown(self.formatException(record.exc_info))
        # Plain ASCII: whatever a message holds, a line stays a line and can be written to any terminal.
        return json.dumps(line)


def log_to_stderr(settings: Settings) -> None:
    """Set the process's logging up, as the settings want it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else PlainLines(PLAIN))
    logging.basicConfig(level=settings.log_level, handlers=[handler])
    # At its lower levels it logs the arguments of every operation, the messages among them.
    logging.getLogger("aiosqlite").setLevel(logging.WARNING)


def _shown(text: str) -> str:
    from mcp_compact.messages.masking import masked  # noqa: PLC0415 - its patterns cost more than a start without logs

    return masked(text[:MAX_CHARS])
