"""Weighing records: each text is counted once, and a result's share of its record is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeAlias

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


NO_INPUT = InputFacts()
"""Of a call that came with its input cleared: nobody knows what it was."""
_Facts: TypeAlias = tuple[
    Weight, int | None, tuple[Weight, ...], tuple[Weight, ...], tuple[MediaFacts, ...], tuple[InputFacts, ...]
]
"""The fields of a `Weighed`, in their order."""
_UNWEIGHED: _Facts = (NOTHING, None, (), (), (), ())
"""What is no message weighs nothing."""
_Span: TypeAlias = tuple[Mark, Mark]
"""A stretch of the batch's texts: where it begins and ends."""
_Many: TypeAlias = tuple[_Span, Sequence[tuple[_Span, str]], Sequence[tuple[int, object]]]
"""Where a record stands among the texts of the batch; its results, and what would stand in their place; of each call
the place of its input among the texts, and the input."""
_TEXT, _RESULT, _CALL, _MANY = range(4)
_Walked: TypeAlias = tuple[int, int, Any]
"""One of the four above. Most records are one block: of those the place of its first text is enough, and what would
stand in the place of a result, or the input of a call. What else there is stands as `_Many`."""


class _Units:
    """Units of all texts of a batch as running sums: a stretch is one subtraction, however many texts it has."""

    __slots__ = ("_sums", "each")

    def __init__(self, counted: Sequence[int]) -> None:
        self.each = counted
        self._sums: list[int] = []

    def of(self, span: _Span) -> int:
        (first, before, _, _), (last, after, _, _) = span
        # Records of one block need no sums.
        sums = self._sums = self._sums or list(accumulate(self.each, initial=0))
        return sums[last] - sums[first] + after - before

    def weight(self, span: _Span, messages: int = 0) -> Weight:
        (_, _, results, media), (_, _, more_results, more_media) = span
        return Weight(self.of(span), more_results - results, more_media - media, messages)


def weigh_records(records: Sequence[Record], exact: CountUnits | None, cleared: ClearedText) -> list[Weighed]:
    """The weights of some records; what is no message weighs nothing. `exact` counts all texts at once."""
    return [Weighed(*own) for own in weights_of(records, exact, cleared)]


def weights_of(records: Sequence[Record], exact: CountUnits | None, cleared: ClearedText) -> list[_Facts]:
    """The same for who only takes them apart: the fields of a `Weighed` for each record."""
    walk = _Walk(cleared)
    walked = [
        walk.over(record.message.blocks) if record.message is not None and record.is_message else None
        for record in records
    ]
    marks = list(walk.left_behind)
    texts = walk.found.texts + marks
    estimates = estimate_all(texts)
    counts = exact(texts) if exact else estimates
    guessed, best = _Units(estimates), _Units(counts)
    left = dict(
        zip(marks, (Weight(units, results=1) for units in counts[len(walk.found.texts) :]), strict=True),
    )
    counted = best if exact else None
    return [
        _UNWEIGHED if own is None else _weighed(record, own, guessed, counted, left, texts)
        for record, own in zip(records, walked, strict=True)
    ]


class _Walk:
    """Goes over the blocks of a batch and gathers their texts; `left_behind` are those that clearings would leave."""

    __slots__ = ("_cleared", "_mark", "found", "left_behind")

    def __init__(self, cleared: ClearedText) -> None:
        self.found = Countable()
        self.left_behind: dict[str, None] = {}
        self._cleared, self._mark = cleared, cleared.mark

    def over(self, blocks: Sequence[Block]) -> _Walked:
        """Go on with the texts of a record."""
        texts = self.found.texts
        at = len(texts)
        if len(blocks) == 1:
            block = blocks[0]
            if type(block) is TextBlock:
                texts.append(block.text)
                return _TEXT, at, None
            if type(block) is ToolUseBlock and not block.server:
                texts += (block.name, json_text(block.input))
                self.left_behind[CLEARED_INPUT_TEXT] = None
                return _CALL, at, block.input
            if type(block) is ToolResultBlock and not block.server and len(block.parts) == 1:
                part = block.parts[0]
                if type(part) is TextBlock:
                    texts.append(part.text)
                    return _RESULT, at, self._left_by(block)
        return _MANY, at, self._many(blocks)

    def _left_by(self, block: ToolResultBlock) -> str:
        # Most results would leave the same text behind.
        text = self._cleared.result(block) if block.is_error else self._mark
        self.left_behind[text] = None
        return text

    def _many(self, blocks: Sequence[Block]) -> _Many:
        found = self.found
        start = found.mark()
        results: list[tuple[_Span, str]] = []
        calls: list[tuple[int, object]] = []
        for block in blocks:
            if isinstance(block, ToolResultBlock) and not block.server:
                before = found.mark()
                found.add((block,))
                results.append(((before, found.mark()), self._left_by(block)))
                continue
            found.add((block,))
            if isinstance(block, ToolUseBlock) and not block.server:
                # The name comes first, the input last.
                calls.append((len(found.texts) - 1, block.input))
        end = found.mark()
        if calls:
            self.left_behind[CLEARED_INPUT_TEXT] = None
        if end[-1] > start[-1]:
            self.left_behind.update(dict.fromkeys(CLEARED_MEDIA.values()))
        return (start, end), results, calls


def _weighed(
    record: Record, own: _Walked, guessed: _Units, counted: _Units | None, left: dict[str, Weight], texts: Sequence[str]
) -> _Facts:
    kind, at, more = own
    if kind == _MANY:
        return _weighed_many(record, more, guessed, counted, left, texts)
    units = guessed.each[at]
    exact = None if counted is None else counted.each[at]
    if kind == _TEXT:
        return Weight(units, 0, 0, 1), exact, (), (), (), ()
    if kind == _RESULT:
        return Weight(units, 1, 0, 1), exact, (Weight(units if exact is None else exact, 1),), (left[more],), (), ()
    input_units = guessed.each[at + 1]
    estimate = Weight(units + input_units, 0, 0, 1)
    if counted is not None and exact is not None:
        input_units = counted.each[at + 1]
        exact += input_units
    return estimate, exact, (), (), (), (_input(texts[at + 1], input_units, more, left),)


def _weighed_many(
    record: Record, own: _Many, guessed: _Units, counted: _Units | None, left: dict[str, Weight], texts: Sequence[str]
) -> _Facts:
    whole, results, calls = own
    best = counted or guessed
    estimate = guessed.weight(whole, messages=1)
    return (
        estimate,
        counted.of(whole) if counted else None,
        tuple([best.weight(span) for span, _ in results]) if results else (),
        tuple([left[text] for _, text in results]) if results else (),
        tuple(_media(record, left)) if estimate.media else (),
        tuple([_input(texts[at], best.each[at], given, left) for at, given in calls]) if calls else (),
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
