"""Writes live turns as `contents` of the Gemini API.

What came as such a content and stands unchanged goes out as it came, with its thoughts and their signatures. The API
wants the answers to a turn's calls in one content of their own, right after it and as many as there were calls, and
the model's parts between two of the user's contents in one: so neighbours are put together where that asks for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from mcp_compact.transcripts.cleared_out import naming
from mcp_compact.transcripts.responses_out import text_of, url_of

Json: TypeAlias = dict[str, Any]
USER, MODEL = "user", "model"
ROLES = (USER, MODEL, "function")
NO_SIGNATURE = "skip_thought_signature_validator"
"""What the API takes in place of the signature of a call that its model did not make (Gemini's documentation)."""
OF_RESULT = "[From the result of call {id}]"
MADE_UP = re.compile(r"(call|result)-\d+-\d+")
"""Ids that reading gave to calls without one."""
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_.:-]")
NAME_CHARS = 64
UNNAMED = "function"


def to_contents(turns: Iterable[Turn], records: Mapping[MessageUuid, Record] | None = None) -> list[Json]:
    """The contents of valid turns."""
    writer = _Writer(records or {})
    for group in _groups(turns):
        if group[0].role == "assistant":
            writer.answer(group)
        else:
            writer.asked(group)
    return [clean(content) for content in writer.out]


