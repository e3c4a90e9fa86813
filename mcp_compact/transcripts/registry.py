"""The formats that can be read, how a transcript's format is told, and the reader for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from mcp_compact.errors import CallerError
from mcp_compact.transcripts.anthropic import AnthropicReader
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.codex import CodexReader
from mcp_compact.transcripts.openai_chat import OpenAiChatReader
from mcp_compact.transcripts.parsed import Known, Reader, nothing_known
from mcp_compact.transcripts.sniffing import (
    HEADS_BYTES,
    MINI_SWE,
    SNIFFERS,
    UNREADABLE,
    Outline,
    is_anthropic,
    is_claude_code,
    is_codex,
    is_openai,
    outlines,
)

CLAUDE_CODE = "claude-code"
ANTHROPIC = "anthropic"
OPENAI = "openai"
CODEX = "codex"
GEMINI_CLI, COPILOT_CLI, CLINE, OPENHANDS, OPENCODE, PI = (
    "gemini-cli", "copilot-cli", "cline", "openhands", "opencode", "pi",
)  # fmt: skip
RESPONSES, GEMINI, LANGCHAIN, API_LOG = "responses", "gemini", "langchain", "api-log"
SWE_AGENT, ATIF = "swe-agent", "atif"
OF_CLIENTS = (CLAUDE_CODE, CODEX, GEMINI_CLI, COPILOT_CLI, CLINE, OPENHANDS, OPENCODE, PI)
"""Formats of clients that keep their own history."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format that can be read."""

    name: str
    title: str
    reader: Callable[[str, Mapping[str, Any] | None, Known], Reader]


def _late(module: str, name: str) -> Callable[[str, Mapping[str, Any] | None, Known], Reader]:
    """A reader whose module is loaded with the first transcript of its format: hooks pay for what they load."""

    def make(source: str, state: Mapping[str, Any] | None, known: Known) -> Reader:
        reader: Reader = getattr(import_module(f"mcp_compact.transcripts.{module}"), name)(source, state, known)
        return reader

    return make


FORMATS: Mapping[str, Format] = {
    CLAUDE_CODE: Format(CLAUDE_CODE, "Claude Code session (JSONL)", ClaudeCodeReader),
    ANTHROPIC: Format(ANTHROPIC, "Anthropic messages (JSON list, request, or JSONL)", AnthropicReader),
    CODEX: Format(CODEX, "Codex session (rollout, JSONL)", CodexReader),
    OPENAI: Format(OPENAI, "OpenAI chat messages (JSON list, request or log of one, or JSONL)", OpenAiChatReader),
    GEMINI_CLI: Format(GEMINI_CLI, "Gemini CLI chat (JSON or JSONL)", _late("gemini_cli", "GeminiCliReader")),
    COPILOT_CLI: Format(COPILOT_CLI, "Copilot CLI event log (JSONL)", _late("copilot_cli", "CopilotCliReader")),
    CLINE: Format(CLINE, "Cline session (JSON)", _late("cline", "ClineReader")),
    OPENHANDS: Format(
        OPENHANDS, "OpenHands events (JSON list, row with `history`, or JSONL)", _late("openhands", "OpenHandsReader")
    ),
    RESPONSES: Format(
        RESPONSES,
        "OpenAI Responses items (JSON list, request, response, or JSONL)",
        _late("responses", "ResponsesReader"),
    ),
    OPENCODE: Format(OPENCODE, "opencode export (JSON)", _late("opencode", "OpencodeReader")),
    PI: Format(PI, "pi session (JSONL)", _late("pi", "PiReader")),
    GEMINI: Format(
        GEMINI, "Gemini contents (JSON list, request, or JSONL)", _late("gemini_contents", "GeminiContentsReader")
    ),
    LANGCHAIN: Format(
        LANGCHAIN, "LangChain messages (JSON list, state, or JSONL)", _late("langchain", "LangChainReader")
    ),
    API_LOG: Format(API_LOG, "log of Anthropic requests and answers (JSONL)", _late("api_log", "ApiLogReader")),
    SWE_AGENT: Format(SWE_AGENT, "SWE-agent or mini-swe-agent trajectory (JSON)", _late("swe_agent", "SweAgentReader")),
    ATIF: Format(ATIF, "ATIF trajectory (JSON)", _late("atif", "AtifReader")),
}


def sniff(head: bytes) -> str | None:
    """The format that a transcript's beginning shows: a name of FORMATS or of UNREADABLE, else None."""
    for size in HEADS_BYTES:
        found = _sniff(head[:size].decode("utf-8", "replace"))
        if found is not None or len(head) <= size:
            return found
    return None


def _sniff(text: str) -> str | None:
    found: str | None = None
    for outline in outlines(text):
        sure = _told(outline, found)
        if sure is not None:
            return sure
        if is_anthropic(outline):
            # The first messages look the same in other APIs' lists; a later one may tell.
            found = ANTHROPIC
    return SWE_AGENT if found == ANTHROPIC and MINI_SWE in text and '"tool_use"' not in text else found


def _told(outline: Outline, found: str | None) -> str | None:
    """The format that an object tells for sure. `found`: what those before it looked like."""
    sure = next((name for name, is_it in SNIFFERS if is_it(outline)), None)
    if sure is not None:
        return sure
    if is_codex(outline):
        return CODEX
    if found is None and is_claude_code(outline):
        return CLAUDE_CODE
    return OPENAI if is_openai(outline) else None


def detect_format(head: bytes) -> str:
    """The readable format of a transcript by its first bytes (64 KiB are enough for JSON lines; give a document whole).

    Raises CallerError: `empty_transcript`, `binary_transcript`, `not_json`, `not_a_transcript`,
    or `unreadable_format` for a format that is known by name only.
    """
    _refuse_no_text(head)
    name = sniff(head)
    if name is None:
        raise CallerError("not_a_transcript", "This is JSON, but no transcript that is known.", _readable())
    if name not in FORMATS:
        raise CallerError("unreadable_format", f"This looks like {UNREADABLE[name]}.", _readable())
    return name


def _refuse_no_text(head: bytes) -> None:
    stripped = head.removeprefix(b"\xef\xbb\xbf").strip()
    if not stripped:
        raise CallerError("empty_transcript", "The transcript is empty.", "Check the path, or that it was written.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise CallerError("binary_transcript", "The transcript is UTF-16.", "Save it as UTF-8.")
    if b"\0" in head:
        raise CallerError("binary_transcript", "The file is binary, not a transcript.", _readable())
    if stripped[:1] in b"{[" or b"\n{" in head:
        return
    if _is_json(stripped):
        raise CallerError("not_a_transcript", "This is JSON, but no object and no list of any.", _readable())
    raise CallerError("not_json", "The file does not hold JSON.", _readable())


def _is_json(text: bytes) -> bool:
    """Is it JSON, though nothing that holds messages (`null`, a number, a text)?"""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def reader_for(
    format: str, source: str, state: Mapping[str, Any] | None = None, known: Known = nothing_known
) -> Reader:
    """A reader of a format. Raises CallerError `unknown_format`, which says what there is."""
    if format not in FORMATS:
        raise CallerError("unknown_format", "This format is not known.", _readable())
    return FORMATS[format].reader(source, state, known)


def _readable() -> str:
    return f"mcp-compact reads {', '.join(FORMATS)}."
