"""The API-valid view: the live context as a provider accepts it.

Every result stands in the user turn right after its call, every call has one (an open last call
aside), no id stands twice, nothing is empty, the first message is the user's, the records of one
message id are together. The view is repaired, never the archive; each repair is listed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from mcp_compact.messages.blocks import Block, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, parse_block
from mcp_compact.messages.ids import ApiMessageId, MessageUuid, ToolUseId
from mcp_compact.messages.repeats import answered_call, counting_results
from mcp_compact.messages.shapes import fitting

NO_RESULT = "[No result: the call was interrupted.]"
OPENING = "[The conversation continues from here.]"
BROKEN = "[Content that could not be read as a block]"


@dataclass(frozen=True, slots=True)
class Turn:
    """A record's content in the view. `uuid` is None for what the repair added.

    `whole` says that the content is the record's own, unchanged.
    """

    role: str
    blocks: tuple[Block, ...]
    uuid: MessageUuid | None = None
    message_id: ApiMessageId | None = None
    whole: bool = True


@dataclass(slots=True)
class _Repair:
    """One pass over the turns. Answers (assistant) are grouped by message id at their first place."""

    groups: list[list[Turn]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    owner: dict[ToolUseId, int] = field(default_factory=dict)
    """The group (position in `groups`) that makes each call."""
    used: dict[ToolUseId, tuple[int, ToolResultBlock]] = field(default_factory=dict)
    """The result taken for each call: position of its turn's group, and the block."""
    first: dict[ToolUseId, int] = field(default_factory=dict)
    """The group where each call stands first: a result before it answers nothing."""


def valid_turns(
    turns: Iterable[Turn], *, close_open_calls: bool = False, first_user: bool = True
) -> tuple[list[Turn], list[str]]:
    """The turns in a valid order with valid content, and what was repaired.

    `close_open_calls` answers an open last call too (an export; a request of our own). `first_user`: the first
    turn must be the user's, as some APIs ask for.
    """
    repair = _Repair()
    _group(repair, [stripped for turn in turns if (stripped := _strip(turn, repair.warnings)).blocks])
    _pair(repair)
    _close_server_calls(repair)
    out = _lay_out(repair, close_open_calls=close_open_calls)
    if first_user and out and out[0].role != "user":
        repair.warnings.append("the first message was not the user's: an opening message was added")
        out.insert(0, Turn("user", (_text(OPENING),), whole=False))
    return out, repair.warnings


def _strip(turn: Turn, warnings: list[str]) -> Turn:
    """Without empty text, and with what no provider accepts in this place quoted."""
    is_answer = turn.role == "assistant"
    kept: list[Block] = []
    for block in turn.blocks:
        match block:
            case TextBlock() if not block.text.strip():
                continue
            case ToolResultBlock() if block.server != is_answer:
                kind = "server result" if block.server else "result"
                warnings.append(f"{kind} {block.tool_use_id} stands in a turn of the other side: quoted")
                kept.append(_quoted(block))
            case ToolUseBlock() if not is_answer:
                warnings.append(f"call {block.id} stands in a turn of the user: quoted")
                kept.append(_quoted_call(block))
            case ThinkingBlock() if not is_answer:
                warnings.append("thinking stands in a turn of the user: left out")
            case _:
                kept.append(_as_taken(block, warnings))
    return turn if len(kept) == len(turn.blocks) and all(map(_same, kept, turn.blocks)) else _changed(turn, kept)


def _as_taken(block: Block, warnings: list[str]) -> Block:
    """The block with fields that a provider takes, else what it holds as text."""
    fits = fitting(block)
    if fits is None:
        kind = str(block.raw.get("type", ""))
        warnings.append(f"a block of the kind {kind[:40]!r} lacks what it must hold: quoted")
        return _text(f"{BROKEN}\n{json.dumps(block.raw, ensure_ascii=False, default=str)}")
    if fits is not block:
        warnings.append(f"a {block.raw.get('type')} held what no provider takes: put right")
    return fits


def _group(repair: _Repair, turns: Sequence[Turn]) -> None:
    at: dict[ApiMessageId, int] = {}
    for turn in turns:
        if turn.role == "assistant" and turn.message_id is not None and turn.message_id in at:
            repair.groups[at[turn.message_id]].append(turn)
            continue
        if turn.role == "assistant" and turn.message_id is not None:
            at[turn.message_id] = len(repair.groups)
        repair.groups.append([turn])


