"""How figures, times and other people's text are shown in a terminal. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S
LONGEST_AGE_DAYS = 30
"""An older time is shown as its date."""
KILO = 1000
WIDE = ("W", "F")


def tokens(number: int) -> str:
    """`950`, `12.3k`, `1.2M`: a number of tokens in at most six columns."""
    if abs(number) < KILO:
        return str(number)
    if abs(number) < 999_950:  # noqa: PLR2004 (from here on it would read 1000.0k)
        return f"{number / KILO:.1f}k"
    return f"{number / KILO / KILO:.1f}M"


def size(number: int) -> str:
    """Bytes as `812 B`, `64 kB`, `1.3 MB`, `2.0 GB`."""
    if number < KILO:
        return f"{number} B"
    if number < KILO**2:
        return f"{number / KILO:.0f} kB"
    return f"{number / KILO**2:.1f} MB" if number < KILO**3 else f"{number / KILO**3:.1f} GB"


def share(part: int, whole: int) -> str:
    """`42%`; `<1%` for a little, `0%` for nothing."""
    if part <= 0 or whole <= 0:
        return "0%"
    percent = 100 * part / whole
    return "<1%" if percent < 1 else f"{percent:.0f}%"


def count(number: int, one: str, many: str = "") -> str:
    """`1 message`, `1,204 messages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def age(then_ms: int, now_ms: int) -> str:
    """How long ago, as people say it; the date where it is more than a month."""
    passed_s = (now_ms - then_ms) // 1000
    if passed_s < 0:
        return "in the future"
    if passed_s < MINUTE_S:
        return "just now"
    if passed_s < HOUR_S:
        return f"{passed_s // MINUTE_S} min ago"
    if passed_s < DAY_S:
        return f"{passed_s // HOUR_S} h ago"
    days = passed_s // DAY_S
    if days == 1:
        return "yesterday"
    if days <= LONGEST_AGE_DAYS:
        return f"{days} days ago"
    return iso_date(then_ms)


def iso_date(at_ms: int) -> str:
    """The day of a time, in UTC."""
    from mcp_compact.messages.codec import format_time

    return format_time(at_ms)[:10]


def shown(text: str) -> str:
    """One line of somebody else's text that can do nothing to a terminal: no control or invisible characters."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def quoted(text: str) -> str:
    """A word of a command that is shown to be pasted into a shell: an id, or a path."""
    import shlex

    # As it is where it can be: a path may hold two blanks in a row.
    return shlex.quote(text if text.isprintable() else shown(text))


def shown_line(text: str) -> str:
    """As `shown`, but blanks inside the line stay where they are."""
    return "".join(char if char.isprintable() else " " for char in text.expandtabs(4)).rstrip()


def width(text: str) -> int:
    """Columns that a text takes: East Asian wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in WIDE else 1


def cut(text: str, columns: int, mark: str = "...") -> str:
    """The text in at most so many columns; what was cut ends with the mark."""
    if width(text) <= columns:
        return text
    room, kept = max(0, columns - len(mark)), []
    for char in text:
        room -= _columns(char)
        if room < 0:
            break
        kept.append(char)
    return ("".join(kept).rstrip() + mark)[: max(columns, 0)]


def middle_cut(text: str, columns: int, mark: str = "...") -> str:
    """The text in at most so many columns: its beginning and its end where it is longer."""
    if width(text) <= columns:
        return text
    room = columns - len(mark)
    end = cut(text[::-1], room // 2, "")[::-1]
    return f"{cut(text, room - width(end), '')}{mark}{end}"


def fit(text: str, columns: int, *, right: bool = False) -> str:
    """The text in exactly so many columns."""
    own = cut(text, columns)
    blanks = " " * (columns - width(own))
    return blanks + own if right else own + blanks


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int], columns: int, stretch: int) -> list[str]:
    """Rows in aligned columns two blanks apart; `stretch` names the column that is cut to fit the line."""
    if not rows:
        return []
    widths = [max(width(row[at]) for row in rows) for at in range(len(rows[0]))]
    over = sum(widths) + 2 * (len(widths) - 1) - columns
    if over > 0:
        widths[stretch] = max(8, widths[stretch] - over)
    return ["  ".join(fit(cell, widths[at], right=at in right) for at, cell in enumerate(row)).rstrip() for row in rows]


def wrapped(text: str, columns: int, indent: str = "") -> list[str]:
    """A text of our own, broken at blanks, every line with the indent."""
    import textwrap

    return textwrap.wrap(text, columns, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
