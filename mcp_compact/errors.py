"""Errors by whose fault they are: the caller's (it can be mended by another call) or the server's.

Everything else that is raised is a defect and is left to the top of each face.
"""

from __future__ import annotations


class CompactError(Exception):
    """An expected failure: a stable code, what was wrong, and what to do next."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.code = code
        self.message = message
        self.hint = hint


class CallerError(CompactError):
    """The caller asked for something that cannot be; nothing was stored."""


class ServerError(CompactError):
    """Our own store, disk or tokenizer failed; the caller did nothing wrong."""
