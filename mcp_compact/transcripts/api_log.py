"""Reads logs of requests to the Anthropic Messages API and what they were answered, one pair a line.

A request says again what the one before said, and goes on: only what is new becomes records. A request that says
something else begins a branch of its own, and the last one counts. A compaction of the provider (a block of this
kind in an answer) stands for all that came before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.messages.codec import body_hash, canonical, decode_message
from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import object_of, text_of
from mcp_compact.transcripts.pieces import as_text, each_object, made
from mcp_compact.transcripts.translated import TranslatedReader

COMPACTION = "compaction"
_SIGNS = ("id", "tool_use_id", "text", "thinking", "data", "content", "source")
"""What tells blocks of one kind apart; other fields a client may leave out when it sends them again."""


class ApiLogReader(TranslatedReader):
    """Turns pairs of a request and an answer into records."""

    def begin(self, own: Mapping[str, Any]) -> None:
        """A request is compared with what was said before."""
        self._said = [_Said(uuid, sign=bytes.fromhex(sign)) for uuid, sign in own.get("said", ())]
        """What the conversation holds so far."""
        self._number: int = own.get("number", 0)

    def memory(self) -> dict[str, Any]:
        """What the conversation holds, by the signs of its messages."""
        return {"said": [[said.uuid, said.sign.hex()] for said in self._said], "number": self._number}

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:  # noqa: ARG002 - see below
        """The request without its messages, the messages that are new, and the answer.

        The line's own bytes are not kept: they would hold the whole conversation once for each request.
        """
        self._number += 1
        request, response = object_of(raw, "request"), raw.get("response")
        messages = list(each_object(request.get("messages")))
        beside = {key: value for key, value in request.items() if key != "messages"}
        around = {key: value for key, value in raw.items() if key not in ("request", "response")}
        self.session.model = text_of(request, "model") or self.session.model
        told = _words(request.get("system"))
        system = made("system", told) if told and self._number == 1 else None
        call = f"call-{self._number}"
        same = self._same(messages)
        parent = self._said[same - 1].uuid if same else None
        yield Entry(
            "api_call", {**around, "request": beside}, system, call, parent=parent, is_root=not same,
            subtype="system_prompt" if system else "",
        )  # fmt: skip
        del self._said[same:]
        for place, message in enumerate(messages[same:], same + 1):
            yield from self._message(message, f"{call}:{place}")
        if isinstance(response, str):
            yield Entry("api_stream", {"response": response}, uuid=f"{call}:stream")
        answer = streamed(response) if isinstance(response, str) else response
        if isinstance(answer, Mapping) and answer.get("role") == "assistant":
            yield from self._message(answer, f"{call}:answer")
        elif response is not None and not isinstance(response, str):
            yield Entry("api_answer", {"response": response}, uuid=f"{call}:answer")

    def _same(self, messages: list[Mapping[str, Any]]) -> int:
        """How many of the first messages were said before."""
        for place, (message, said) in enumerate(zip(messages, self._said, strict=False)):
            # Nearly always it is sent as it was the last time: to compare costs less than to sign.
            if said.raw != message:
                if said.sign != _sign(message):
                    return place
                said.raw = message
        return min(len(messages), len(self._said))

    def _message(self, raw: Mapping[str, Any], uuid: str) -> Iterator[Entry]:
        role, content = text_of(raw, "role") or "", raw.get("content")
        blocks = list(each_object(content))
        summary = next((text for b in blocks if b.get("type") == COMPACTION and (text := text_of(b, "content"))), None)
        if summary is not None:
            yield boundary({"of": uuid}, uuid=f"{uuid}:boundary", trigger="auto")
            yield Entry("summary", {"summary": summary}, made("user", summary), f"{uuid}:summary", is_summary=True)
        kept = [block for block in blocks if block.get("type") != COMPACTION]
        shown = content if len(kept) == len(blocks) else kept
        message = decode_message({**raw, "content": shown}, role)
        known = role in ("user", "assistant", "system")
        yield Entry(role, raw, message if known else None, uuid, unknown=() if known else (role or "(none)",))
        self._said.append(_Said(uuid, raw))


class _Said:
    """A message of the conversation: its last record, and what tells it again."""

    def __init__(self, uuid: str, raw: Mapping[str, Any] | None = None, sign: bytes = b"") -> None:
        self.uuid = uuid
        self.raw = raw
        self._sign = sign

    @property
    def sign(self) -> bytes:
        """What it says, whichever way it is written."""
        if not self._sign and self.raw is not None:
            self._sign = _sign(self.raw)
        return self._sign


def _sign(message: Mapping[str, Any]) -> bytes:
    """What a message says, in sixteen bytes."""
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    signs = [[block.get("type"), *(block.get(key) for key in _SIGNS)] for block in each_object(content)]
    return body_hash(canonical([message.get("role"), signs]))


def _words(system: object) -> str:
    if isinstance(system, str):
        return system
    return "\n".join(as_text(block.get("text")) for block in each_object(system))


def streamed(events: str) -> dict[str, Any] | None:
    """The answer that a stream of server-sent events told; None where it tells none."""
    answer: dict[str, Any] | None = None
    blocks: dict[object, dict[str, Any]] = {}
    for line in events.splitlines():
        event = _event(line)
        kind = event.get("type")
        if kind == "message_start":
            answer = dict(object_of(event, "message"))
        elif kind == "content_block_start":
            blocks[event.get("index")] = dict(object_of(event, "content_block"))
        elif kind == "content_block_delta" and event.get("index") in blocks:
            _grow(blocks[event.get("index")], object_of(event, "delta"))
        elif kind == "message_delta" and answer is not None:
            usage = {**object_of(answer, "usage"), **object_of(event, "usage")}
            answer = {**answer, **object_of(event, "delta"), "usage": usage}
    if answer is not None:
        answer["content"] = [_whole(block) for block in blocks.values()]
    return answer


def _event(line: str) -> Mapping[str, Any]:
    if not line.startswith("data:"):
        return {}
    try:
        value = json.loads(line[len("data:") :])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _grow(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for key in ("text", "thinking", "signature", "partial_json", "content"):
        if isinstance(delta.get(key), str):
            block[key] = as_text(block.get(key)) + delta[key]
    if isinstance(delta.get("citation"), dict):
        block["citations"] = [*(block.get("citations") or ()), delta["citation"]]


def _whole(block: dict[str, Any]) -> dict[str, Any]:
    """A block of a stream with its input read."""
    written = block.pop("partial_json", None)
    if written is None:
        return block
    try:
        return {**block, "input": json.loads(written)}
    except (ValueError, RecursionError):
        return {**block, "input": {"arguments": written}}
