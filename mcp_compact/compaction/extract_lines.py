"""Whole lines and sentences: what a memory may quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from mcp_compact.compaction.identifiers import identifiers
from mcp_compact.messages.masking import without_private_keys

FEW_WORDS = 6
"""A line with fewer words says nothing by itself: it is read on into the next ones."""
MAX_JOINED = 5
LONG_CHARS = 320
"""A longer sentence is cut into windows of about this length, at blanks, so that no name is cut."""
WINDOW_SLACK_CHARS = 80
LONGEST_WINDOW_CHARS = 4 * LONG_CHARS
"""A stretch without a blank that is longer is data (base64, minified text): never quoted."""
SHORT_CHARS = 100
"""A line up to this length is quoted whole, however many sentences it holds."""
REMEMBERED_CHARS = 400
MOST_REMEMBERED = 8_000
"""Lines, of each of the last two working directories: some megabytes."""
MAX_LINES = 4000
"""Of one block; what follows is left to the archive."""

_VIEWER = re.compile(r"[ \t]*(\d{1,7})(?:→|\t)(.*)", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？；])")  # noqa: RUF001 - sentence ends of other scripts
_INNER = re.compile(r"(?<=[.!?])\s+|\\n")
_WORD = re.compile(r"\w+(?:[./\-]+\w+)*")
_DENSE = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

Names = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line, a sentence of a long line, or a window of a long sentence."""

    text: str
    """As it is quoted: outer white space away."""
    number: str
    """The line number that a file viewer set before it; empty where there is none."""
    words: int
    """Of its last sentence: what must be read on if they are few."""
    names: Names
    clipped: bool = False
    """Is it a window of a longer sentence?"""


class Splitter:
    """Lines of texts, worked out once for equal lines. The working directory is left out of names.

    What was worked out is remembered for the next splitter of the same directory: an update reads the lines of the
    older memory again.
    """

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd.rstrip("/") + "/" if cwd.strip("/") else ""
        self._known = known_lines(self._cwd)

    def lines(self, text: str) -> tuple[Line, ...]:
        """Lines that are not blank, old order."""
        # A private key goes over many lines, and none of them tells by itself what it is.
        own = without_private_keys(text)
        return tuple(line for raw in own.splitlines()[:MAX_LINES] for line in self._of(raw))

    def line(self, text: str) -> Line:
        """One line as it is."""
        return Line(text, "", *self._facts(text))

    def quoted(self, text: str) -> Line:
        """A line as a memory quotes it: a file viewer's number is taken off it, and all its words count."""
        match = _VIEWER.fullmatch(text)
        own = match[2] if match else text
        return Line(
            own, match[1] if match else "", max(self._facts(own)[0], len(_WORD.findall(own))), self._facts(own)[1]
        )

    def _of(self, raw: str) -> Iterator[Line]:
        number, body = "", raw
        if "→" in raw[:12] or "\t" in raw[:12]:
            match = _VIEWER.fullmatch(raw)
            if match:
                number, body = match[1], match[2]
        body = body.strip()
        if not body and not number:
            return
        if number and len(body) <= LONG_CHARS + WINDOW_SLACK_CHARS:
            yield Line(body, number, *self._facts(body))
        elif len(body) <= SHORT_CHARS:
            yield Line(body, "", *self._facts(body))
        else:
            yield from self._sentences(body)

    def _sentences(self, body: str) -> Iterator[Line]:
        for sentence in _SENTENCE.split(body):
            if len(sentence) <= LONG_CHARS + WINDOW_SLACK_CHARS:
                yield Line(sentence, "", *self._facts(sentence))
                continue
            for window in _windows(sentence):
                yield Line(window, "", *self._facts(window), clipped=True)

    def _facts(self, text: str) -> tuple[int, Names]:
        facts = self._known.get(text)
        if facts is None:
            own = text.replace(self._cwd, "") if self._cwd else text
            facts = (_words(text), tuple(identifiers(own).items()))
            if len(text) <= REMEMBERED_CHARS:
                if len(self._known) >= MOST_REMEMBERED:
                    self._known.clear()
                self._known[text] = facts
        return facts


@lru_cache(maxsize=2)
def known_lines(cwd: str) -> dict[str, tuple[int, Names]]:
    """What is known of lines, by their text, where `cwd` is the working directory."""
    del cwd
    return {}


def _words(text: str) -> int:
    """Words of the last sentence of a line; a line break inside a quoted string ends one too."""
    if "\\n" in text or ". " in text or "! " in text or "? " in text:
        text = next((part for part in reversed(_INNER.split(text)) if any(map(str.isalnum, part))), text)
    words = len(_WORD.findall(text))
    return words if text.isascii() else words + len(_DENSE.findall(text)) // 2


def _windows(text: str) -> Iterator[str]:
    """Windows of a long sentence, cut at blanks, else at commas."""
    at = 0
    while at < len(text):
        end = _window_end(text, at)
        piece = text[at:end].strip()
        if piece and len(piece) <= LONGEST_WINDOW_CHARS:
            yield piece
        at = end


def _window_end(text: str, at: int) -> int:
    if len(text) - at <= LONG_CHARS + WINDOW_SLACK_CHARS:
        return len(text)
    for mark in (" ", ","):
        end = text.rfind(mark, at + LONG_CHARS // 2, at + LONG_CHARS)
        if end > 0:
            return end + 1
    later = [end for mark in (" ", ",") if (end := text.find(mark, at + LONG_CHARS)) >= 0]
    return min(later) + 1 if later else len(text)
