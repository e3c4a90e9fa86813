"""Weighing records: each text is counted once, and a result's share of its record is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from mcp_compact.compaction.snapshot import InputFacts, MediaFacts
from mcp_compact.messages.blocks import CLEARED_MEDIA, MediaBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.clearing import CLEARED_INPUT_TEXT, ClearedText, media_mark_text
from mcp_compact.messages.codec import body_hash
from mcp_compact.messages.message import Record
from mcp_compact.messages.tool_inputs import lines_of, path_of
from mcp_compact.messages.weights import (
    NOTHING,
    Countable,
    CountUnits,
    Mark,
    Weight,
    estimate_all,
    json_text,
    media_bytes,
    media_tokens,
)


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
    inputs: tuple[InputFacts, ...] = ()
    """Of each call in the order of `record.calls`, by the best count."""

    @property
    def best(self) -> Weight:
        """The weight by the tokenizer where it counted, else the estimate."""
        return self.estimate if self.exact_units is None else replace(self.estimate, units=self.exact_units)


UNWEIGHED = Weighed(NOTHING, None)
"""What is no message weighs nothing."""
NO_INPUT = InputFacts()
"""Of a call that came with its input cleared: nobody knows what it was."""
_Span: TypeAlias = tuple[Mark, Mark]
"""A stretch of the batch's texts: where it begins and ends."""


class _Walked(NamedTuple):
    """Where a record and its results stand among the texts of the batch, and what would stand in their place."""

    whole: _Span
    results: tuple[tuple[_Span, str], ...] = ()
    calls: tuple[tuple[int, object], ...] = ()
    """Of each call the place of its input among the texts, and the input."""

    @property
    def marks(self) -> Iterator[str]:
        """The texts that clearings in it would leave."""
        yield from (text for _, text in self.results)
        if self.calls:
            yield CLEARED_INPUT_TEXT
        if self.whole[1].media > self.whole[0].media:
            yield from CLEARED_MEDIA.values()


class _Units:
    """Units of all texts of a batch as running sums: a stretch is one subtraction, however many texts it has."""

    def __init__(self, counted: Iterable[int]) -> None:
        self._sums = list(accumulate(counted, initial=0))

    def of(self, span: _Span) -> int:
        start, end = span
        return self._sums[end.texts] - self._sums[start.texts] + end.units - start.units

    def at(self, place: int) -> int:
        return self._sums[place + 1] - self._sums[place]

    def weight(self, span: _Span, messages: int = 0) -> Weight:
        start, end = span
        return Weight(self.of(span), end.results - start.results, end.media - start.media, messages)


def weigh_records(records: Sequence[Record], exact: CountUnits | None, cleared: ClearedText) -> list[Weighed]:
    """The weights of some records; what is no message weighs nothing. `exact` counts all texts at once."""
    found = Countable()
    walked = [_walk(record, found, cleared) if record.is_message else None for record in records]
    # Most results would leave the same text behind.
    marks = list(dict.fromkeys(text for one in walked if one is not None for text in one.marks))
    texts = found.texts + marks
    estimates = estimate_all(texts)
    counts = exact(texts) if exact else estimates
    guessed, best = _Units(estimates), _Units(counts)
    left = dict(zip(marks, (Weight(units, results=1) for units in counts[len(found.texts) :]), strict=True))
    return [
        UNWEIGHED if own is None else _weighed(record, own, guessed, best if exact else None, left, found.texts)
        for record, own in zip(records, walked, strict=True)
    ]


def _walk(record: Record, found: Countable, cleared: ClearedText) -> _Walked:
    start = end = found.mark()
    results: list[tuple[_Span, str]] = []
    calls: list[tuple[int, object]] = []
    for block in record.blocks:
        before = end
        found.add((block,))
        end = found.mark()
        if isinstance(block, ToolResultBlock):
            if not block.server:
                results.append(((before, end), cleared.result(block)))
        elif isinstance(block, ToolUseBlock) and not block.server:
            # The name comes first, the input last.
            calls.append((end.texts - 1, block.input))
    return _Walked((start, end), tuple(results), tuple(calls))


def _weighed(
    record: Record,
    own: _Walked,
    guessed: _Units,
    counted: _Units | None,
    left: dict[str, Weight],
    texts: Sequence[str],
) -> Weighed:
    best = counted or guessed
    estimate = guessed.weight(own.whole, messages=1)
    return Weighed(
        estimate,
        counted.of(own.whole) if counted else None,
        tuple([best.weight(span) for span, _ in own.results]),
        tuple([left[text] for _, text in own.results]),
        tuple(_media(record, left)) if estimate.media else (),
        tuple([_input(texts[at], best.at(at), given, left) for at, given in own.calls]) if own.calls else (),
    )


def _input(text: str, units: int, given: object, left: dict[str, Weight]) -> InputFacts:
    """Facts of an input by its JSON, which the counter had to write anyway."""
    if text == CLEARED_INPUT_TEXT:
        return NO_INPUT
    digest = body_hash(text.encode("utf-8", "surrogatepass"))
    return InputFacts(digest, units - left[CLEARED_INPUT_TEXT].units, path_of(given), lines_of(given))


def cleared_input(given: object) -> InputFacts:
    """Facts of an input whose weight is gone already."""
    return InputFacts(body_hash(json_text(given).encode("utf-8", "surrogatepass")), 0, path_of(given), lines_of(given))


def _media(record: Record, left: dict[str, Weight]) -> list[MediaFacts]:
    found: list[MediaFacts] = []
    for index, block in enumerate(record.blocks):
        if isinstance(block, MediaBlock):
            found.append(_facts(block, record, index, left))
        elif isinstance(block, ToolResultBlock):
            found += [
                replace(_facts(part, record, index, left), part=at, tool_use_id=block.tool_use_id)
                for at, part in enumerate(block.parts)
                if isinstance(part, MediaBlock)
            ]
    return found


def _facts(block: MediaBlock, record: Record, index: int, left: dict[str, Weight]) -> MediaFacts:
    mark = left[media_mark_text(block.kind)].units
    return MediaFacts(
        block.kind,
        record.uuid,
        record.seq,
        index,
        None,
        media_tokens(block),
        mark_units=mark,
        bytes=media_bytes(block),
    )
