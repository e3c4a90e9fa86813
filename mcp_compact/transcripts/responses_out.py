"""Writes live turns as items of OpenAI's Responses API; Codex keeps the same items in its session files.

What came as such an item and stands unchanged goes out as it came, with the reasoning and the searches that belong to
it. The API wants an item that reasoning led to together with that reasoning: where a stretch of the model's items is
not whole any more, its reasoning stays in the archive, and its items lose their ids, which is what the API looks at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias

from mcp_compact.messages.blocks import (
    OBJECT,
    Block,
    MediaBlock,
    OtherBlock,
    Raw,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from mcp_compact.messages.codec import clean
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import Turn
from mcp_compact.transcripts.beside import NOTHING, Beside, is_system, item_of
from mcp_compact.transcripts.cleared_out import naming
from mcp_compact.transcripts.codex_items import message_of

Json: TypeAlias = dict[str, Any]
MODEL_ITEMS = frozenset(
    ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "computer_call", "apply_patch_call",
     "mcp_call", "file_search_call", "code_interpreter_call", "web_search_call", "image_generation_call", "reasoning",
     "tool_search_call")
)  # fmt: skip
"""Items that a model makes, beside its messages."""
ANSWERS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
"""Calls whose output is a text that may be changed, and the kind of it."""
FIXED_ANSWERS = {
    "local_shell_call": "local_shell_call_output", "shell_call": "shell_call_output",
    "computer_call": "computer_call_output", "apply_patch_call": "apply_patch_call_output",
}  # fmt: skip
"""Calls whose output has a form of its own: both go out as they came, or neither."""
CHANGED = ""
"""In the place of an output's kind: it does not go out as it came."""
ANSWERED = frozenset(("mcp_call", "file_search_call", "code_interpreter_call"))
"""Calls that hold what they gave."""
ROLES = ("user", "assistant", "system", "developer")
PARTS = frozenset(("input_text", "input_image", "input_file", "input_audio", "output_text", "refusal"))
ERROR = "[error]"
CODEX_OWN = "internal_"
"""How the names of fields begin that Codex adds to items."""
ENVELOPE = frozenset(("uuid", "parentUuid", "timestamp"))
"""What a caller may have put beside an item for us."""
FOREIGN = ENVELOPE | frozenset(
    ("ts", "modelInfo", "metrics", "metadata", "agent", "message_type", "thought",
     "action", "tool_call_ids", "is_demo", "tags", "extra", "state")
)  # fmt: skip
"""Fields that session files keep beside a message, and that no API takes. Others may be newer than this."""


def to_items(
    turns: Iterable[Turn],
    records: Mapping[MessageUuid, Record] | None = None,
    beside: Beside | None = None,
    *,
    for_codex: bool = False,
) -> list[Json]:
    """The items of valid turns. `for_codex`: in the forms that Codex's own items have, which are fewer.

    Where nothing is known of what stands `beside` them, reasoning may be missing, and items go without their ids.
    """
    known, listed = records or {}, list(turns)
    is_known, beside = beside is not None, beside or NOTHING
    writer = _Writer(known, beside, _verbatim_calls(listed, known), for_codex=for_codex, keeps_ids=is_known)
    out = [item for record in beside.leading for item in _system(record)]
    for stretch in _stretches(listed):
        out += writer.stretch(stretch)
    for record in beside.closing:
        out += _system(record) if is_system(record) else [_of_api(dict(item_of(record.raw)))]
    return [clean(item) for item in out]


def is_item(raw: Raw) -> bool:
    """May the API be sent it as it stands?"""
    kind = raw.get("type")
    if kind is None or kind == "message":
        return _is_message(raw)
    return isinstance(kind, str) and (kind in MODEL_ITEMS or kind in (*ANSWERS.values(), *FIXED_ANSWERS.values()))


def _is_message(raw: Raw) -> bool:
    content = raw.get("content")
    if raw.get("role") not in ROLES or "message" in raw or "tool_calls" in raw:
        return False
    if isinstance(content, str):
        return True
    return (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(part, OBJECT) and str(part.get("type")) in PARTS for part in content)
    )


def _stretches(turns: Sequence[Turn]) -> Iterator[list[Turn]]:
    """The model's turns that follow each other, together; each other turn alone."""
    held: list[Turn] = []
    for turn in turns:
        if turn.role == "assistant":
            held.append(turn)
            continue
        if held:
            yield held
        held = []
        yield [turn]
    if held:
        yield held


