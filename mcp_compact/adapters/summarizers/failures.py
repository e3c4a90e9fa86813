"""A provider's error as one of ours: too long, passing by itself, or final. No secret stands in what is told."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelUnavailableError,
)

from mcp_compact.adapters.summarizers.tries import Again
from mcp_compact.compaction.overrun import Overrun, read_overrun
from mcp_compact.ports.summarizer import TooLong, WriterFailed

PASSING = (429, 500, 502, 503, 504, 529)
"""HTTP statuses after which the same request may succeed."""
LENGTH = (400, 413, 422, 500)
"""HTTP statuses under which providers and local servers say that a prompt is too long."""
SHOWN = 300
_PER_MINUTE = re.compile(r"request too large.{0,200}?limit ([\d,]+), requested ([\d,]+)", re.IGNORECASE | re.DOTALL)
"""A request larger than all that is allowed in a minute: as OpenAI words it, with the status of a rate limit."""


def failure_of(error: Exception, secret: str) -> TooLong | WriterFailed | Again:
    """What an error of the library means for the summary."""
    text = _said(error)
    if overrun := _overrun(error, text):
        return TooLong(overrun)
    failed = WriterFailed(_reason(error), shown(_with_status(error, text), secret))
    return Again(failed, _retry_after(error)) if _passes(error) else failed


def malformed(error: Exception, secret: str) -> WriterFailed:
    """An answer that is not in the form of the provider's API."""
    return WriterFailed("bad_answer", shown(f"the answer has not the form of this API: {error}", secret))


def shown(text: str, secret: str) -> str:
    """Text from outside on one line, cut, without the secret."""
    for form in {secret, quote(secret, safe="")} - {""}:
        text = text.replace(form, "***")
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= SHOWN else line[:SHOWN] + "..."


def _said(error: Exception) -> str:
    """The message in an error's body; else the body; else what was raised, with its causes."""
    match getattr(error, "body", None):
        case {"error": {"message": str(message)}} | {"message": str(message)} | {"error": str(message)}:
            return message
        case str(body) if body:
            return body
        case None | "":
            return "; ".join(dict.fromkeys(_causes(error)))
        case body:
            return json.dumps(body, ensure_ascii=False, default=str)


def _causes(error: BaseException | None) -> list[str]:
    texts: list[str] = []
    while error is not None and len(texts) < 4:  # noqa: PLR2004 - library, provider's package, HTTP, socket
        texts.append(str(error) or type(error).__name__)
        error = error.__cause__ or error.__context__
    return texts


def _with_status(error: Exception, text: str) -> str:
    return f"HTTP {error.status_code}: {text}" if isinstance(error, ModelHTTPError) else text


def _overrun(error: Exception, text: str) -> Overrun | None:
    if isinstance(error, ModelContextWindowExceededError):
        return read_overrun(text) or Overrun()
    if not isinstance(error, ModelHTTPError):
        return None
    if found := _PER_MINUTE.search(text):
        limit, requested = (int(number.replace(",", "")) for number in found.groups())
        return Overrun(requested, limit)
    # Some say it in the kind of the error and not in its message.
    whole = f"{text} {error.provider_error_code or ''} {error.provider_error_type or ''}"
    return read_overrun(whole) if error.status_code in LENGTH else None


def _reason(error: Exception) -> str:
    match error:
        case ModelAuthenticationError():
            return "bad_key"
        case ModelNotFoundError():
            return "no_such_model"
        case ModelQuotaExceededError():
            return "quota"
        case ModelRateLimitError():
            return "rate_limited"
        case ModelUnavailableError() | ModelServerError() | ModelConnectionError():
            return "unavailable"
        case ModelRequestRejectedError() | ModelHTTPError():
            return "rejected"
        case _:
            return "bad_answer"


def _passes(error: Exception) -> bool:
    match error:
        case ModelConnectionError():
            return True
        case ModelQuotaExceededError():
            return False
        case ModelHTTPError():
            return error.status_code in PASSING and error.provider_retry_hint is not False
        case _:
            return False


def _retry_after(error: Exception) -> float:
    return (error.retry_after or 0.0) if isinstance(error, ModelAPIError) else 0.0
