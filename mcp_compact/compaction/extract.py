"""The extractor: what of a session its next work will need, inside a budget and without a model.

A name (path, symbol, number, quoted text, ...) is worth its likelihood of being needed again times
its rarity. Whole lines that hold the names are chosen by a greedy cover under the budget; the
user's words, the open tasks and the last state come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_compact.compaction.extract_cover import Cover, Group, Position, Prices
from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_memory import memory_passages, summary_passages, user_words_of
from mcp_compact.compaction.extract_outdated import without_outdated
from mcp_compact.compaction.extract_passages import (
    ASSISTANT,
    Passage,
    Told,
    passages,
    with_stale,
    working_directory,
)
from mcp_compact.compaction.extract_render import Words, document, head_text, numbered
from mcp_compact.compaction.extract_requests import requests, telling, within, without_revoked
from mcp_compact.compaction.extract_score import gather, glued, worth
from mcp_compact.compaction.extract_tasks import Task, task_lines, tasks, tells_of
from mcp_compact.compaction.fitting import fit
from mcp_compact.messages.blocks import TextBlock
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.masking import masked, without_private_keys
from mcp_compact.messages.memory_document import DEFAULT_TITLE, TASK, MemoryDocument
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import CountUnits
from mcp_compact.messages.words import users_words

STATE_SHARE = 0.025
"""Of the budget, for what the model said last."""
STATE_PASSAGES = 2
TASK_SHARE = 0.05
"""Of the budget, for open tasks."""
SAFETY = 0.002
"""Share left over: texts counted one by one may cost a little less than the whole that they make up."""
PASSES = 3
"""Choosing is repeated with what was left over, so that the budget is used up."""
FACTORS = {ASSISTANT: 1.15}
"""Gain of a line by who wrote it: a sentence says more to a reader than a line of code does.
Paid for with recall of what was needed, on purpose: about 0.4 points at 1.15, 0.6 at 1.5 (3,000 tokens)."""
TALK_FROM = 0.2
"""Share of the user's words in a talk from which they get more room."""
MOST_WORDS = 0.97
"""Of the budget, for the user's words in a talk."""
NARROW_TAIL, WIDE_TAIL = 0.25, 0.5
WIDE_BELOW = 3.0


@dataclass(frozen=True, slots=True)
class Material:
    """What the extractor works on: message records only, old to new."""

    records: tuple[Record, ...]
    """They leave the context."""
    kept: tuple[Record, ...] = ()
    """They stay after those, unchanged: what stands there need not be said again."""
    previous: MemoryDocument | None = None
    """The memory so far."""
    summaries: tuple[str, ...] = ()
    """The summary texts of the last boundary."""
    cleared: frozenset[ToolUseId] = frozenset()
    """Calls among `kept` whose results do not stay."""
    beside: str = ""
    """A text that stands before the memory in the context: its lines are not said again."""