def _verbatim_calls(turns: Sequence[Turn], known: Mapping[MessageUuid, Record]) -> dict[ToolUseId, str]:
    """The calls that go out as they came, and their kinds."""
    found: dict[ToolUseId, str] = {}
    answers: dict[ToolUseId, set[str]] = {}
    for turn in turns:
        item = _own(turn, known)
        kind = str(item.get("type")) if item is not None else CHANGED
        for block in turn.blocks:
            if isinstance(block, ToolResultBlock) and not block.server:
                answers.setdefault(block.tool_use_id, set()).add(kind)
            elif isinstance(block, ToolUseBlock) and not block.server and item is not None:
                found[block.id] = kind
    return {call: kind for call, kind in found.items() if _may_stay(kind, answers.get(call, set()))}


def _may_stay(kind: str, answers: AbstractSet[str]) -> bool:
    """May a call of this kind go out as it came, with outputs of these kinds?"""
    if kind in FIXED_ANSWERS:
        return answers <= {FIXED_ANSWERS[kind]}
    return kind in ANSWERS or CHANGED not in answers


def _own(turn: Turn, known: Mapping[MessageUuid, Record]) -> Json | None:
    """The item that an unchanged turn came from."""
    record = known.get(turn.uuid) if turn.whole and turn.uuid is not None else None
    if record is None:
        return None
    item = item_of(record.raw)
    if not is_item(item) or (_is_message(item) and signs(_said(item)) != signs(record.blocks)):
        return None
    left_out = FOREIGN if _is_message(item) else ENVELOPE
    left_out |= set() if "type" in item else {"id"}
    return {key: value for key, value in item.items() if key not in left_out}


def _said(item: Raw) -> Sequence[Block]:
    message = message_of(item)
    return message.blocks if message is not None else ()


def signs(blocks: Iterable[Block]) -> list[tuple[str, str]]:
    """What tells blocks apart that were read in two ways: calls and results by their ids, texts by what they say."""
    found: list[tuple[str, str]] = []
    for block in blocks:
        match block:
            case ToolUseBlock():
                found.append(("call", block.id))
            case ToolResultBlock():
                found.append(("result", block.tool_use_id))
            case TextBlock() if block.text:
                found.append(("text", block.text))
            case MediaBlock():
                found.append(("medium", block.kind))
            case _:
                pass
    return found


def _of_api(item: Json) -> Json:
    """The item without what Codex notes in it for itself."""
    return {key: value for key, value in item.items() if not key.startswith(CODEX_OWN)}


