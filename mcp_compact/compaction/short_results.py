"""Facts that a short tool result alone holds and that the work used afterwards: a pressure, a port, a commit.

Such a result is a line or two among pages of others, so an account of the whole leaves it out first. That it was used
is what tells it from the rest: a name or figure of it stands in what the model said or asked for later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from mcp_compact.compaction.identifiers import identifiers, stands_alone
from mcp_compact.messages.blocks import TextBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.message import Record
from mcp_compact.messages.values import value

SHORT_CHARS = 300
CALL_CHARS = 80
HEADING = "Short results that were used"


@value
class ShortResult:
    """One result, the call that it answers, and the names and figures of it that were used."""

    call: str
    text: str
    used: frozenset[str]

    @property
    def line(self) -> str:
        """As it is told: the result quoted, as everything is that a tool said."""
        return f"- `{self.call}`\n  > {self.text}" if self.call else f"- > {self.text}"


def used_short_results(records: Sequence[Record], known: str, limit_chars: int) -> tuple[ShortResult, ...]:
    """The results, old to new, of which `known` does not hold what was used; of too many the newest that fit."""
    taken: list[ShortResult] = []
    for found in _used(records):
        if all(stands_alone(known, name) for name in found.used):
            continue
        if len(found.line) + 1 <= limit_chars:
            taken.append(found)
            limit_chars -= len(found.line) + 1
    return tuple(reversed(taken))


def not_told(results: Iterable[ShortResult], told: str) -> tuple[ShortResult, ...]:
    """Those of which a text does not hold what was used."""
    return tuple(found for found in results if not all(stands_alone(told, name) for name in found.used))


def _used(records: Sequence[Record]) -> Iterator[ShortResult]:
    """From the newest result on. `later`: every name in what the model said or asked for behind it."""
    calls = {call.id: call for record in records for call in record.calls}
    later: set[str] = set()
    done: set[str] = set()
    for record in reversed(records):
        for block in reversed(record.blocks):
            match block:
                case TextBlock(text=text) if record.message is not None and record.message.role == "assistant":
                    later.update(identifiers(text))
                case ToolUseBlock():
                    later.update(name for text in _texts(block.input) for name in identifiers(text))
                case ToolResultBlock() if later and not block.is_error:
                    found = _short(block, calls, later)
                    if found is not None and found.text not in done:
                        done.add(found.text)
                        yield found
                case _:
                    continue


def _short(result: ToolResultBlock, calls: dict[ToolUseId, ToolUseBlock], later: Collection[str]) -> ShortResult | None:
    text = " ".join(result.text.split())
    if not text or len(text) > SHORT_CHARS:
        return None
    call = calls.get(result.tool_use_id)
    asked = [part for part in _texts(call.input) if part.strip()] if call is not None else []
    own = {name for name in identifiers(text) if name in later and not any(name in part for part in asked)}
    words = " ".join(" ".join([call.name, *asked]).split()) if call is not None else ""
    return ShortResult(words[:CALL_CHARS], text, frozenset(own)) if own else None


def _texts(value: object) -> Iterator[str]:
    """Every text in a call's input."""
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)
        case _:
            return
