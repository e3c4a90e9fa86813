"""What harnesses write around a command's output, and what of it says nothing where all went well."""

from __future__ import annotations

from mcp_compact.compaction.extract_lines import Line
from mcp_compact.messages.lazily import pattern

_MARKS = ("all time:", "xit code", "xited with code 0", "hunk ID:", "token count:", "xit Code: 0", "returncode>0<")
"""Each result in such an envelope holds one of these: a look for them costs next to nothing."""
_ENVELOPE = pattern(
    r"(?:wall time: [\d.]+ ?(?:s|ms|seconds?)?|chunk id: \w+|original token count: \d+|total output lines: \d+|"
    r"process exited with code 0|exit code:? 0|<returncode>0</returncode>|"
    r"\[(?:the )?command (?:completed|finished|succeeded) with exit code 0\.?\]|"
    r"(?:error|signal|background pids): \(none\)|process group pgid: (?:\d+|\(none\)))"
)
"""Whole lines, in small letters."""
_OPENS_OUTPUT = frozenset(("output:", "<output>", "</output>", "stdout:"))
"""They say nothing where they stand beside such a line."""
LONGEST_CHARS = 80


def is_envelope(text: str) -> bool:
    """Is the line of an envelope, and does it say nothing? A code that tells of a failure says something."""
    return len(text) <= LONGEST_CHARS and _ENVELOPE.fullmatch(text.strip().lower()) is not None


def without_envelope(text: str, lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines of a tool's answer (`text`) without those of its envelope that say nothing."""
    if not any(mark in text for mark in _MARKS):
        return lines
    said = tuple(line for line in lines if not is_envelope(line.text))
    if len(said) == len(lines):
        return lines
    return tuple(line for line in said if line.text.lower() not in _OPENS_OUTPUT)
