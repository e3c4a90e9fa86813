"""What the Anthropic Messages API refuses in a list of messages.

The API puts neighbours of one role together before it looks at calls and results, and so does this. Limits of images
are those of the API's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from mcp_compact.messages.blocks import OBJECT, Raw
from mcp_compact.messages.image_header import image_size
from mcp_compact.transcripts.media_out import IMAGE_CHARS, MANY_IMAGES, SIDE_PIXELS, SIDE_PIXELS_OF_MANY
from mcp_compact.transcripts.validity.anthropic_pairs import check_pairs
from mcp_compact.transcripts.validity.rules import (
    DEPENDS,
    LEFT,
    OPEN,
    STRUCTURE,
    Finding,
    Log,
    Rule,
    blank,
    by_id,
    shown,
)

RULES = (
    Rule("anthropic/not-empty", "there must be a message", LEFT),
    Rule("anthropic/message", "a message is an object with a role and content", "left out"),
    Rule("anthropic/role", "a role is user or assistant", "the message was made the user's, and says whose it was"),
    Rule("anthropic/system", "older models want instructions in the parameter `system`", LEFT, DEPENDS),
    Rule("anthropic/first-user", "the first message must be the user's", "an opening message was added before it"),
    Rule("anthropic/content", "content is text or a list of blocks", "its JSON stands in its place as text"),
    Rule("anthropic/empty", "only a last answer may be empty", "left out"),
    Rule("anthropic/blank-text", "text must hold more than white space", "left out"),
    Rule("anthropic/block", "a block is an object with a type, and holds what its type needs", "quoted as text"),
    Rule("anthropic/kind", "the type of a block is not known", LEFT, DEPENDS),
    Rule("anthropic/place", "calls and thinking belong to answers, results and media to the user", "quoted as text"),
    Rule("anthropic/call-id", "an id holds letters, digits, `_` and `-` only", "renamed, its result too"),
    Rule("anthropic/call-name", "a tool's name holds letters, digits, `_` and `-`, 128 at most", "renamed"),
    Rule("anthropic/call-input", "the input of a call is an object", "put into an object under `input`"),
    Rule("anthropic/error-text", "a result that is an error must say something", "a line was put in"),
    Rule("anthropic/unsigned", "thinking needs the signature that the model gave it", "left out"),
    Rule("anthropic/thinking-last", "an answer must not end with thinking", "left out"),
    Rule("anthropic/final-space", "a last answer must not end with white space", "cut off"),
    Rule("anthropic/prefill", "newer models refuse a list that ends with an answer", LEFT, DEPENDS),
    Rule("anthropic/media-type", "an image is JPEG, PNG, GIF or WebP", "a line stands in its place"),
    Rule("anthropic/media-bytes", "an image's media type must be that of its bytes", "the type of the bytes was set"),
    Rule("anthropic/image-size", "an image may have 5 MB of base64", "a line stands in its place"),
    Rule("anthropic/image-sides", "the sides of images are limited", "a line stands in its place"),
    Rule("anthropic/media-count", "some models take 100 images and document pages", LEFT, DEPENDS),
    Rule("anthropic/cache-marks", "four blocks may have cache_control", "the oldest marks were taken off"),
    Rule("anthropic/id-twice", "an id names one call", STRUCTURE),
    Rule("anthropic/unanswered", "each call needs its result in the very next turn", STRUCTURE),
    Rule("anthropic/orphan", "each result needs its call in the turn before", STRUCTURE),
    Rule("anthropic/result-twice", "a call has one result", STRUCTURE),
    Rule("anthropic/results-first", "results come first in their turn", STRUCTURE),
    Rule("anthropic/server-pair", "a server's call and its result stand in one answer", STRUCTURE),
    Rule("anthropic/open", "a call of the last answer waits for its result", LEFT, OPEN),
)  # fmt: skip
_RULES = by_id(RULES)
CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
RESULT = "tool_result"
KINDS = frozenset(
    (*CALLS, "text", "image", "document", "search_result", "thinking", "redacted_thinking", RESULT, "container_upload",
     "compaction", "fallback", "tool_reference", "mcp_tool_listing", "tool_addition", "tool_removal")
)  # fmt: skip
"""Types of blocks beside results of servers, whose types end with `_tool_result`."""
OF_ANSWERS = frozenset((*CALLS, "thinking", "redacted_thinking", "compaction", "fallback"))
OF_USERS = frozenset((RESULT, "image", "document", "search_result"))
IMAGE_TYPES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
HEADS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How the base64 of each kind of image begins."""
HEAD_CHARS = max(map(len, HEADS))
MEDIA_COUNT = 100
CACHE_MARKS = 4
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def check(messages: Sequence[Any]) -> list[Finding]:
    """Every rule that the list breaks, in the order of the messages."""
    log = Log("messages", _RULES)
    if not messages:
        log.add("not-empty", -1)
    look = _Look(log, len(messages))
    for index, message in enumerate(messages):
        look.message(index, message)
    look.whole(messages)
    check_pairs(messages, log)
    return sorted(log.found, key=lambda finding: finding.index)


