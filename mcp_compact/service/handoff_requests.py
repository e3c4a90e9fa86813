"""What the user asked last, for a brief: one line a message, old to new, without rules that were dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mcp_compact.messages.words import sentences

PARTS = " / "
"""What the extractor puts between passages of one message."""
CUT = "…"
BETWEEN = f" {CUT} "
LEAST_CUT = 8
"""So many characters of a cut sentence tell which one it was."""


def asked(found: Iterable[str], messages: Sequence[str], dropped: Collection[str]) -> list[str]:
    """The bullets of a memory's requests as one line for each message, in the order of the messages.

    `messages`: the user's words, old to new. A part of a message that stands whole elsewhere is not said again. What no
    message holds to the letter stays beside what it stood beside.
    """
    texts = [_plain(message) for message in messages]
    lines: dict[int, list[str]] = {}
    place = -1
    for bullet in found:
        for part in bullet.split(PARTS):
            own = part.strip().removeprefix("- ").strip()
            if own:
                place = _place(own, texts, place)
                lines.setdefault(place, []).append(own)
    made = (_one_line(lines[at], texts[at] if at >= 0 else "") for at in sorted(lines))
    return [line for text in made if (line := without_rules(text, dropped))]


def _place(part: str, texts: Sequence[str], before: int) -> int:
    wanted = _plain(part).removesuffix(CUT).rstrip()
    return next((at for at in reversed(range(len(texts))) if wanted in texts[at]), before)


def _one_line(parts: Sequence[str], text: str) -> str:
    """The parts of a message in its order; those that others hold are left out."""
    kept: list[str] = []
    for part in sorted(parts, key=len, reverse=True):
        if not any(_plain(part) in _plain(other) for other in kept):
            kept.append(part)
    return BETWEEN.join(sorted(kept, key=lambda part: text.find(_plain(part).removesuffix(CUT).rstrip())))


def without_rules(text: str, dropped: Collection[str]) -> str:
    """The text without the sentences that are these rules (in small letters), one that is cut included."""
    for sentence in sentences(text) if dropped else ():
        if _is_one_of(_plain(sentence), dropped):
            text = text.replace(sentence, "", 1)
    return " ".join(text.split())


def _is_one_of(sentence: str, dropped: Collection[str]) -> bool:
    if sentence in dropped:
        return True
    known = sentence.removesuffix(CUT).rstrip()
    return len(sentence) > len(known) >= LEAST_CUT and any(rule.startswith(known) for rule in dropped)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
