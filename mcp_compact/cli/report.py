"""`mcp-compact report`: what a client's own last compaction lost, and what is given back."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mcp_compact.cli.fates import ASCII_MARKS, COLOURS, MARKS, MEANINGS
from mcp_compact.cli.output import print_json, write_whole
from mcp_compact.cli.terminal import Terminal, terminal
from mcp_compact.cli.text import count, cut, fit, iso_date, share, shown_line, tokens, width, wrapped
from mcp_compact.compaction.rules_matrix import BACK, FATES, KEPT, NOT_YET, REWORDED, Row
from mcp_compact.errors import CallerError
from mcp_compact.messages.rule_grammar import CORRECTION, PERMISSION
from mcp_compact.service.compaction_report import CompactionReport, compaction_report
from mcp_compact.service.compactions import native_compactions

MOST_COLUMNS, MOST_ROWS = 12, 40
BAR = 24
NAME_COLUMNS = 60


def run(arguments: argparse.Namespace) -> int:
    """Show the report on a session's last compaction; write it as HTML where asked to."""
    from mcp_compact.cli.native_sessions import find_session

    session = find_session(arguments.session, compacted=not arguments.session)
    compactions = native_compactions(session.records)
    if not compactions:
        raise CallerError(
            "never_compacted",
            f"The session {session.session_id} ({session.source}) was never compacted by its client.",
            "Name another session, or see what would be kept: `mcp-compact rules`, `mcp-compact handoff`.",
        )
    report = compaction_report(session.session_id, compactions, choices=(session.pinned, session.dropped))
    if arguments.html:
        from mcp_compact.cli.report_html import page

        write_whole(Path(arguments.html).expanduser(), page(report).encode())
    if arguments.json:
        print_json(report_json(report, session.source))
        return 0
    lines = report_lines(report, terminal())
    if arguments.html:
        lines += ["", f"Written to {shown_line(arguments.html)}."]
    print("\n".join(lines))
    return 0


def report_json(report: CompactionReport, source: str) -> dict[str, Any]:
    """Everything that is known of the compaction."""
    from mcp_compact.cli.output import plain

    made = plain(report)
    made["source"] = source
    made["rules"] = [{**plain(rule), "fate": fate} for rule, fate in report.rules]
    made["words"] = {"said": report.words[0], "in_summary": report.words[1], "with_ours": report.words_with_ours}
    made["matrix"] = [{"rule": row.rule.text, "turn": row.rule.turn, "fates": list(row.fates)} for row in report.matrix]
    del made["words_with_ours"]
    return dict(made)


def report_lines(report: CompactionReport, screen: Terminal) -> list[str]:
    """The report to be read on a terminal."""
    needed = report.needed
    lines = [screen.bold(f"Session {shown_line(report.session_id)}"), *_about(report), ""]
    lines += [screen.bold("What the client's summary held of it, and with what mcp-compact gives back")]
    lines += _bars(
        "your rules", len(report.rules), _number(report, KEPT, REWORDED), _number(report, KEPT, REWORDED, BACK), screen
    )
    lines += _bars("your messages", report.words[0], report.words[1], report.words_with_ours, screen)
    lines += _bars("names needed next", needed.total, needed.in_summary, needed.with_ours, screen)
    lines += _names("Needed right after, and only in what is given back:", needed.given_back, screen)
    lines += _names("Needed right after, and in neither (search finds them):", needed.lost, screen)
    lines += _names("Read again right after, though it was known:", report.read_again, screen)
    lines += ["", screen.bold("Your rules"), *matrix_lines(report.matrix, report.number, screen)]
    lines += ["", screen.bold("Given back after this compaction")]
    lines += [f"  {line}" for line in _head(report.injection, screen)]
    return lines


def _about(report: CompactionReport) -> list[str]:
    when = iso_date(report.at_ms) if report.at_ms is not None else "at an unknown time"
    how = {"auto": "by itself, the context was full", "manual": "asked for"}.get(report.trigger, "")
    size = f"{tokens(report.tokens_before)} tokens became" if report.tokens_before else "the context became"
    return [
        f"  compaction {report.number} of {report.of}, {when}" + (f" ({how})" if how else ""),
        f"  {size} a summary of {report.summary_chars:,} characters;",
        f"  mcp-compact gives back {report.injection_chars:,} characters, word for word from the session",
    ]


def _number(report: CompactionReport, *wanted: str) -> int:
    return sum(fate in wanted for _, fate in report.rules)


def _bars(what: str, total: int, held: int, ours: int, screen: Terminal) -> list[str]:
    """A bar of what the summary held, what comes on top, and what is missing."""
    if not total:
        return [f"  {what:<18} none"]
    kept = round(BAR * held / total)
    back = max(round(BAR * ours / total) - kept, 0)
    blocks = ("█", "▒", "░") if screen.blocks else ("#", "+", ".")
    bar = screen.paint(blocks[0] * kept, "32") + screen.paint(blocks[1] * back, "36") + blocks[2] * (BAR - kept - back)
    return [f"  {what:<18} {bar} {held} of {total} ({share(held, total)}), with ours {ours} ({share(ours, total)})"]


def _names(title: str, names: Sequence[str], screen: Terminal) -> list[str]:
    if not names:
        return []
    room = screen.columns - 4
    return [
        "",
        f"  {title}",
        *(f"    {line}" for line in _flowing([cut(shown_line(name), NAME_COLUMNS) for name in names], room)),
    ]


def _flowing(words: Sequence[str], columns: int) -> list[str]:
    lines: list[str] = []
    for word in words:
        if lines and width(lines[-1]) + 2 + width(word) <= columns:
            lines[-1] += f"  {word}"
        else:
            lines.append(word)
    return lines


def matrix_lines(rows: Sequence[Row], columns: int, screen: Terminal) -> list[str]:
    """Rules by compactions: the newest columns and rows that fit, and what the marks mean."""
    if not rows:
        return ["  none were found in this session"]
    marks = MARKS if screen.blocks else ASCII_MARKS
    first = max(0, columns - MOST_COLUMNS)
    shown_rows = rows[-MOST_ROWS:]
    numbers = range(first + 1, columns + 1)
    room = screen.columns - 12 - 3 * len(numbers)
    lines = [f"  {'turn':>5}  " + fit("", room) + "".join(f"{number:>3}" for number in numbers)]
    for row in shown_rows:
        cells = "".join("  " + screen.paint(marks[fate], COLOURS[fate]) for fate in row.fates[first:])
        lines.append(f"  {row.rule.turn or '-':>5}  {fit(_labelled(row), room)}{cells}")
    if len(rows) > len(shown_rows):
        lines.append(f"  ... and {count(len(rows) - len(shown_rows), 'older rule')}")
    used = [fate for fate in (*FATES, NOT_YET) if any(fate in row.fates for row in shown_rows)]
    return [
        *lines,
        "",
        *wrapped("   ".join(f"{marks[fate]} {MEANINGS[fate]}" for fate in used), screen.columns - 2, "  "),
    ]


def _labelled(row: Row) -> str:
    label = {CORRECTION: "(correction) ", PERMISSION: "(permission) "}.get(row.rule.kind, "")
    return f"{label}{shown_line(row.rule.text)}"


HEAD_LINES = 24


def _head(text: str, screen: Terminal) -> list[str]:
    lines = [cut(shown_line(line), screen.columns - 2) for line in text.splitlines()]
    more = len(lines) - HEAD_LINES
    return (
        [*lines[:HEAD_LINES], screen.faint(f"... {count(more, 'more line')} (--html or --json show all)")]
        if more > 0
        else lines
    )
