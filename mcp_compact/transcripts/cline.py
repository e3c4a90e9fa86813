"""Reads the sessions of Cline: one JSON value with Anthropic's blocks in its messages.

The file holds what is left after Cline's own compactions. A summary stands for all that came before it; a notice
that messages were taken out leaves what the file holds before it in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import count_of, object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import HEADER
from mcp_compact.transcripts.pieces import as_text, each_object, image_at, made, part_kind, text, usage_of
from mcp_compact.transcripts.translated import TranslatedReader

SUMMARY, NOTICE = "compaction_summary", "compaction"
SENT = ("inputTokens",)
_BLOCKS = ("text", "tool_use", "image", "document", "redacted_thinking")


class ClineReader(TranslatedReader):
    """Turns the messages of one session into records."""

    lists = ("messages",)
    is_whole = True

    def begin(self, own: Mapping[str, Any]) -> None:  # noqa: ARG002 - a file is read whole
        """A notice leaves in place what the file holds before it."""
        self._before: list[str] = []
        """The uuids of the messages so far that have one."""

    def header(self, value: Mapping[str, Any]) -> Iterator[Entry]:
        """The session's id and its system prompt."""
        session = self.session
        session.session_id = uuid_of(value.get("sessionId")) or uuid_of(value.get("taskId"))
        session.cwd = text_of(value, "cwd", "workspaceRoot")
        prompt = text_of(value, "system_prompt", "systemPrompt")
        lasting = {key: item for key, item in value.items() if key != "updated_at"}
        yield Entry(HEADER, lasting, made("system", prompt) if prompt else None, subtype="system_prompt")
        if "updated_at" in value:
            yield Entry(HEADER, {"updated_at": value["updated_at"]})

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of a message, and the boundary before it where it tells of a compaction."""
        role, metadata = text_of(raw, "role") or "", object_of(raw, "metadata")
        kind, own = text_of(metadata, "kind"), uuid_of(raw.get("id"))
        if role not in ("user", "assistant"):
            yield Entry(role, raw, uuid=own, at=raw.get("ts"), body=body, unknown=(role or "(none)",))
            return
        if kind in (SUMMARY, NOTICE):
            yield boundary(
                {"of": own, "metadata": metadata},
                uuid=f"{own}:boundary" if own else None,
                at=raw.get("ts"),
                trigger=text_of(metadata, "reason", "trigger"),
                tokens_before=count_of(metadata, "tokensBefore", "usageBefore"),
                kept=self._before if kind == NOTICE else (),
            )
        content, unknown = _content(raw.get("content"))
        message = made(
            role,
            content,
            model=object_of(raw, "modelInfo").get("id"),
            # What was read from the cache is part of what was sent.
            usage=usage_of(raw.get("metrics"), SENT, ("outputTokens",)) if role == "assistant" else None,
        )
        if own:
            self._before.append(own)
        yield Entry(
            role, raw, message, own, at=raw.get("ts"), body=body, unknown=unknown, is_summary=kind in (SUMMARY, NOTICE)
        )


def _content(content: object) -> tuple[str | list[Any], tuple[str, ...]]:
    """The blocks that a provider knows; an attached file becomes text, and what is not known is counted."""
    if not isinstance(content, list):
        return as_text(content), ()
    blocks: list[Any] = []
    unknown: list[str] = []
    for part in each_object(content):
        block = _block(part)
        blocks += [block] if block else []
        if block is None and part.get("type") not in ("thinking", "reasoning"):
            unknown.append(part_kind(part))
    return blocks, tuple(unknown)


def _block(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    match part.get("type"):
        case "file":
            head = text_of(part, "path") or "a file"
            return text(f"[Attached: {head}]\n{as_text(part.get('content'))}")
        case "tool_result" if text_of(part, "tool_use_id"):
            given = part.get("content")
            known = isinstance(given, str) or _are_blocks(given)
            own = {key: part[key] for key in ("type", "tool_use_id", "is_error") if key in part}
            return {**own, "content": given if known else as_text(given)}
        case "thinking" if text_of(part, "signature"):
            return part
        case "image" if isinstance(part.get("data"), str) and "source" not in part:
            kind = text_of(part, "mediaType", "mimeType", "media_type") or "image/png"
            return image_at(f"data:{kind};base64,{part['data']}")
        case kind if kind in _BLOCKS:
            return part
        case _:
            return None


def _are_blocks(given: object) -> bool:
    return isinstance(given, list) and all(
        isinstance(item, dict) and item.get("type") in ("text", "image", "document") for item in given
    )
