"""The extractor: what of a session its next work will need, inside a budget and without a model.

A name (path, symbol, number, quoted text, ...) is worth its likelihood of being needed again times
its rarity. Whole lines that hold the names are chosen by a greedy cover under the budget; the
user's words, the open tasks and the last state come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_compact.compaction.extract_cover import Cover, Group, Position, Prices
from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_memory import memory_passages, summary_passages, user_words_of
from mcp_compact.compaction.extract_passages import ASSISTANT, COMMAND, MEMORY, TODO, Passage, passages, working_directory
from mcp_compact.compaction.extract_render import document, head_text, numbered
from mcp_compact.compaction.extract_requests import requests, within
from mcp_compact.compaction.extract_score import gather, worth
from mcp_compact.messages.memory_document import DEFAULT_TITLE, TASK, MemoryDocument
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import CountUnits
from mcp_compact.messages.words import users_words

STATE_SHARE = 0.05
"""Of the budget, for what the model said last."""
TASK_SHARE = 0.08
"""Of the budget, for open tasks."""
STATE_PASSAGES = 3
SAFETY = 0.01
"""Texts counted one by one may cost a little less than the whole that they make up."""


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


def extract(
    material: Material, budget_units: int, section_units: int | None, count: CountUnits
) -> MemoryDocument:
    """The memory of this material: rendered, it costs at most `budget_units` by `count`.

    `section_units` limits each section (None: no limit). The same material gives the same memory.
    """
    own, worth_of = _appraised(material)
    said = [*user_words_of(material.previous), *(w for r in material.records if (w := users_words(r)))]
    bullets = within(requests(said), budget_units, count)
    cover = _cover(own, worth_of, bullets, count)
    title = material.previous.title if material.previous else DEFAULT_TITLE

    def written(state: set[Position]) -> MemoryDocument:
        return document(title, own, cover.chosen, bullets, state)

    left = budget_units - count([written(set()).render()])[0]
    state = _take_first(cover, own, left)
    for _ in range(3):
        left = budget_units - count([written(state).render()])[0] - int(budget_units * SAFETY)
        if left <= 0:
            break
        cover.spend(left)
    while cover.chosen and count([written(state).render()])[0] > budget_units:
        cover.drop_last()
    return written(state)


def _appraised(material: Material) -> tuple[list[Passage], dict[str, float]]:
    """The passages that leave, and the worth of each name."""
    records = (*material.records, *material.kept)
    cwd = working_directory(records)
    splitter = Splitter(cwd)
    old = [*summary_passages(material.summaries, splitter), *memory_passages(material.previous, splitter)]
    all_ = [*old, *passages(records, splitter, cwd)]
    kept_from = len(material.records)
    return [p for p in all_ if p.order < kept_from], worth(gather(all_, kept_from), len(records))


def _cover(own: Sequence[Passage], worth_of: dict[str, float], bullets: Sequence[str], count: CountUnits) -> Cover:
    texts = [numbered(line) for passage in own for line in passage.lines]
    units = count(texts)
    lines, at = [], 0
    for passage in own:
        lines.append(units[at : at + len(passage.lines)])
        at += len(passage.lines)
    groups: dict[Group, list[str]] = {}
    splitter = Splitter("")
    for passage in own:
        if passage.head:
            groups.setdefault((passage.section, passage.head), [n for n, _ in splitter.line(passage.head).names])
    head_units = count([f"- {head_text(head)}\n" for _, head in groups])
    prices = Prices(lines, count(["  - \n"])[0], dict(zip(groups, head_units, strict=True)))
    covered = [name for bullet in bullets for name, _ in splitter.line(bullet).names]
    cover = Cover(own, worth_of, prices, covered)
    cover.offer([1.0] * len(own), groups)
    return cover


def _take_first(cover: Cover, own: Sequence[Passage], budget_units: int) -> set[Position]:
    """Choose the open tasks and what the model said last; positions of the latter."""
    left = int(budget_units * TASK_SHARE)
    for number in _task_passages(own):
        for line in range(len(own[number].lines)):
            if left > 0:
                left -= cover.take(number, line)
    left = int(budget_units * STATE_SHARE)
    state: set[Position] = set()
    talk = [number for number, passage in enumerate(own) if passage.origin == ASSISTANT][-STATE_PASSAGES:]
    for number in reversed(talk):
        for line in range(len(own[number].lines)):
            if left > 0:
                left -= cover.take(number, line)
                state.add((number, line))
    return state


def _task_passages(own: Sequence[Passage]) -> list[int]:
    """The newest task list, or the tasks of the old memory."""
    lists = [number for number, passage in enumerate(own) if passage.origin == TODO]
    if lists:
        return lists[-1:]
    return [n for n, p in enumerate(own) if p.origin == MEMORY and p.section == TASK]


__all__ = ["COMMAND", "Material", "extract"]
