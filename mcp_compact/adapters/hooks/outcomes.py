"""What hooks say, as values: texts made fit for a context, verdicts read, outcomes joined."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.hooks import HookEvent, HookOutcome

CONTEXT_CHARS = 9_500
"""The most that the hooks of one event may put into a context, together."""
REASON_CHARS = 2_000
"""The most that is told of why a hook blocks or rejects."""
LINE_CHARS = 300
"""The most of a line that a warning quotes."""

_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def plain(text: str) -> str:
    """The text without control characters (some providers refuse them), blank ends and lone surrogates."""
    lines = well_formed(text.removeprefix("\ufeff")).replace("\r\n", "\n").replace("\r", "\n")
    return lines.translate(_CONTROLS).strip("\n").rstrip()


def first_line(text: str) -> str:
    """The line that tells most: the first, but of a Python traceback the last."""
    lines = plain(text).splitlines() or [""]
    line = lines[-1] if lines[0].startswith("Traceback ") else lines[0]
    return line.strip()[:LINE_CHARS]


def said(event: HookEvent, name: str, text: str) -> HookOutcome:
    """What a hook that ended well says: of a post hook its verdict, of others text for the context."""
    if event == "post_compact":
        return judged(name, _verdict(name, text))
    return HookOutcome(plain(text))


def judged(name: str, outcome: HookOutcome) -> HookOutcome:
    """The outcome of a post hook, with a warning where its verdict is bad."""
    reason = plain(outcome.text)[:REASON_CHARS]
    if outcome.verified:
        return HookOutcome(reason, warnings=outcome.warnings)
    warning = f"{name} rejects the compaction: {first_line(reason) or 'it gave no reason'}"
    return HookOutcome(reason, verified=False, warnings=(*outcome.warnings, warning))


def rejected(name: str, text: str, remark: str) -> HookOutcome:
    """A bad verdict by exit status: the reason stands on standard output, else on standard error."""
    reason = _verdict(name, text).text or first_line(remark)
    return judged(name, HookOutcome(reason, verified=False))


def blocking(name: str, reason: str) -> HookOutcome:
    """A pre hook forbids the compaction."""
    return HookOutcome(blocked=plain(reason)[:REASON_CHARS] or f"{name} gave no reason.")


def joined(outcomes: Sequence[HookOutcome]) -> HookOutcome:
    """Several outcomes as one, in order; the text is cut, at a line's end if it can be, at 9,500 characters."""
    text = "\n".join(outcome.text for outcome in outcomes if outcome.text)
    warnings = tuple(warning for outcome in outcomes for warning in outcome.warnings)
    kept = _capped(text)
    if len(kept) < len(text):
        warnings += (f"Hooks gave {len(text):,} characters of text; only the first {len(kept):,} count.",)
    return HookOutcome(
        kept,
        "\n".join(outcome.blocked for outcome in outcomes if outcome.blocked)[:REASON_CHARS],
        all(outcome.verified for outcome in outcomes),
        warnings,
    )


def _capped(text: str) -> str:
    if len(text) <= CONTEXT_CHARS:
        return text
    end = text.rfind("\n", CONTEXT_CHARS // 2, CONTEXT_CHARS + 1)
    return text[: end if end > 0 else CONTEXT_CHARS].rstrip()


def _verdict(name: str, text: str) -> HookOutcome:
    """Good, unless the text is a JSON object whose `verified` is false."""
    text = plain(text).strip()
    try:
        known = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict):
        return HookOutcome(text)
    reason = known.get("reason")
    verified = known.get("verified", True)
    warnings = () if isinstance(verified, bool) else (f"{name}: `verified` must be true or false; it is left out.",)
    return HookOutcome(reason if isinstance(reason, str) else "", verified=verified is not False, warnings=warnings)
