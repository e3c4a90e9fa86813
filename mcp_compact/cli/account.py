"""An account of a compaction in words: what was kept and why, what left and how it comes back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcp_compact.cli.text import count, cut, share, shown, tokens
from mcp_compact.compaction.plan import Span

WHY = {
    "kept": "the newest messages, whole rounds, word for word",
    "cleared": "in the kept part, large old results cleared",
    "summarised": "older; the memory stands in their place",
}
READS = {
    "missing_parent": ("a record whose parent is not in the file", "records whose parent is not in the file"),
    "result_without_call": ("a result without its call", "results without their call"),
    "no_content": ("a message without content", "messages without content"),
    "no_role": ("a message without a role", "messages without a role"),
    "repeated_uuid": ("a repeated record", "repeated records"),
}


def outcome_line(report: Any) -> str:  # noqa: ANN401 (the library's Report, or the server's answer as an object)
    """`compacted, 84.2k -> 14.9k tokens (82% less)`, or why nothing was done."""
    if report.status == "compacted":
        less = share(report.tokens_before - report.tokens_after, report.tokens_before)
        return f"compacted, {tokens(report.tokens_before)} -> {tokens(report.tokens_after)} tokens ({less} less)"
    return f"{report.status.replace('_', ' ')}, {tokens(report.tokens_before)} tokens{_hint(report)}"


def _hint(report: Any) -> str:  # noqa: ANN401 (as above)
    if report.status == "nothing_to_compact" or report.tokens_before <= report.target_tokens:
        return f"; they fit the target of {tokens(report.target_tokens)}: a smaller --target lets more leave"
    # Writers are a server's: that a file has none is no reason.
    declined = [item for item in report.declined if item.reason != "not_configured"]
    reasons = ", ".join(f"{item.path}: {item.reason}" for item in declined)
    room = f"; nothing can be told in {tokens(report.target_tokens)} tokens: take a larger --target"
    return (f" ({reasons})" if reasons else "") + (room if any(item.reason == "no_room" for item in declined) else "")


def kept_lines(report: Any) -> list[str]:  # noqa: ANN401 (as above)
    """What was kept and why, what left, and the standing instructions."""
    lines = span_lines(report.spans)
    loss = report.loss
    if loss.instructions:
        lines.append(f"  {'your words':<12}{instructions_kept(loss.instructions_kept, loss.instructions)}")
    return lines


def instructions_kept(kept: int, number: int) -> str:
    """How many sentences were kept. They are more than `mcp-compact rules` lists, which judges which of them hold."""
    return f"{kept:>5} of {number} sentences that may be instructions, word for word"


def span_lines(spans: Sequence[Span]) -> list[str]:
    """A line for each fate: how many messages, how many tokens, why."""
    sums: dict[str, tuple[int, int]] = {}
    for span in spans:
        records, size = sums.get(span.fate, (0, 0))
        sums[span.fate] = (records + span.records, size + span.tokens)
    return [span_line(fate, number, size, WHY.get(fate, "")) for fate, (number, size) in sums.items()]


def span_line(fate: str, number: int, size: int, why: str) -> str:
    """What became of so many messages of so many tokens, and why; columns are the same in every such line."""
    noun = "message" if number == 1 else "messages"
    return f"  {shown(fate):<12}{number:>5,} {noun:<8} {tokens(size):>7}  {why}".rstrip()


def reading_lines(read: Any) -> list[str]:  # noqa: ANN401 (an ImportReport)
    """What a reader met in a file: broken lines by number, and findings by kind."""
    lines = [f"line {problem.line} was not understood: {problem.reason}" for problem in read.problems]
    if read.problem_count > len(lines):
        lines.append(f"and {count(read.problem_count - len(lines), 'more such line')}")
    for code, number in sorted(read.warning_counts.items()):
        one, many = READS.get(code, (code, code))
        lines.append(one if number == 1 else f"{number:,} {many}")
    return lines


def warning_lines(warnings: Sequence[str], most: int) -> list[str]:
    """A heading and the first warnings; nothing where there are none."""
    if not warnings:
        return []
    lines = ["", f"{count(len(warnings), 'warning')}:"]
    lines += [f"  {cut(shown(text), 150)}" for text in warnings[:most]]
    if len(warnings) > most:
        lines.append(f"  ... {len(warnings) - most} more; --json lists all")
    return lines
