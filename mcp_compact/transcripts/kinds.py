"""What a line of a Claude Code transcript is: its type, its message, its flags.

A pure function of the object, so that a store can decode a body again and get the same record.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import MESSAGE_TYPES, Message
from mcp_compact.messages.values import value
from mcp_compact.transcripts.fields import text_of, uuid_of
from mcp_compact.transcripts.openai_chat_messages import decode_chat, is_chat

NO_MODEL = "<synthetic>"
"""The model of messages that the client made itself."""
UNKNOWN = "unknown"
"""The type of an object that names none."""
HEADER = "header"
"""The type of what stands beside a list of messages: the session's or the request's own fields."""
API_ERROR = "api_error_message"
TRANSCRIPT_ONLY = "transcript_only"
BOUNDARY = "compact_boundary"
MICRO_BOUNDARY = "microcompact_boundary"

KNOWN_TYPES = frozenset(
    (
        *MESSAGE_TYPES,
        *("system", "attachment", "progress", "summary", "file-history-snapshot", "file-history-delta"),
        *("queue-operation", "last-prompt", "mode", "permission-mode", "pr-link", "atis-latch"),
        *("ai-title", "custom-title", "bridge-session", "frame-link", "relocated", "tag", "teleported-from"),
        *("agent-name", "agent-color", "agent-setting", "worktree-state", "result", HEADER),
    )
)
_ROLES = (*MESSAGE_TYPES, "system")


@value
class Kind:
    """What a record needs beside its place in the file."""

    type: str
    subtype: str = ""
    message: Message | None = None
    is_meta: bool = False
    is_summary: bool = False


def kind_of(raw: Mapping[str, Any]) -> Kind:
    """The kind of a transcript's object.

    A message without an envelope (role and content) counts as a user's or assistant's record.
    Messages that the client shows but never sends (its own words on a failed request; what is
    visible in the transcript only and is no summary) become records of type `system`: they stay
    in the archive with their message, but in no context.
    """
    type_ = raw.get("type")
    if type_ in MESSAGE_TYPES:
        inner = raw.get("message")
        if inner is None and "role" in raw:
            inner = raw
        return _message_kind(raw, type_, decode_message(inner, type_))
    if type(type_) is not str or not type_ or type_ == "message":
        return _bare_kind(raw, type_)
    if type_ == "system" and "message" in raw:
        return Kind(type_, text_of(raw, "subtype") or "", decode_message(raw["message"], type_), _is_meta(raw))
    subtype = raw.get("subtype")
    return _plain(type_, subtype if type(subtype) is str else "", _is_meta(raw))


def usual_message(raw: Mapping[str, Any]) -> Message | None:
    """The message of an object that is as nearly all are; None for any other, which `kind_of` tells.

    It is a record of the session's own: a user's or an assistant's, whose message is an object that says so itself
    and has content. No flag makes it anything else; it may be `isMeta`.
    """
    get = raw.get
    type_, inner = get("type"), get("message")
    if type_ not in MESSAGE_TYPES or type(inner) is not dict or inner.get("role") != type_:
        return None
    if get("isCompactSummary") or get("isVisibleInTranscriptOnly") or get("isApiErrorMessage"):
        return None
    if get("isSidechain") or "parent_tool_use_id" in raw or type(inner.get("content")) not in (list, str):
        return None
    return decode_message(inner, type_)


@lru_cache(maxsize=256)
def _plain(type_: str, subtype: str, is_meta: bool) -> Kind:  # noqa: FBT001 - names would double the cache's cost
    """Many lines are no messages, and there are few kinds of them."""
    return Kind(type_, subtype, None, is_meta)


def _is_meta(raw: Mapping[str, Any]) -> bool:
    return raw.get("isMeta") is True


def _bare_kind(raw: Mapping[str, Any], type_: object) -> Kind:
    role = raw.get("role")
    if is_chat(raw):
        chat = decode_chat(raw)
        return Kind("system", "", chat) if chat.role == "system" else _message_kind(raw, chat.role, chat)
    if not isinstance(role, str) or role not in _ROLES:
        return Kind(type_ if isinstance(type_, str) and type_ else UNKNOWN)
    message = decode_message(raw, role)
    return Kind(role, "", message) if role == "system" else _message_kind(raw, role, message)


def _message_kind(raw: Mapping[str, Any], type_: str, message: Message | None) -> Kind:
    is_summary = raw.get("isCompactSummary") is True
    if raw.get("isVisibleInTranscriptOnly") is True and not is_summary:
        return Kind("system", TRANSCRIPT_ONLY, message, is_meta=True)
    if raw.get("isApiErrorMessage") is True and message is not None and message.model == NO_MODEL:
        return Kind("system", API_ERROR, message, is_meta=True)
    return Kind(type_, "", message, _is_meta(raw), is_summary)


def parent_of(raw: Mapping[str, Any], *, is_boundary: bool = False) -> tuple[MessageUuid | None, bool]:
    """The parent, and whether the record is a root. Neither means: it goes on from the record before it.

    A boundary of the client has no parent in the file's tree; it follows its logical parent.
    """
    named = raw.get("parentUuid", False)
    parent = uuid_of(named)
    if parent is None and is_boundary:
        return uuid_of(raw.get("logicalParentUuid")), False
    return parent, named is None