def _pair(repair: _Repair) -> None:
    """One call and one result an id: the result that counts and the call that it answers, else the last call."""
    places: dict[ToolUseId, list[int]] = {}
    results: list[tuple[ToolUseId, bool, tuple[int, ToolResultBlock]]] = []
    for g, group in enumerate(repair.groups):
        for block in _blocks(group):
            if isinstance(block, ToolUseBlock) and not block.server:
                repair.first.setdefault(block.id, g)
                places.setdefault(block.id, []).append(g)
            elif isinstance(block, ToolResultBlock) and _answers_a_call(repair, block, g):
                results.append((block.tool_use_id, block.is_error, (g, block)))
    repair.used = counting_results(results)
    for call, number in Counter(call for call, _, _ in results).items():
        if number > 1:
            repair.warnings.append(f"call {call} has {number} results: the last one that is no error counts")
    for call, at in places.items():
        keep = answered_call(at, repair.used[call][0]) if call in repair.used else None
        repair.owner[call] = at[-1] if keep is None else keep
        if len(at) > 1:
            repair.warnings.append(f"call {call} stands {len(at)} times: one was kept, the others quoted")
            _quote_calls(repair, call, repair.owner[call])


def _answers_a_call(repair: _Repair, block: ToolResultBlock, g: int) -> bool:
    return not block.server and repair.first.get(block.tool_use_id, g) < g


def _quote_calls(repair: _Repair, call: ToolUseId, keep: int) -> None:
    seen = False
    for g, group in enumerate(repair.groups):
        for t, turn in enumerate(group):
            blocks: list[Block] = []
            for block in turn.blocks:
                mine = isinstance(block, ToolUseBlock) and block.id == call and not block.server
                blocks.append(_quoted_call(block) if mine and (g != keep or seen) else block)
                seen = seen or (mine and g == keep)
            if any(not _same(a, b) for a, b in zip(blocks, turn.blocks, strict=True)):
                group[t] = _changed(turn, blocks)


def _close_server_calls(repair: _Repair) -> None:
    """Server calls and their results live in one answer; half a pair is quoted."""
    for group in repair.groups:
        calls = {b.id for b in _blocks(group) if isinstance(b, ToolUseBlock) and b.server}
        results = {b.tool_use_id for b in _blocks(group) if isinstance(b, ToolResultBlock) and b.server}
        if calls == results:
            continue
        for t, turn in enumerate(group):
            blocks = [_quote_half(block, calls, results, repair.warnings) for block in turn.blocks]
            if any(not _same(a, b) for a, b in zip(blocks, turn.blocks, strict=True)):
                group[t] = _changed(turn, blocks)


def _quote_half(block: Block, calls: set[ToolUseId], results: set[ToolUseId], warnings: list[str]) -> Block:
    if isinstance(block, ToolUseBlock) and block.server and block.id not in results:
        warnings.append(f"server call {block.id} has no result: quoted")
        return _quoted_call(block)
    if isinstance(block, ToolResultBlock) and block.server and block.tool_use_id not in calls:
        warnings.append(f"server result {block.tool_use_id} has no call: quoted")
        return _quoted(block)
    return block


def _lay_out(repair: _Repair, *, close_open_calls: bool) -> list[Turn]:
    out: list[Turn] = []
    last = _last_answer(repair)
    placed: set[int] = set()
    for g, group in enumerate(repair.groups):
        if group[0].role == "assistant":
            out += group
            is_open = g == last and not close_open_calls
            out += _answers(repair, g, is_open=is_open, placed=placed)
        elif g not in placed:
            rest = _rest(repair, group[0], g)
            if rest.blocks:
                out.append(rest)
    return out


def _last_answer(repair: _Repair) -> int | None:
    """The last answer if nothing but results of its own calls follows it: its unanswered calls are open."""
    for g in range(len(repair.groups) - 1, -1, -1):
        if repair.groups[g][0].role == "assistant":
            following = [block for group in repair.groups[g + 1 :] for block in _blocks(group)]
            return g if all(_answers_group(repair, block, g) for block in following) else None
    return None


