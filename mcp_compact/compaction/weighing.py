"""Weighing records: each text is counted once, and a result's share of its record is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from mcp_compact.compaction.snapshot import MediaFacts
from mcp_compact.messages.blocks import MediaBlock, ToolResultBlock
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import NOTHING, Countable, CountUnits, Mark, Weight, estimate_all, media_tokens


class Weighed(NamedTuple):
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


UNWEIGHED = Weighed(NOTHING, None)
"""What is no message weighs nothing."""
_Span: TypeAlias = tuple[Mark, Mark]
"""A stretch of the batch's texts: where it begins and ends."""


class _Walked(NamedTuple):
    """Where a record and its results stand among the texts of the batch, and what would stand in their place."""

    whole: _Span
    results: tuple[tuple[_Span, str], ...] = ()


class _Units:
    """Units of all texts of a batch as running sums: a stretch is one subtraction, however many texts it has."""

    def __init__(self, counted: Iterable[int]) -> None:
        self._sums = list(accumulate(counted, initial=0))

    def of(self, span: _Span) -> int:
        start, end = span
        return self._sums[end.texts] - self._sums[start.texts] + end.units - start.units

    def weight(self, span: _Span, messages: int = 0) -> Weight:
        start, end = span
        return Weight(self.of(span), end.results - start.results, end.media - start.media, messages)


def weigh_records(records: Sequence[Record], exact: CountUnits | None, cleared: ClearedText) -> list[Weighed]:
    """The weights of some records; what is no message weighs nothing. `exact` counts all texts at once."""
    found = Countable()
    walked = [_walk(record, found, cleared) if record.is_message else None for record in records]
    # Most results would leave the same text behind.
    marks = list(dict.fromkeys(text for one in walked if one is not None for _, text in one.results))
    texts = found.texts + marks
    estimates = estimate_all(texts)
    counts = exact(texts) if exact else estimates
    guessed, best = _Units(estimates), _Units(counts)
    left = dict(zip(marks, (Weight(units, results=1) for units in counts[len(found.texts) :]), strict=True))
    return [
        UNWEIGHED if own is None else _weighed(record, own, guessed, best if exact else None, left)
        for record, own in zip(records, walked, strict=True)
    ]


def _walk(record: Record, found: Countable, cleared: ClearedText) -> _Walked:
    start = end = found.mark()
    results: list[tuple[_Span, str]] = []
    for block in record.blocks:
        before = end
        found.add((block,))
        end = found.mark()
        if isinstance(block, ToolResultBlock) and not block.server:
            results.append(((before, end), cleared.result(block)))
    return _Walked((start, end), tuple(results))


def _weighed(
    record: Record, own: _Walked, guessed: _Units, counted: _Units | None, left: dict[str, Weight]
) -> Weighed:
    best = counted or guessed
    estimate = guessed.weight(own.whole, messages=1)
    return Weighed(
        estimate,
        counted.of(own.whole) if counted else None,
        tuple([best.weight(span) for span, _ in own.results]),
        tuple([left[text] for _, text in own.results]),
        tuple(_media(record)) if estimate.media else (),
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
