"""What keeps hostile text away from the encoder: pure functions on strings.

A run of a million spaces ends tiktoken's regex in a panic, and the encoder's time grows
faster than the text. So long text is cut into pieces, where it can be at places at which
the o200k pattern ends a match whatever stands around them: such a cut changes no token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PIECE_CHARS = 64 * 1024
"""Longest text that the encoder is given at once."""
SAMPLE_ABOVE_CHARS = 8 * 1024 * 1024
"""A longer text is not counted in full but sampled."""
SAMPLE_WINDOWS = 16
"""Windows of a sample, each one piece: the head, the tail and 14 evenly between."""

_BREAK_BEFORE_TEXT = re.compile(r"(?s:.*)\n(?=[^\s/])")
r"""A line break ends a match, unless white space or "/" follows (both may go on with it)."""
_BREAK_AFTER_WORD = re.compile(r"(?s:.*)[^\W_](?=[ !-&(-/:-@\[-`{-~])")
"""A letter or digit before an ASCII space or mark ends a match: only "'" could go on with it ("don't").

Accents are not ASCII, so no combining mark is cut off. The leading dot-star makes each
pattern find its last place at the regex engine's own speed.
"""


def clean(text: str) -> str:
    """The text with each lone surrogate as U+FFFD and each surrogate pair as its character.

    The encoder does the same; here it is done once, before the text is cut.
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def pieces(text: str, limit: int = PIECE_CHARS) -> Iterator[str]:
    """The text in pieces of at most `limit` characters, together the whole.

    Each cut lies in the upper half of its piece: after a line break or a word where there
    is one (exact), else at the limit (there the sum may differ by a token or so).
    """
    if limit < 1:
        raise ValueError(f"A piece needs at least 1 character, not {limit}.")
    start = 0
    while len(text) - start > limit:
        end = safe_cut(text, start + limit // 2, start + limit) or start + limit
        yield text[start:end]
        start = end
    yield text[start:]


def safe_cut(text: str, lowest: int, highest: int) -> int | None:
    """The last place in (`lowest`, `highest`] where a cut changes no token: after a line if any, else a word."""
    for pattern in (_BREAK_BEFORE_TEXT, _BREAK_AFTER_WORD):
        # One character more, since the pattern looks at the one after the cut.
        match = pattern.match(text, lowest, highest + 1)
        if match is not None:
            return match.end()
    return None


def is_sampled(text: str) -> bool:
    """Whether the count of this text is scaled up from a sample, and so only approximate."""
    return len(text) > SAMPLE_ABOVE_CHARS


def sample(text: str) -> list[str]:
    """Windows spread evenly over a text, from its head to its tail; together the text if it is short."""
    step, last = PIECE_CHARS, len(text) - PIECE_CHARS
    if len(text) <= step * SAMPLE_WINDOWS:
        return list(pieces(text))
    starts = (last * window // (SAMPLE_WINDOWS - 1) for window in range(SAMPLE_WINDOWS))
    return [text[start : start + step] for start in starts]