def extract(
    material: Material, budget_units: int, section_units: int | None, count: CountUnits, tell: Told | None = None
) -> MemoryDocument:
    """The memory of this material: rendered, it costs at most `budget_units` by `count`.

    `section_units` limits each section (None: no limit). The same material gives the same memory. `tell` is called
    with the place of each record that is read for lines, which is about half of the work.
    """
    earlier = user_words_of(material.previous)
    said = [*earlier, *(w for r in material.records if (w := users_words(r)))]
    told = requests([without_private_keys(words) for words in said])
    material = replace(material, records=without_revoked(material.records, earlier))
    times = room_for_words(material.records)
    limit = budget_units if section_units is None else min(budget_units, section_units)
    limit = int(limit * MOST_WORDS) if times > 1 else limit
    words = Words(
        title=material.previous.title if material.previous else DEFAULT_TITLE,
        requests=tuple(
            within(told, int(budget_units * times), limit, count, telling(told, said) if times > 1 else None)
        ),
        tasks=tuple(_fitting(task_lines(_tasks(material)), budget_units, count)),
    )
    chosen, own, state = _chosen(material, words, (budget_units, section_units), count, tell)
    made = document(words, own, chosen, state)
    while chosen and count([made.render()])[0] > budget_units:
        # The last choice is the one that brings least; more of them go where much is over.
        for _ in range(1 + len(chosen) // 50):
            chosen.popitem()
        made = document(words, own, chosen, state)
    return fit(_masked(made), budget_units, section_units, count)


def _tasks(material: Material) -> list[Task]:
    """The tasks as they stand at the end: what stays in the context tells of them, too."""
    return tasks((*material.records, *material.kept), material.previous)


def room_for_words(records: Sequence[Record]) -> float:
    """How many times their usual share of the budget the user's words get.

    Once in a session of work, where they are a few per cent of it. In a talk without tools they are what there is
    to keep: from a fifth of the text on they get more, up to three times their share.
    """
    said = sum(len(users_words(record)) for record in records)
    whole = sum(len(block.text) for record in records for block in record.blocks if isinstance(block, TextBlock))
    if not whole or any(record.calls for record in records):
        return 1.0
    return 1.0 + 2.0 * min(1.0, max(0.0, said / whole - TALK_FROM) / TALK_FROM)


def tail_share(live_tokens: int, target_tokens: int) -> float:
    """Share of a target that the kept tail should have at most; the memory gets the rest.

    A quarter: over real sessions chosen lines held more of what was needed than the same tokens
    of unchanged messages. Up to a half where there is little that could be chosen from.
    """
    if target_tokens <= 0 or live_tokens <= target_tokens:
        return WIDE_TAIL
    times = live_tokens / target_tokens
    missing = max(0.0, (WIDE_BELOW - times) / (WIDE_BELOW - 1))
    return NARROW_TAIL + (WIDE_TAIL - NARROW_TAIL) * missing


def _masked(made: MemoryDocument) -> MemoryDocument:
    """The document without keys and tokens, line by line: a begun key must not take the lines of others with it."""
    sections = [replace(section, body="\n".join(map(masked, section.body.splitlines()))) for section in made.sections]
    return MemoryDocument(masked(made.title), tuple(sections))


def _chosen(
    material: Material, words: Words, room: tuple[int, int | None], count: CountUnits, tell: Told | None
) -> tuple[dict[Position, None], list[Passage], set[Position]]:
    """The chosen lines in the order of their choice, the passages they are of, and which of them tell the state.

    `room`: units in all, and for a section.
    """
    budget_units, section_units = room
    records = (*material.records, *material.kept)
    cwd = working_directory(records)
    splitter = Splitter(cwd)
    known = [task.text for task in _tasks(material)]
    old = [
        passage
        for passage in (
            *summary_passages(material.summaries, splitter),
            *memory_passages(material.previous, splitter),
        )
        # How a task stood once is told by its newest state, or by nothing where all are done.
        if passage.section != TASK or not any(tells_of(line.text, known) for line in passage.lines)
    ]
    if material.beside:
        old += [replace(p, quotable=False) for p in summary_passages((material.beside,), splitter)]
    new = passages(records, splitter, cwd, len(material.records), material.cleared, tell)
    everything = without_outdated(with_stale([*old, *new], records, cwd), records, cwd)
    evidence, chars = gather(everything)
    own = [passage for passage in everything if not passage.stays]
    prices, heads = _prices(own, splitter, count)
    covered = [name for text in (*words.requests, *words.tasks) for name, _ in splitter.line(text).names]
    cover = Cover(own, worth(evidence, len(records), chars), prices, covered)
    cover.offer([FACTORS.get(passage.origin, 1.0) for passage in own], heads, glued(evidence))
    state = _take_state(cover, everything, own, int(budget_units * STATE_SHARE))
    safe = int(budget_units * (1 - SAFETY))
    for _ in range(PASSES):
        left = safe - count([document(words, own, cover.chosen, state).render()])[0]
        if left <= prices.per_line or cover.spend(left, section_units) == left:
            break
    return cover.chosen, own, state


def _prices(
    own: Sequence[Passage], splitter: Splitter, count: CountUnits
) -> tuple[Prices, dict[Group, tuple[str, ...]]]:
    """What lines and heads cost, and the names in the heads."""
    units = count([numbered(line) for passage in own for line in passage.lines])
    lines, at = [], 0
    for passage in own:
        lines.append(units[at : at + len(passage.lines)])
        at += len(passage.lines)
    groups = dict.fromkeys((passage.section, passage.head) for passage in own if passage.head)
    names = {group: tuple(name for name, _ in splitter.line(group[1]).names) for group in groups}
    costs = count([f"- {head_text(head)}\n" for _, head in groups])
    return Prices(lines, count(["  - \n"])[0], dict(zip(groups, costs, strict=True))), names


def _take_state(cover: Cover, everything: Sequence[Passage], own: Sequence[Passage], units: int) -> set[Position]:
    """Choose what the model said last and nothing that stays says, newest first, for so many units."""
    state: set[Position] = set()
    said = {line.text for passage in everything if passage.stays for line in passage.lines}
    talk = [number for number, passage in enumerate(own) if passage.origin == ASSISTANT][-STATE_PASSAGES:]
    for number in reversed(talk):
        for line in range(len(own[number].lines)):
            if units > 0 and own[number].lines[line].text not in said:
                units -= cover.take(number, line)
                state.add((number, line))
    return state


def _fitting(lines: Sequence[str], budget_units: int, count: CountUnits) -> list[str]:
    """The first lines that fit into the share of open tasks."""
    left = int(budget_units * TASK_SHARE)
    taken = []
    for line, units in zip(lines, count([f"- {line}\n" for line in lines]), strict=True):
        left -= units
        if left < 0:
            break
        taken.append(line)
    return taken
