"""Weighing records: each text is counted once, and a result's share of its record is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_compact.compaction.snapshot import MediaFacts
from mcp_compact.messages.blocks import Block, MediaBlock, ToolResultBlock
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import NOTHING, CountUnits, Weight, countable, estimate_units, media_tokens


@dataclass(frozen=True, slots=True)
class Weighed:
    """The weights of one record and of the results in it."""

    estimate: Weight
    exact_units: int | None
    """Units of its texts by the tokenizer, None where there was none."""
    results: tuple[Weight, ...] = ()
    """Of each result block in the order of `record.results`, by the best count."""
    cleared: tuple[Weight, ...] = ()
    """Of what would stand in each result's place."""
    media: tuple[MediaFacts, ...] = ()

    @property
    def best(self) -> Weight:
        """The weight by the tokenizer where it counted, else the estimate."""
        return self.estimate if self.exact_units is None else replace(self.estimate, units=self.exact_units)


@dataclass(slots=True)
class _Counts:
    """All texts of a batch, to be counted at once."""

    texts: list[str]
    units: Sequence[int] = ()

    def add(self, texts: Sequence[str]) -> tuple[int, int]:
        start = len(self.texts)
        self.texts += texts
        return start, len(self.texts)

    def of(self, span: tuple[int, int]) -> int:
        return sum(self.units[span[0] : span[1]])


@dataclass(frozen=True, slots=True)
class _Part:
    block: Block
    span: tuple[int, int]
    cleared_span: tuple[int, int]
    rest: Weight


def weigh_records(records: Sequence[Record], exact: CountUnits | None, cleared: ClearedText) -> list[Weighed]:
    """The weights of some records; what is no message weighs nothing. `exact` counts all texts at once."""
    counts = _Counts([])
    parts = [[_part(block, counts, cleared) for block in r.blocks] if r.is_message else [] for r in records]
    estimates = [estimate_units(text) for text in counts.texts]
    guessed = _Counts(counts.texts, estimates)
    counted = _Counts(counts.texts, exact(counts.texts)) if exact else None
    return [_weighed(record, own, guessed, counted) for record, own in zip(records, parts, strict=True)]


def _part(block: Block, counts: _Counts, cleared: ClearedText) -> _Part:
    texts, rest = countable([block])
    span = counts.add(texts)
    is_result = isinstance(block, ToolResultBlock) and not block.server
    return _Part(block, span, counts.add([cleared.result(block)]) if is_result else (0, 0), rest)  # type: ignore[arg-type]


def _weighed(record: Record, parts: Sequence[_Part], guessed: _Counts, counted: _Counts | None) -> Weighed:
    if not record.is_message:
        return Weighed(NOTHING, None)
    best = counted or guessed
    rest = sum((part.rest for part in parts), Weight(messages=1))
    results = [p for p in parts if isinstance(p.block, ToolResultBlock) and not p.block.server]
    return Weighed(
        estimate=rest + Weight(units=sum(guessed.of(part.span) for part in parts)),
        exact_units=sum(counted.of(p.span) for p in parts) + rest.units if counted else None,
        results=tuple(p.rest + Weight(units=best.of(p.span)) for p in results),
        cleared=tuple(Weight(units=best.of(p.cleared_span), results=1) for p in results),
        media=tuple(_media(record)),
    )


def _media(record: Record) -> list[MediaFacts]:
    found: list[MediaFacts] = []
    for index, block in enumerate(record.blocks):
        if isinstance(block, MediaBlock):
            tokens = media_tokens(block)
            found.append(MediaFacts(block.kind, record.uuid, record.seq, index, None, tokens))
        elif isinstance(block, ToolResultBlock):
            found += [
                MediaFacts(part.kind, record.uuid, record.seq, index, at, media_tokens(part), block.tool_use_id)
                for at, part in enumerate(block.parts)
                if isinstance(part, MediaBlock)
            ]
    return found