def _answers_group(repair: _Repair, block: Block, g: int) -> bool:
    return isinstance(block, ToolResultBlock) and not block.server and repair.owner.get(block.tool_use_id) == g


def _answers(repair: _Repair, g: int, *, is_open: bool, placed: set[int]) -> list[Turn]:
    """The user turns that answer the calls of group `g`, results first."""
    calls = [b.id for b in _blocks(repair.groups[g]) if isinstance(b, ToolUseBlock) and not b.server]
    calls = [call for call in calls if repair.owner.get(call) == g]
    sources = sorted({repair.used[call][0] for call in calls if call in repair.used})
    out: list[Turn] = []
    for i, source in enumerate(sources):
        turn = repair.groups[source][0]
        results = [b for b in turn.blocks if _taken_by(repair, b, set(calls), source)]
        is_last = i == len(sources) - 1
        if _stays_whole(repair, turn, results, is_last=is_last, next_to=g, source=source):
            placed.add(source)
            out.append(turn)
        else:
            out.append(_changed(turn, results))
    missing = [call for call in calls if call not in repair.used]
    if missing and not is_open:
        repair.warnings += [f"call {call} was never answered: a short error result was added" for call in missing]
        out = _with_missing(out, missing)
    return out


def _with_missing(out: list[Turn], missing: Sequence[ToolUseId]) -> list[Turn]:
    """Synthetic results go before a turn whose results are followed by text: results come first."""
    added = Turn("user", tuple(_no_result(call) for call in missing), whole=False)
    at = len(out)
    if out and not isinstance(out[-1].blocks[-1], ToolResultBlock):
        at -= 1
    return [*out[:at], added, *out[at:]]


def _taken_by(repair: _Repair, block: Block, calls: set[ToolUseId], source: int) -> bool:
    if not isinstance(block, ToolResultBlock) or block.server or block.tool_use_id not in calls:
        return False
    at, taken = repair.used.get(block.tool_use_id, (None, None))
    return at == source and taken is block


def _stays_whole(
    repair: _Repair, turn: Turn, results: Sequence[Block], *, is_last: bool, next_to: int, source: int
) -> bool:
    """May the turn go out unchanged? Its results lead it, are all ours, and nothing stands between."""
    lead = all(_same(a, b) for a, b in zip(results, turn.blocks, strict=False))
    rest = turn.blocks[len(results) :]
    if not lead or any(isinstance(b, ToolResultBlock) and not b.server for b in rest):
        return False
    between = range(next_to + 1, source)
    return not rest or (is_last and all(_only_results(repair.groups[k]) for k in between))


def _only_results(group: Sequence[Turn]) -> bool:
    return all(isinstance(block, ToolResultBlock) for block in _blocks(group))


def _rest(repair: _Repair, turn: Turn, g: int) -> Turn:
    """A user turn without the results that were moved; an orphan result becomes quoted text."""
    kept: list[Block] = []
    for block in turn.blocks:
        if isinstance(block, ToolResultBlock) and not block.server:
            if not _answers_a_call(repair, block, g):
                repair.warnings.append(f"result {block.tool_use_id} has no call before it: quoted")
                kept.append(_quoted(block))
        else:
            kept.append(block)
    return turn if len(kept) == len(turn.blocks) and all(map(_same, kept, turn.blocks)) else _changed(turn, kept)


def _blocks(group: Sequence[Turn]) -> list[Block]:
    return [block for turn in group for block in turn.blocks]


def _changed(turn: Turn, blocks: Sequence[Block]) -> Turn:
    return Turn(turn.role, tuple(blocks), turn.uuid, turn.message_id, whole=False)


def _same(a: Block, b: Block) -> bool:
    return a is b


def _text(text: str) -> Block:
    return parse_block({"type": "text", "text": text})


def _no_result(call: ToolUseId) -> Block:
    return parse_block({"type": "tool_result", "tool_use_id": call, "content": NO_RESULT, "is_error": True})


def _quoted(block: ToolResultBlock) -> Block:
    text = block.text or "(no text)"
    return _text(f"[Result of a call that is not in this context]\n{text}")


def _quoted_call(block: Block) -> Block:
    name = block.name if isinstance(block, ToolUseBlock) else ""
    return _text(f"[Call of {name} without its result]")
