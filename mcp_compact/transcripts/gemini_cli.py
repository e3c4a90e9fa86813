"""Reads the chats of Gemini CLI: one JSON value, or (newer) one entry a line.

An answer of the model holds its calls and their results. It becomes a record of its own words, one for each call
(all of one message id) and one for each result, so that an answer whose calls come in later grows, and is not another.
Its thoughts are summaries that the client never sends back: they stay in the archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mcp_compact.transcripts.fields import object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import (
    as_text,
    call,
    each_object,
    image,
    image_at,
    made,
    part_kind,
    result,
    text,
    texts,
    usage_of,
)
from mcp_compact.transcripts.translated import Entry, TranslatedReader

GEMINI, USER = "gemini", "user"
NOTICES = ("info", "warning", "error", "about", "help", "stats")
"""What the client shows and never sends."""
REWIND, SET = "$rewindTo", "$set"
FAILED = ("error", "cancelled")


class GeminiCliReader(TranslatedReader):
    """Turns the entries of one chat into records."""

    lists = ("messages",)

    def header(self, value: Mapping[str, Any]) -> Iterable[Entry]:
        """The session's own id; what changes at each saving (the time, a summary) is not part of its identity."""
        self._look(value)
        lasting = {key: item for key, item in value.items() if key not in ("lastUpdated", "summary")}
        passing = {key: value[key] for key in ("lastUpdated", "summary") if key in value}
        return [Entry(HEADER, item, at=value.get("startTime")) for item in (lasting, passing) if item]

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The records of one message, or of a line that says something of the session."""
        kind = text_of(raw, "type") or ""
        if kind == USER:
            content, unknown = _content(raw.get("content"))
            words = made("user", content, id=None)
            yield Entry(kind, raw, words, uuid_of(raw.get("id")), at=raw.get("timestamp"), body=body, unknown=unknown)
        elif kind == GEMINI:
            yield from self._answer(raw, body)
        elif not kind and ("sessionId" in raw or SET in raw or REWIND in raw):
            self._look(raw if SET not in raw else object_of(raw, SET))
            yield Entry(SET if SET in raw else REWIND if REWIND in raw else HEADER, raw, body=body)
        else:
            unknown = () if kind in NOTICES else (kind or "(none)",)
            yield Entry(kind, raw, None, uuid_of(raw.get("id")), at=raw.get("timestamp"), body=body, unknown=unknown)

    def _look(self, value: Mapping[str, Any]) -> None:
        session = self.session
        session.session_id = session.session_id or uuid_of(value.get("sessionId"))
        session.given_title = text_of(value, "summary") or session.given_title
        directories = value.get("directories")
        if session.cwd is None and isinstance(directories, list) and directories:
            session.cwd = directories[0] if isinstance(directories[0], str) else None

    def _answer(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        own, at = uuid_of(raw.get("id")), raw.get("timestamp")
        calls = list(each_object(raw.get("toolCalls")))
        content, unknown = _content(raw.get("content"))
        usage = usage_of(raw.get("tokens"), ("input", "tool"), ("output", "thoughts"))
        spoken = made("assistant", content, id=own, model=raw.get("model"), usage=usage)
        words = {key: value for key, value in raw.items() if key != "toolCalls"} if calls else raw
        yield Entry(GEMINI, words, spoken, own, at=at, body=None if calls else body, unknown=unknown)
        for number, each in enumerate(calls, 1):
            call_id = text_of(each, "id") or f"{own or self._ordinal}-call-{number}"
            asked = {key: value for key, value in each.items() if key in ("id", "name", "args")}
            made_call = made(
                "assistant", [call(call_id, each.get("name"), each.get("args"))], id=own, model=raw.get("model")
            )
            yield Entry("call", {"of": own, "call": asked}, made_call, f"{own}:{call_id}" if own else None, at=at)
        for number, each in enumerate(calls, 1):
            call_id = text_of(each, "id") or f"{own or self._ordinal}-call-{number}"
            if each.get("result") is None and each.get("status") not in FAILED:
                continue
            given = {key: value for key, value in each.items() if key not in ("name", "args")}
            answer = result(call_id, _given(each), failed=each.get("status") in FAILED)
            yield Entry(
                "result",
                {"of": own, "result": given},
                made("user", [answer]),
                f"{own}:{call_id}:result" if own else None,
                at=each.get("timestamp") or at,
            )


def _content(content: object) -> tuple[str | list[Any], tuple[str, ...]]:
    """Text as it is, parts of Gemini's API as blocks, and the kinds of parts that are not known."""
    if not isinstance(content, list):
        return as_text(content), ()
    blocks: list[Any] = []
    unknown: list[str] = []
    for part in content:
        if isinstance(part, str):
            blocks.append(text(part))
        elif isinstance(part, Mapping):
            block = part_block(part)
            blocks += [block] if block else []
            unknown += [] if block else [part_kind(part)]
    return blocks, tuple(unknown)


def part_block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """A text or a medium of Gemini's API as a block; None for anything else."""
    if isinstance(part.get("text"), str):
        return text(part["text"])
    inline = object_of(part, "inlineData", "inline_data")
    if inline:
        data = as_text(inline.get("data")).replace("-", "+").replace("_", "/")
        # Google's libraries write base64 as addresses do.
        return image(inline.get("mimeType") or inline.get("mime_type"), data)
    address = text_of(object_of(part, "fileData", "file_data"), "fileUri", "file_uri")
    return image_at(address) if address else None


def _given(each: Mapping[str, Any]) -> str | list[Any]:
    """What the model was given for a call: what its response says, and media beside it."""
    outcome = each.get("result")
    parts = list(each_object(outcome)) or list(each_object([outcome]))
    blocks: list[Any] = []
    for part in parts:
        answer = object_of(part, "functionResponse", "function_response")
        if answer:
            blocks += texts(response_text(answer.get("response")))
        elif block := part_block(part):
            blocks.append(block)
    if not blocks:
        return as_text(outcome) or as_text(each.get("resultDisplay"))
    return blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks


def response_text(response: object) -> str:
    """A function's response as text: its output or error where it says nothing else, else all of it."""
    if isinstance(response, Mapping) and len(response) == 1:
        only = next(iter(response.values()))
        if isinstance(only, str):
            return only
    return as_text(response)
