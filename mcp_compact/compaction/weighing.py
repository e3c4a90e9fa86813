"""Weighing records: each text is counted once, and a result's share of its record is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeAlias

from mcp_compact.compaction.snapshot import InputFacts, MediaFacts
from mcp_compact.messages.blocks import CLEARED_MEDIA, Block, MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.clearing import CLEARED_INPUT_TEXT, ClearedText, media_mark_text
from mcp_compact.messages.codec import body_hash
from mcp_compact.messages.message import Record
from mcp_compact.messages.tool_inputs import lines_of, path_of
from mcp_compact.messages.values import value
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


@value
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


_Walked: TypeAlias = tuple[_Span, Sequence[tuple[_Span, str]], Sequence[tuple[int, object]]]
"""Where a record stands among the texts of the batch; its results, and what would stand in their place; of each call
the place of its input among the texts, and the input."""


class _Units:
    """Units of all texts of a batch as running sums: a stretch is one subtraction, however many texts it has."""

    __slots__ = ("_counted", "_sums")

    def __init__(self, counted: Sequence[int]) -> None:
        self._counted = counted
        self._sums = list(accumulate(counted, initial=0))

    def of(self, span: _Span) -> int:
        (first, before, _, _), (last, after, _, _) = span
        return self._sums[last] - self._sums[first] + after - before

    def at(self, place: int) -> int:
        return self._counted[place]

    def weight(self, span: _Span, messages: int = 0) -> Weight:
        (first, before, results, media), (last, after, more_results, more_media) = span
        units = self._sums[last] - self._sums[first] + after - before
        return Weight(units, more_results - results, more_media - media, messages)


def weigh_records(records: Sequence[Record], exact: CountUnits | None, cleared: ClearedText) -> list[Weighed]:
    """The weights of some records; what is no message weighs nothing. `exact` counts all texts at once."""
    found = Countable()
    # Most results would leave the same text behind.
    left_behind: dict[str, None] = {}
    walked = [
        _walk(record.message.blocks, found, cleared, left_behind) if record.message and record.is_message else None
        for record in records
    ]
    marks = list(left_behind)
    texts = found.texts + marks
    estimates = estimate_all(texts)
    counts = exact(texts) if exact else estimates
    guessed, best = _Units(estimates), _Units(counts)
    left = dict(zip(marks, (Weight(units, results=1) for units in counts[len(found.texts) :]), strict=True))
    return [
        UNWEIGHED if own is None else _weighed(record, own, guessed, best if exact else None, left, found.texts)
        for record, own in zip(records, walked, strict=True)
    ]


def _walk(
    blocks: Sequence[Block], found: Countable, cleared: ClearedText, left_behind: dict[str, None]
) -> _Walked | int:
    """Go on with the texts of a record; `left_behind` takes the texts that clearings in it would leave.

    Most records are one text and nothing else: of those the place of the text is enough.
    """
    if len(blocks) == 1 and type(blocks[0]) is TextBlock:
        found.texts.append(blocks[0].text)
        return len(found.texts) - 1
    start = end = found.mark()
    results: list[tuple[_Span, str]] = []
    calls: list[tuple[int, object]] = []
    for block in blocks:
        before = end
        found.add((block,))
        end = found.mark()
        if isinstance(block, ToolResultBlock):
            if not block.server:
                text = cleared.result(block)
                left_behind[text] = None
                results.append(((before, end), text))
        elif isinstance(block, ToolUseBlock) and not block.server:
            # The name comes first, the input last.
            calls.append((end[0] - 1, block.input))
    if calls:
        left_behind[CLEARED_INPUT_TEXT] = None
    if end[-1] > start[-1]:
        left_behind.update(dict.fromkeys(CLEARED_MEDIA.values()))
    return (start, end), results, calls


def _weighed(
    record: Record,
    own: _Walked | int,
    guessed: _Units,
    counted: _Units | None,
    left: dict[str, Weight],
    texts: Sequence[str],
) -> Weighed:
    if isinstance(own, int):
        return Weighed(Weight(guessed.at(own), 0, 0, 1), counted.at(own) if counted else None)
    whole, results, calls = own
    best = counted or guessed
    estimate = guessed.weight(whole, messages=1)
    return Weighed(
        estimate,
        counted.of(whole) if counted else None,
        tuple([best.weight(span) for span, _ in results]) if results else (),
        tuple([left[text] for _, text in results]) if results else (),
        tuple(_media(record, left)) if estimate.media else (),
        tuple([_input(texts[at], best.at(at), given, left) for at, given in calls]) if calls else (),
    )


def _input(text: str, units: int, given: object, left: dict[str, Weight]) -> InputFacts:
    """Facts of an input by its JSON, which the counter had to write anyway."""
    if text == CLEARED_INPUT_TEXT:
        return NO_INPUT
    return _facts_of(given, text, units - left[CLEARED_INPUT_TEXT].units)


def cleared_input(given: object) -> InputFacts:
    """Facts of an input whose weight is gone already."""
    return _facts_of(given, json_text(given), 0)


def _facts_of(given: object, text: str, freed_units: int) -> InputFacts:
    path = path_of(given)
    digest = body_hash(text.encode("utf-8", "surrogatepass"))
    # What names no file asks for no lines of it.
    return InputFacts(digest, freed_units, path, lines_of(given) if path else None)


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
