"""A picture of a context by kind: pure functions over messages of the Anthropic format, and over slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp_compact.cli.terminal import Terminal
from mcp_compact.cli.text import fit, share, tokens
from mcp_compact.compaction.attachments import BEGINNING
from mcp_compact.compaction.wording import OPENING
from mcp_compact.messages.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    parse_content,
)
from mcp_compact.messages.weights import UNKNOWN, CountUnits, Family, Weight, countable, estimate_all
from mcp_compact.messages.words import typed, without_injected
from mcp_compact.service.results import Slice

MEMORY, WORDS, ASSISTANT, THINKING, CALLS = "memory", "your words", "assistant", "thinking", "tool calls"
MEDIA, PASTED, REMINDERS = "images and documents", "pasted text", "reminders"
RESULTS = " results"
CLIENTS_SUMMARY = "This session is being continued from a previous conversation"
OTHER_RESULTS = "other results"
MOST_RESULT_ROWS = 6
_ORDER = (MEMORY, WORDS, ASSISTANT, THINKING, CALLS)
_LAST = (MEDIA, PASTED, REMINDERS)
_BLOCK = {MEMORY: "█", WORDS: "▓", ASSISTANT: "▒", THINKING: "▚", CALLS: "▞", MEDIA: "▄", PASTED: "▂", REMINDERS: "▁"}
_ASCII = {MEMORY: "#", WORDS: "W", ASSISTANT: "a", THINKING: "t", CALLS: "c", MEDIA: "i", PASTED: "p", REMINDERS: "r"}
_COLOUR = {
    MEMORY: "32",
    WORDS: "33",
    ASSISTANT: "37",
    THINKING: "90",
    CALLS: "35",
    MEDIA: "31",
    PASTED: "93",
    REMINDERS: "90",
}
_RESULT_COLOURS = ("36", "34", "96", "94", "95", "90")
_EIGHTHS = " ▏▎▍▌▋▊▉"


# ---------------------------------------------------------------- what fills a context


def slices_of_messages(
    messages: Sequence[Mapping[str, Any]], count: CountUnits = estimate_all, family: Family = UNKNOWN
) -> tuple[Slice, ...]:
    """Messages by kind, in tokens of a family. A part of a split block counts as its message's."""
    tools = dict(_call_names(messages))
    texts: list[str] = []
    places: list[tuple[str, int, int, Weight]] = []
    for at, message in enumerate(messages):
        for block in parse_content(message.get("content")):
            own, rest = countable([block])
            places.append((kind_of(block, str(message.get("role")), tools), at, len(own), rest))
            texts += own
    units = iter(count(texts))
    sums: dict[str, tuple[Weight, set[int]]] = {}
    for kind, at, number, rest in places:
        weight, seen = sums.get(kind, (Weight(), set()))
        own_units = sum(next(units) for _ in range(number))
        sums[kind] = (weight + rest + Weight(units=own_units), seen | {at})
    return tuple(Slice(kind, family.tokens(weight), len(seen)) for kind, (weight, seen) in sums.items())


def _call_names(messages: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, str]]:
    for message in messages:
        for block in parse_content(message.get("content")):
            if isinstance(block, ToolUseBlock):
                yield block.id, block.name


def kind_of(block: Block, role: str, tools: Mapping[str, str]) -> str:
    """What a block is to the one who looks at the picture; `tools` names the tool of each call id."""
    match block:
        case ThinkingBlock():
            return THINKING
        case ToolUseBlock():
            return CALLS
        case ToolResultBlock():
            return (tools.get(block.tool_use_id) or "unknown tool") + RESULTS
        case MediaBlock():
            return MEDIA
        case TextBlock() if is_memory(block.text):
            return MEMORY
        case TextBlock() if role == "user":
            return _kind_of_text(block.text)
        case _:
            return ASSISTANT if role == "assistant" else REMINDERS


def _kind_of_text(text: str) -> str:
    """Of a text that stands under the user's name: who wrote it?"""
    if typed(text):
        return WORDS
    return PASTED if without_injected(text).strip() else REMINDERS


def is_memory(text: str) -> bool:
    """Did a compaction write this message, one of ours or a client's own?"""
    return text.startswith((OPENING, BEGINNING, CLIENTS_SUMMARY))


def scaled(slices: Sequence[Slice], total: int) -> tuple[Slice, ...]:
    """The same shares of another total, so that a picture adds up to the figure that the server gives."""
    own = sum(item.tokens for item in slices)
    if not own:
        return tuple(slices)
    edges, passed = [0], 0
    for item in slices:
        passed += item.tokens
        edges.append(round(total * passed / own))
    return tuple(
        Slice(item.kind, after - before, item.messages)
        for item, before, after in zip(slices, edges, edges[1:], strict=False)
    )


# ---------------------------------------------------------------- how it is drawn


def comparison(before: Sequence[Slice], after: Sequence[Slice], screen: Terminal) -> list[str]:
    """Two bars on one scale and a row a kind: tokens, share and bar, before and after. 80 columns."""
    kinds = ordered_kinds(before, after)
    old, new = merged(before, kinds), merged(after, kinds)
    sums = sum(old.values()), sum(new.values())
    scale = max(*sums, 1)
    bar_columns = screen.columns - 18
    lines = [
        f"  {name:<8}{stacked(part, kinds, scale, bar_columns, screen)}{tokens(total):>8}"
        for name, part, total in (("before", old, sums[0]), ("after", new, sums[1]))
    ]
    return [*lines, "", *_rows(kinds, old, new, screen)]