@dataclass(slots=True)
class _Writer:
    known: Mapping[MessageUuid, Record]
    beside: Beside
    calls: Mapping[ToolUseId, str]
    for_codex: bool = False
    keeps_ids: bool = True

    def stretch(self, turns: Sequence[Turn]) -> Iterator[Json]:
        """The items of the model's turns that follow each other, or of one turn of the user."""
        owned = [self._verbatim(turn) for turn in turns]
        beside = [item_of(record.raw) for turn in turns for record in self._beside(turn)]
        is_whole = (
            self.keeps_ids
            and all(item is not None for item in owned)
            and turns[0].uuid not in self.beside.parted
            # Codex keeps reasoning without its id, and the API wants one.
            and (self.for_codex or all("id" in item for item in beside if item.get("type") == "reasoning"))
        )
        for turn, item in zip(turns, owned, strict=True):
            yield from self._before(turn, is_whole=is_whole)
            if item is None:
                yield from self.written(turn)
            elif turn.role != "assistant" or item.get("type") in ANSWERED:
                yield item if self.for_codex else _of_api(item)
            else:
                yield self._told(item if is_whole else {key: value for key, value in item.items() if key != "id"})

    def _beside(self, turn: Turn) -> tuple[Record, ...]:
        return self.beside.before.get(turn.uuid, ()) if turn.uuid is not None else ()

    def _before(self, turn: Turn, *, is_whole: bool) -> Iterator[Json]:
        for record in self._beside(turn):
            if is_system(record):
                yield from _system(record)
            elif is_whole or item_of(record.raw).get("type") != "reasoning":
                yield _of_api(dict(item_of(record.raw)))

    def _verbatim(self, turn: Turn) -> Json | None:
        item = _own(turn, self.known)
        kind = item.get("type") if item is not None else None
        for block in turn.blocks:
            if isinstance(block, ToolUseBlock) and not block.server and block.id not in self.calls:
                return None
            if isinstance(block, ToolResultBlock) and not block.server:
                asked = self.calls.get(block.tool_use_id, "function_call")
                if kind != (ANSWERS | FIXED_ANSWERS).get(asked):
                    return None
        return item

    def _told(self, item: Json) -> Json:
        """An answer whose parts the API would take for an item of its own, which has an id: its text alone."""
        parts = item.get("content")
        if self.for_codex:
            return item
        if not isinstance(parts, list) or _is_models_own(item, parts):
            return _of_api(item)
        texts = [part.get("text", part.get("refusal")) for part in parts]
        return {"type": "message", "role": "assistant", "content": "\n\n".join(map(str, texts))}

    def written(self, turn: Turn) -> Iterator[Json]:
        """Runs of text and media as messages, calls and results as items of their own, in order."""
        held: list[Json] = []
        for block in turn.blocks:
            match block:
                case ToolUseBlock() if not block.server:
                    item: Json | None = _call(block)
                case ToolResultBlock() if not block.server:
                    item = self._result(block)
                case _:
                    held += self._parts(block, turn.role)
                    continue
            yield from self._message(turn.role, held)
            held = []
            if item is not None:
                yield item
        yield from self._message(turn.role, held)

    def _message(self, role: str, parts: list[Json]) -> Iterator[Json]:
        if not parts:
            return
        content: Any = parts
        if role == "assistant" and not self.for_codex:
            # In parts it would be an item of the model's own, which has an id and a state.
            content = "\n\n".join(part["text"] for part in parts)
        yield {"type": "message", "role": role, "content": content}

    def _result(self, block: ToolResultBlock) -> Json | None:
        asked = self.calls.get(block.tool_use_id, "function_call")
        if asked in ANSWERED:
            return None
        return {"type": ANSWERS[asked], "call_id": block.tool_use_id, "output": self._output(block)}

    def _output(self, block: ToolResultBlock) -> str | list[Json]:
        media = [item for part in block.parts if isinstance(part, MediaBlock) and (item := self._media(part))]
        shown = [part for part in block.parts if not (isinstance(part, MediaBlock) and self._media(part))]
        texts = [*([ERROR] if block.is_error else []), *(text for part in shown if (text := text_of(part)))]
        said = naming("\n".join(texts), block.tool_use_id)
        if self.for_codex or not media:
            marks = [text_of(part) for part in block.parts if part not in shown]
            return "\n".join([*([said] if texts else []), *marks])
        return [*([{"type": "input_text", "text": said}] if said else []), *media]

    def _parts(self, block: Block, role: str) -> list[Json]:
        if isinstance(block, MediaBlock) and role == "user" and (item := self._media(block)):
            return [item]
        text = text_of(block)
        return [{"type": "output_text" if role == "assistant" else "input_text", "text": text}] if text else []

    def _media(self, block: MediaBlock) -> Json | None:
        url = url_of(block)
        if url and block.kind == "image":
            return {"type": "input_image", "image_url": url, **({} if self.for_codex else {"detail": "auto"})}
        if block.data and not self.for_codex:
            return {"type": "input_file", "filename": "document.pdf", "file_data": url}
        return None


def _is_models_own(item: Json, parts: list[Any]) -> bool:
    """Is it an answer as the API gave it? Codex keeps less of one."""
    return "id" in item and "status" in item and all("annotations" in part or "refusal" in part for part in parts)


def _system(record: Record) -> Iterator[Json]:
    item = item_of(record.raw)
    if is_item(item) and item.get("role") in ("system", "developer"):
        yield {key: value for key, value in item.items() if key not in FOREIGN}
    else:
        yield {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": record.text}]}


def _call(block: ToolUseBlock) -> Json:
    return {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments(block)}


def arguments(block: ToolUseBlock) -> str:
    """What a call is given as OpenAI's APIs take it: JSON, or the text that the model wrote where it was none."""
    value = block.input
    if isinstance(value, OBJECT) and set(value) == {"arguments"} and isinstance(value["arguments"], str):
        return value["arguments"]
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def text_of(block: Block) -> str:
    """A block's text; a mark for media; what the API has no form for as its JSON; empty for thinking."""
    match block:
        case TextBlock():
            return block.text
        case MediaBlock():
            return f"[{block.kind}]"
        case OtherBlock("compaction", {"content": str(summary)}):
            return summary
        case ToolUseBlock() | ToolResultBlock() | OtherBlock():
            return json.dumps(block.raw, ensure_ascii=False, default=str)
        case _:
            return ""


def url_of(block: MediaBlock) -> str:
    """The address of a medium, or its data as one; empty where there is neither."""
    if block.data:
        media_type = block.media_type or ("image/png" if block.kind == "image" else "application/pdf")
        return f"data:{media_type};base64,{block.data}"
    source = block.raw.get("source")
    url = source.get("url") if isinstance(source, OBJECT) else None
    return url if isinstance(url, str) else ""