class _Look:
    """One pass over the messages."""

    def __init__(self, log: Log, count: int) -> None:
        self._log, self._count = log, count
        self._images: list[tuple[int, tuple[int, ...], Raw]] = []
        self._media = 0
        self._marks: list[tuple[int, int]] = []

    def message(self, index: int, message: object) -> None:
        log = self._log
        if not isinstance(message, OBJECT) or "content" not in message:
            log.add("message", index)
            return
        role, content = message.get("role"), message["content"]
        if role not in ("user", "assistant"):
            log.add("system" if role == "system" else "role", index, detail=shown(role))
        is_last_answer = role == "assistant" and index == self._count - 1
        if isinstance(content, str):
            if blank(content) and not (is_last_answer and not content):
                log.add("blank-text" if content else "empty", index)
        elif not isinstance(content, list):
            log.add("content", index, detail=type(content).__name__)
        elif not content and not is_last_answer:
            log.add("empty", index)
        else:
            for at, block in enumerate(content):
                self._block(index, at, block, role)
            self._end(index, content, role)

    def _block(self, index: int, at: int, block: object, role: object) -> None:
        log = self._log
        kind = block.get("type") if isinstance(block, OBJECT) else None
        if not isinstance(block, OBJECT) or not isinstance(kind, str):
            log.add("block", index, at)
            return
        if block.get("cache_control"):
            self._marks.append((index, at))
        if kind == "text":
            text = block.get("text")
            if not isinstance(text, str):
                log.add("block", index, at, detail="no text")
            elif blank(text):
                log.add("blank-text", index, at)
        elif kind in CALLS:
            self._call(index, at, block)
        elif kind == RESULT:
            self._result(index, at, block)
        else:
            self._other(index, (at,), block, kind)
        is_of_answers = kind in OF_ANSWERS or (kind.endswith("_tool_result") and kind != RESULT)
        is_odd = (is_of_answers and role == "user") or (kind in OF_USERS and role == "assistant")
        if is_odd or (role == "system" and kind != "text"):
            log.add("place", index, at, detail=kind)

    def _call(self, index: int, at: int, block: Raw) -> None:
        log, call, name = self._log, block.get("id"), block.get("name")
        if not isinstance(call, str) or not call or not isinstance(name, str):
            log.add("block", index, at, detail="a call needs an id and a name")
            return
        if _ID.fullmatch(call) is None:
            log.add("call-id", index, at, detail=shown(call))
        if _NAME.fullmatch(name) is None:
            log.add("call-name", index, at, detail=shown(name))
        if not isinstance(block.get("input"), OBJECT):
            log.add("call-input", index, at)

    def _result(self, index: int, at: int, block: Raw) -> None:
        log, call, content = self._log, block.get("tool_use_id"), block.get("content")
        if not isinstance(call, str) or not call or not isinstance(content, str | list | None):
            log.add("block", index, at, detail="a result needs the id of its call, and text or blocks")
            return
        if _ID.fullmatch(call) is None:
            log.add("call-id", index, at, detail=shown(call))
        if block.get("is_error") is True and not content:
            log.add("error-text", index, at)
        if isinstance(content, list):
            for part_at, part in enumerate(content):
                self._part(index, (at, part_at), part)

    def _part(self, index: int, at: tuple[int, ...], part: object) -> None:
        kind = part.get("type") if isinstance(part, OBJECT) else None
        if not isinstance(part, OBJECT) or not isinstance(kind, str):
            self._log.add("block", index, *at)
        elif kind == "text":
            if blank(part.get("text")):
                self._log.add("blank-text", index, *at)
        else:
            self._other(index, at, part, kind)

    def _other(self, index: int, at: tuple[int, ...], block: Raw, kind: str) -> None:
        log = self._log
        if kind == "image":
            self._image(index, at, block)
        elif kind == "document":
            self._media += 1
            if not isinstance(block.get("source"), OBJECT):
                log.add("block", index, *at, detail="a document needs a source")
        elif kind == "thinking":
            if not isinstance(block.get("thinking"), str) or not block.get("signature"):
                log.add("unsigned", index, *at)
        elif kind == "redacted_thinking":
            if not isinstance(block.get("data"), str) or not block["data"]:
                log.add("unsigned", index, *at)
        elif kind not in KINDS and not kind.endswith("_tool_result"):
            log.add("kind", index, *at, detail=shown(kind))

    def _image(self, index: int, at: tuple[int, ...], block: Raw) -> None:
        log, source = self._log, block.get("source")
        if not isinstance(source, OBJECT):
            log.add("block", index, *at, detail="an image needs a source")
            return
        self._media += 1
        self._images.append((index, at, source))
        if source.get("type") != "base64":
            return
        data, media_type = source.get("data"), source.get("media_type")
        if not isinstance(data, str) or not data or media_type not in IMAGE_TYPES:
            log.add("media-type", index, *at, detail=shown(media_type))
            return
        real = next((kind for head, kind in HEADS.items() if data.startswith(head)), media_type)
        if real != media_type:
            log.add("media-bytes", index, *at, detail=f"{media_type}, but it is {real}")
        if len(data) > IMAGE_CHARS:
            log.add("image-size", index, *at, detail=f"{len(data):,} characters")

    def _end(self, index: int, content: Sequence[Any], role: object) -> None:
        last = content[-1] if content else None
        if role != "assistant" or not isinstance(last, OBJECT):
            return
        if last.get("type") in ("thinking", "redacted_thinking"):
            self._log.add("thinking-last", index, len(content) - 1)

    def whole(self, messages: Sequence[Any]) -> None:
        """What concerns the list as a whole."""
        log = self._log
        most = SIDE_PIXELS_OF_MANY if len(self._images) > MANY_IMAGES else SIDE_PIXELS
        for index, at, source in self._images:
            data, media_type = source.get("data"), source.get("media_type")
            size = (
                image_size(data, media_type if isinstance(media_type, str) else None) if isinstance(data, str) else None
            )
            if size is not None and max(size) > most:
                log.add("image-sides", index, *at, detail=f"{size[0]} x {size[1]} pixels, {most} are taken")
        if self._media > MEDIA_COUNT:
            log.add("media-count", -1, detail=f"{self._media}")
        for index, place in self._marks[:-CACHE_MARKS]:
            log.add("cache-marks", index, place, detail=f"{len(self._marks)} in all")
        last = messages[-1] if messages else None
        if isinstance(last, OBJECT) and last.get("role") == "assistant":
            self._last_answer(len(messages) - 1, last.get("content"))

    def _last_answer(self, index: int, content: object) -> None:
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        last = blocks[-1] if blocks else None
        kind = last.get("type") if isinstance(last, OBJECT) else None
        if kind == "text" and isinstance(last, OBJECT):
            text = last.get("text")
            if isinstance(text, str) and not blank(text) and text != text.rstrip():
                self._log.add("final-space", index, *([len(blocks) - 1] if isinstance(content, list) else []))
            self._log.add("prefill", index)
