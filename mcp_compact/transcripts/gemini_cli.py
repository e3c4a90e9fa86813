"""Reads the chats of Gemini CLI: one JSON value, or (newer) one entry a line.

An answer of the model holds its calls and their results. It becomes a record of its own words, one for each call
(all of one message id) and one for each result, so that an answer whose calls come in later grows, and is not another.
Its thoughts are summaries that the client never sends back: they stay in the archive. Where the client compressed its
history, the newer form lists the messages that are left, and a new one that tells of those that are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import (
    REMEMBERED,
    as_text,
    call,
    each_object,
    image,
    image_at,
    made,
    part_kind,
    remember,
    result,
    text,
    texts,
    usage_of,
)
from mcp_compact.transcripts.report import UNNAMED
from mcp_compact.transcripts.translated import TranslatedReader

GEMINI, USER = "gemini", "user"
NOTICES = ("info", "warning", "error", "about", "help", "stats")
"""What the client shows and never sends."""
REWIND, SET = "$rewindTo", "$set"
FAILED = ("error", "cancelled")
SENT, WRITTEN = ("input", "tool"), ("output", "thoughts")


class GeminiCliReader(TranslatedReader):
    """Turns the entries of one chat into records."""

    lists = ("messages",)

    def begin(self, own: Mapping[str, Any]) -> None:
        """Later lines take messages back, or tell which are left."""
        self._met: dict[str, list[str]] = {message: list(uuids) for message, uuids in own.get("met", ())}
        """The last messages: the record before each one, and its own records."""
        self._is_complete: bool = own.get("is_complete", True)
        """No message of the conversation was forgotten."""

    def memory(self) -> dict[str, Any]:
        """The last messages."""
        return {"met": list(self._met.items()), "is_complete": self._is_complete}

    def header(self, value: Mapping[str, Any]) -> Iterable[Entry]:
        """The session's own id; what changes at each saving (the time, a summary) is not part of its identity."""
        self._look(value)
        lasting = {key: item for key, item in value.items() if key not in ("lastUpdated", "summary")}
        passing = {key: value[key] for key in ("lastUpdated", "summary") if key in value}
        return [Entry(HEADER, item, at=value.get("startTime")) for item in (lasting, passing) if item]

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The records of one message, or of a line that says something of the session."""
        kind, own = text_of(raw, "type") or "", uuid_of(raw.get("id"))
        if own and (kind in (USER, GEMINI)) and own not in self._met:
            self._is_complete = self._is_complete and len(self._met) < REMEMBERED
            remember(self._met, own, [self.last_uuid])
        if kind == USER:
            yield self._words(raw, own, body)
        elif kind == GEMINI:
            yield from self._answer(raw, own, body)
        elif not kind and REWIND in raw:
            parent = self._taken_back(uuid_of(raw[REWIND]))
            yield Entry(REWIND, raw, parent=parent, is_root=parent == "", body=body)
        elif not kind and SET in raw:
            yield from self._changed(raw, object_of(raw, SET), body)
        elif not kind and "sessionId" in raw:
            self._look(raw)
            yield Entry(HEADER, raw, body=body)
        else:
            unknown = () if kind in NOTICES else (kind or UNNAMED,)
            yield Entry(kind, raw, None, own, at=raw.get("timestamp"), body=body, unknown=unknown)

    def _words(self, raw: Mapping[str, Any], own: str | None, body: bytes | None, *, is_summary: bool = False) -> Entry:
        content, unknown = _content(raw.get("content"))
        entry = Entry(
            USER, raw, made("user", content), own,
            at=raw.get("timestamp"), is_summary=is_summary, body=body, unknown=unknown,
        )  # fmt: skip
        return self._met_as(own, entry)

    # ------------------------------------------------------------ what the client took out

    def _taken_back(self, message: str | None) -> str | None:
        """The record before a message that was taken back with all that followed; empty for the beginning of all."""
        if message is None:
            return None
        if message not in self._met:
            if not self._is_complete:
                return None
            self._met.clear()
            return ""
        later = list(self._met)
        later = later[later.index(message) :]
        before = self._met[later[0]][0]
        for each in later:
            del self._met[each]
        return before

    def _changed(self, raw: Mapping[str, Any], told: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """A line that changes what was told: where it lists the messages that are left, a compression may have been."""
        self._look(told)
        left = list(each_object(told.get("messages")))
        names = {uuid_of(message.get("id")) for message in left}
        new = [message for message in left if uuid_of(message.get("id")) not in self._met]
        is_gone = any(message not in names for message in self._met)
        summary = next((message for message in new if message.get("type") == USER and not _answers(message)), None)
        if summary is None or not is_gone or not uuid_of(summary.get("id")):
            yield Entry(SET, raw, body=body)
            return
        kept = [uuid for message, uuids in self._met.items() if message in names for uuid in uuids[1:]]
        yield boundary(raw, kind=SET, at=told.get("lastUpdated"), body=body, kept=kept)
        self._met = {message: uuids for message, uuids in self._met.items() if message in names}
        # What the model is said to have answered to the summary, and copies of results, stay in the line alone.
        own = str(summary["id"])
        self._met[own] = [self.last_uuid]
        yield self._words(summary, own, None, is_summary=True)

    def _look(self, value: Mapping[str, Any]) -> None:
        session = self.session
        session.session_id = session.session_id or uuid_of(value.get("sessionId"))
        session.given_title = text_of(value, "summary") or session.given_title
        directories = value.get("directories")
        if session.cwd is None and isinstance(directories, list) and directories:
            session.cwd = directories[0] if isinstance(directories[0], str) else None

    def _answer(self, raw: Mapping[str, Any], own: str | None, body: bytes | None) -> Iterator[Entry]:
        at, model, calls = raw.get("timestamp"), raw.get("model"), list(each_object(raw.get("toolCalls")))
        content, unknown = _content(raw.get("content"))
        usage = usage_of(raw.get("tokens"), SENT, WRITTEN)
        spoken = made("assistant", content, id=own, model=model, usage=usage)
        if not calls:
            yield self._met_as(own, Entry(GEMINI, raw, spoken, own, at=at, body=body, unknown=unknown))
            return
        words = dict(raw)
        del words["toolCalls"]
        yield self._met_as(own, Entry(GEMINI, words, spoken, own, at=at, unknown=unknown))
        ids = [text_of(each, "id") or f"{own or self._ordinal}-call-{number}" for number, each in enumerate(calls, 1)]
        for call_id, each in zip(ids, calls, strict=True):
            asked = {key: each[key] for key in ("id", "name", "args") if key in each}
            block = call(call_id, each.get("name"), each.get("args"))
            message = made("assistant", [block], id=own, model=model)
            uuid = f"{own}:{call_id}" if own else None
            yield self._met_as(own, Entry("call", {"of": own, "call": asked}, message, uuid, at=at))
        for call_id, each in zip(ids, calls, strict=True):
            failed = each.get("status") in FAILED
            if each.get("result") is None and not failed:
                continue
            given = dict(each)
            given.pop("name", None)
            given.pop("args", None)
            message = made("user", [result(call_id, _given(each), failed=failed)])
            uuid = f"{own}:{call_id}:result" if own else None
            entry = Entry("result", {"of": own, "result": given}, message, uuid, at=each.get("timestamp") or at)
            yield self._met_as(own, entry)

    def _met_as(self, own: str | None, entry: Entry) -> Entry:
        """Note that a record belongs to a message."""
        if own and entry.uuid:
            uuids = self._met[own]
            if entry.uuid not in uuids:
                uuids.append(entry.uuid)
        return entry


def _answers(message: Mapping[str, Any]) -> bool:
    """Is it a user's turn that holds results?"""
    return any("functionResponse" in part for part in each_object(message.get("content")))


def _content(content: object) -> tuple[str | list[Any], tuple[str, ...]]:
    """Text as it is, parts of Gemini's API as blocks, and the kinds of parts that are not known."""
    if not isinstance(content, list):
        return as_text(content), ()
    blocks: list[Any] = []
    unknown: list[str] = []
    for part in content:
        if isinstance(part, str):
            blocks.append(text(part))
        elif isinstance(part, dict):
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
    if isinstance(response, dict) and len(response) == 1:
        only = next(iter(response.values()))
        if isinstance(only, str):
            return only
    return as_text(response)