def _groups(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    """Neighbours of one role."""
    held: list[Turn] = []
    for turn in turns:
        if held and (turn.role == "assistant") is not (held[0].role == "assistant"):
            yield held
            held = []
        held.append(turn)
    if held:
        yield held


def content_of(turn: Turn, records: Mapping[MessageUuid, Record]) -> Json | None:
    """The content that an unchanged turn came from."""
    record = records.get(turn.uuid) if turn.whole and turn.uuid is not None else None
    if record is None or not is_content(record.raw):
        return None
    return {key: record.raw[key] for key in ("role", "parts") if key in record.raw}


def is_content(raw: Raw) -> bool:
    """Is it a content of the API?"""
    parts = raw.get("parts")
    return (
        raw.get("role", USER) in ROLES
        and isinstance(parts, list)
        and bool(parts)
        # Parts of other formats tell their kind.
        and all(isinstance(part, OBJECT) and "type" not in part for part in parts)
    )


@dataclass(slots=True)
class _Writer:
    records: Mapping[MessageUuid, Record]
    out: list[Json] = field(default_factory=list)
    names: dict[ToolUseId, str] = field(default_factory=dict)
    made: list[Json] = field(default_factory=list)
    """The calls of the content at hand that were no parts of the API's before."""

    def answer(self, turns: Sequence[Turn]) -> None:
        """The model's turns between two of the user's: one content."""
        for block in (block for turn in turns for block in turn.blocks):
            if isinstance(block, ToolUseBlock) and not block.server:
                self.names[block.id] = api_name(block.name)
        owned = [content_of(turn, self.records) for turn in turns]
        if len(turns) == 1 and owned[0] is not None:
            self.out.append(owned[0])
            return
        parts: list[Any] = []
        self.made.clear()
        for turn, own in zip(turns, owned, strict=True):
            parts += own["parts"] if own is not None else self._model_parts(turn)
        if parts:
            self.out.append({"role": MODEL, "parts": self._signed(parts)})

    def asked(self, turns: Sequence[Turn]) -> None:
        """The user's turns between two of the model's: first all results in one content, then each turn's rest."""
        answers = [turn for turn in turns if any(map(_is_result, turn.blocks))]
        if len(answers) == 1 and turns[0] is answers[0] and all(map(_is_result, answers[0].blocks)):
            own = content_of(answers[0], self.records)
            if own is not None and all(_named(part, "functionResponse", "function_response") for part in own["parts"]):
                self.out.append(own)
                turns, answers = turns[1:], []
        results = [block for turn in answers for block in turn.blocks if isinstance(block, ToolResultBlock)]
        results = [block for block in results if not block.server]
        if results:
            self.out.append({"role": USER, "parts": [self._response(block) for block in results]})
        shown = [part for block in results for part in _media_of(block)]
        if shown:
            self.out.append({"role": USER, "parts": shown})
        answering = {id(turn) for turn in answers}
        for turn in turns:
            own = content_of(turn, self.records) if id(turn) not in answering else None
            parts = own["parts"] if own is not None else [p for b in turn.blocks if (p := _part(b)) is not None]
            if parts:
                self.out.append(own or {"role": USER, "parts": parts})

    def _model_parts(self, turn: Turn) -> list[Json]:
        """A changed turn's parts; a call that stands unchanged is the part that it came from."""
        own = self._own_calls(turn)
        parts: list[Json] = []
        for block in turn.blocks:
            if isinstance(block, ToolUseBlock) and not block.server:
                parts.append(own.get(block.id) or self._call(block))
            elif (part := _part(block)) is not None:
                parts.append(part)
        return parts

    def _call(self, block: ToolUseBlock) -> Json:
        part = _call(block)
        self.made.append(part)
        return part

    def _signed(self, parts: Sequence[Json]) -> list[Json]:
        """The parts, the first call with a signature where it is ours: newer models refuse one that has none."""
        first = next((at for at, part in enumerate(parts) if _named(part, "functionCall", "function_call")), None)
        if first is None or not any(parts[first] is part for part in self.made):
            return list(parts)
        return [*parts[:first], {**parts[first], "thoughtSignature": NO_SIGNATURE}, *parts[first + 1 :]]

    def _own_calls(self, turn: Turn) -> dict[ToolUseId, Json]:
        record = self.records.get(turn.uuid) if turn.uuid is not None else None
        if record is None or not is_content(record.raw):
            return {}
        asked = [part for part in record.raw["parts"] if _named(part, "functionCall", "function_call")]
        before = [block for block in record.blocks if isinstance(block, ToolUseBlock)]
        unchanged = {id(block) for block in turn.blocks}
        pairs = zip(before, asked, strict=False)
        return {block.id: dict(part) for block, part in pairs if id(block) in unchanged}

    def _response(self, block: ToolResultBlock) -> Json:
        texts = [text for part in block.parts if (text := text_of(part))]
        response = {"error" if block.is_error else "output": naming("\n".join(texts), block.tool_use_id)}
        name = self.names.get(block.tool_use_id, UNNAMED)
        return {"functionResponse": {**_id(block.tool_use_id), "name": name, "response": response}}


def _is_result(block: Block) -> bool:
    return isinstance(block, ToolResultBlock) and not block.server


def _named(part: Raw, *names: str) -> Raw:
    found = (part[name] for name in names if isinstance(part.get(name), OBJECT))
    return next(found, {})


def _call(block: ToolUseBlock) -> Json:
    given = block.input if isinstance(block.input, OBJECT) else {} if block.input is None else {"input": block.input}
    return {"functionCall": {**_id(block.id), "name": api_name(block.name), "args": dict(given)}}


def _id(call: ToolUseId) -> Json:
    return {} if MADE_UP.fullmatch(call) else {"id": call}


def api_name(name: str) -> str:
    """A name that the API takes: it begins with a letter or `_`, and is no longer than 64 characters."""
    told = _NOT_IN_NAME.sub("_", name)[:NAME_CHARS] or UNNAMED
    return told if told[0].isalpha() or told[0] == "_" else f"_{told}"[:NAME_CHARS]


def _part(block: Block) -> Json | None:
    """A block as a part; None where there is nothing to send, and for results, which have a place of their own."""
    match block:
        case TextBlock():
            return {"text": block.text} if block.text else None
        case MediaBlock():
            return _medium(block)
        case ToolResultBlock() if not block.server:
            return None
        case ToolUseBlock() | ToolResultBlock() | OtherBlock():
            return {"text": text_of(block)}
        case _:
            return None


def _media_of(block: ToolResultBlock) -> list[Json]:
    """The media of a result, which follow the content that holds its text."""
    media = [_medium(part) for part in block.parts if isinstance(part, MediaBlock) and part.data]
    return [{"text": OF_RESULT.format(id=block.tool_use_id)}, *media] if media else []


def _medium(block: MediaBlock) -> Json:
    if block.data:
        media_type = block.media_type or ("image/png" if block.kind == "image" else "application/pdf")
        return {"inlineData": {"mimeType": media_type, "data": block.data}}
    url = url_of(block)
    return {"text": f"[{block.kind} at {url}]" if url else f"[{block.kind}]"}