def _rows(kinds: Sequence[str], old: Mapping[str, int], new: Mapping[str, int], screen: Terminal) -> list[str]:
    largest = max([*old.values(), *new.values(), 1])
    sums = sum(old.values()), sum(new.values())
    room = (screen.columns - 26) // 2 - 14
    lines = [screen.faint(f"{'':<26}{'before':>7}{'':<{room + 7}} {'after':>7}")]
    for kind in kinds:
        pairs = zip((old, new), sums, strict=True)
        cells = [_cell(part[kind], total, largest, room, screen, colour(kind, kinds)) for part, total in pairs]
        lines.append(f"  {_mark(kind, kinds, screen)} {fit(kind, 21)} {'  '.join(cells)}".rstrip())
    saved = f"   {share(sums[0] - sums[1], sums[0])} less" if sums[1] < sums[0] else ""
    lines.append(screen.bold(f"    {'total':<22}{tokens(sums[0]):>7}{'':<{room + 7}} {tokens(sums[1]):>7}{saved}"))
    return lines


def _cell(value: int, total: int, largest: int, room: int, screen: Terminal, code: str) -> str:
    if not value:
        return f"{'-':>7}{'':<{room + 6}}"
    return f"{tokens(value):>7} {share(value, total):>4} {screen.paint(bar(value, largest, room, screen), code)}"


def _mark(kind: str, kinds: Sequence[str], screen: Terminal) -> str:
    return screen.paint(glyph(kind, screen), colour(kind, kinds))


def single(slices: Sequence[Slice], screen: Terminal) -> list[str]:
    """One bar and a row a kind."""
    kinds = ordered_kinds(slices, ())
    parts = merged(slices, kinds)
    total = max(sum(parts.values()), 1)
    largest = max([*parts.values(), 1])
    room = screen.columns - 42
    lines = [f"  {stacked(parts, kinds, total, screen.columns - 4, screen)}", ""]
    for kind in kinds:
        cell = _cell(parts[kind], total, largest, room, screen, colour(kind, kinds))
        lines.append(f"  {_mark(kind, kinds, screen)} {fit(kind, 21)} {cell}".rstrip())
    return lines


def ordered_kinds(before: Sequence[Slice], after: Sequence[Slice]) -> tuple[str, ...]:
    """The kinds that occur: memory and dialogue first, then results, the largest first, few of them."""
    sizes: dict[str, int] = {}
    for item in (*before, *after):
        if item.tokens:
            sizes[item.kind] = max(sizes.get(item.kind, 0), item.tokens)
    results = sorted((k for k in sizes if k.endswith(RESULTS)), key=lambda k: (-sizes[k], k))
    shown = results if len(results) <= MOST_RESULT_ROWS else [*results[: MOST_RESULT_ROWS - 1], OTHER_RESULTS]
    return (*(k for k in _ORDER if k in sizes), *shown, *(k for k in _LAST if k in sizes))


def merged(slices: Sequence[Slice], kinds: Sequence[str]) -> dict[str, int]:
    """Tokens of each of these kinds; results without a row of their own go to the others."""
    sums = dict.fromkeys(kinds, 0)
    for item in slices:
        kind = item.kind if item.kind in sums else OTHER_RESULTS
        if kind in sums:
            sums[kind] += item.tokens
    return sums


def stacked(parts: Mapping[str, int], kinds: Sequence[str], scale: int, columns: int, screen: Terminal) -> str:
    """One bar of all kinds; `scale` tokens fill the columns."""
    drawn, passed, at = [], 0, 0
    for kind in kinds:
        passed += parts.get(kind, 0)
        end = round(columns * passed / scale)
        own = max(0, end - at)
        drawn.append(screen.paint(glyph(kind, screen) * own, colour(kind, kinds)))
        at = max(at, end)
    return "".join(drawn) + " " * (columns - at)


def bar(value: int, largest: int, columns: int, screen: Terminal) -> str:
    """A bar in exactly so many columns; anything above zero shows at least a sliver."""
    if value <= 0:
        return " " * columns
    eighths = max(1, round(8 * columns * value / largest))
    if not screen.blocks:
        return ("#" * max(1, eighths // 8)).ljust(columns)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(columns)


def gauge(used: int, warning: int, compact: int, window: int, screen: Terminal) -> str:
    """How full a window is; `:` stands where the warning begins, `|` where compaction is due."""
    columns = screen.columns - 4
    full, empty = ("█", "░") if screen.blocks else ("#", ".")
    filled = min(columns, round(columns * used / max(window, 1)))
    cells = [full] * filled + [empty] * (columns - filled)
    for at_tokens, mark in ((warning, ":"), (compact, "|")):
        cells[min(columns - 1, columns * at_tokens // max(window, 1))] = mark
    return "".join(cells)


def glyph(kind: str, screen: Terminal) -> str:
    """What fills a kind's part of a bar, and its mark in the rows; where there are colours they tell kinds apart."""
    if not screen.blocks:
        return _ASCII.get(kind, ".")
    return "█" if screen.colours else _BLOCK.get(kind, "░")


def colour(kind: str, kinds: Sequence[str]) -> str:
    """The SGR code of a kind; results of different tools differ."""
    if kind in _COLOUR:
        return _COLOUR[kind]
    results = [item for item in kinds if item not in _COLOUR]
    return _RESULT_COLOURS[results.index(kind) % len(_RESULT_COLOURS)] if kind in results else ""
