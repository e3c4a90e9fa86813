"""The demo's run: a real server as a child process, a real client over stdio, a temporary archive."""

from __future__ import annotations

import re
import sys
import sysconfig
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import CallToolResult, TextContent

from mcp_compact.cli.demo_checks import forgotten_words, left_result, result_in_file, results_of
from mcp_compact.cli.picture import scaled, slices_of_messages
from mcp_compact.cli.raised import cause_of
from mcp_compact.errors import CallerError, CompactError, ServerError
from mcp_compact.messages.weights import Family, family_of

NAMED_ERROR = re.compile(r"[\w.]*(?:Error|Exception): ")
CALL_SECONDS = 300.0
CANDIDATES = 8
"""So many words that left the context are tried until a search answers with one of them."""

LEAST_TARGET = 500
"""Tokens; below it there is no room for a memory and the newest messages."""

Json = dict[str, Any]
Say = Callable[[str], None]


@dataclass(slots=True)
class Talk:
    """A connection and what it took so far."""

    client: Client
    say: Say
    seconds: dict[str, float] = field(default_factory=dict)

    async def call(self, tool: str, **arguments: object) -> Json:
        """A tool's answer as an object. Raises CallerError for an answer that says what is wrong."""
        result = await self.client.call_tool(tool, arguments, read_timeout_seconds=CALL_SECONDS)
        if not isinstance(result, CallToolResult) or result.is_error:
            raise _refused(tool, result)
        return dict(result.structured_content or {})

    @asynccontextmanager
    async def step(self, name: str, text: str) -> AsyncIterator[None]:
        """Say what happens and take its time."""
        self.say(text)
        began = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - began, 3)


def _refused(tool: str, result: object) -> CompactError:
    parts = result.content if isinstance(result, CallToolResult) else []
    text = " ".join(part.text for part in parts if isinstance(part, TextContent))
    said = text.removeprefix(f"Error executing tool {tool}: ") or "no answer"
    kind = CallerError if tool == "import_transcript" else ServerError
    return kind("tool_refused", f"{tool}: {said}")


async def play(transcript: Path, folder: Path, say: Say) -> Json:
    """Every step of the demo with its data. `folder` holds the archive and the server's log."""
    began = time.perf_counter()
    log = folder / "server.log"
    try:
        with log.open("w", encoding="utf-8") as errors:
            say("starting the server")
            async with Client(stdio_client(_server(transcript, folder), errlog=errors)) as client:
                talk = Talk(client, say, {"start": round(time.perf_counter() - began, 3)})
                steps = await _steps(talk, transcript)
                ended = time.perf_counter()
                ended = time.perf_counter()
    except (MCPError, OSError, EOFError, CompactError, BaseExceptionGroup) as error:
        raise _explained(cause_of(error), log) from error
    talk.seconds["stop"] = round(time.perf_counter() - ended, 3)
    talk.seconds["stop"] = round(time.perf_counter() - ended, 3)
    steps["seconds"] = {**talk.seconds, "total": round(time.perf_counter() - began, 3)}
    return steps


def _server(transcript: Path, folder: Path) -> StdioServerParameters:
    """This program's own server, with this Python. Nothing of the caller's folder is importable (-P)."""
    package = Path(__file__).resolve().parents[2]
    env = {
        "MCP_COMPACT_DB": str(folder / "demo.db"),
        "MCP_COMPACT_ROOTS": str(transcript.parent),
        # The transcript is some other folder's: lookups must not stay in this one.
        "MCP_COMPACT_SCOPE": "all",
    }
    if package != Path(sysconfig.get_path("purelib")).resolve():
        env["PYTHONPATH"] = str(package)
    return StdioServerParameters(command=sys.executable, args=["-P", "-m", "mcp_compact", "serve"], env=env)


def _explained(error: BaseException, log: Path) -> BaseException:
    """An error of ours or of the connection, with what the server logged of it."""
    if not isinstance(error, MCPError | OSError | EOFError | ServerError):
        return error
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.exists() else []
    said = [line for line in lines if NAMED_ERROR.match(line)] or lines[-1:]
    logged = f" It logged: {said[0].strip()}" if said else ""
    return ServerError("server_failed", f"The server failed: {error}.{logged}")


async def _steps(talk: Talk, transcript: Path) -> Json:
    async with talk.step("import", "importing the transcript"):
        imported = await talk.call("import_transcript", path=str(transcript))
    session = str(imported["session_id"])
    async with talk.step("status", "reading the status"):
        status = await talk.call("get_context_status", session_id=session)
    async with talk.step("context_before", "reading the whole context"):
        before, pages_before = await _context(talk, session)
    async with talk.step("microcompact", "clearing old tool results"):
        micro = await talk.call("microcompact_tool_results", session_id=session)
    middle = await talk.call("get_context_status", session_id=session)
    async with talk.step("compact", "compacting"):
        compacted = await _compact(talk, session, middle)
    async with talk.step("context_after", "reading the compacted context"):
        after, pages_after = await _context(talk, session)
    memory = await talk.call("get_session_memory", session_id=session)
    async with talk.step("search", "searching for what left"):
        search = await _search(talk, session, before, after)
    async with talk.step("original", "fetching an original"):
        original = await _original(talk, session, before, after, transcript)
    async with talk.step("undo", "undoing"):
        undo = await _undo(talk, session, middle)
    family = family_of(status.get("model"))
    return {
        "transcript": str(transcript),
        "session_id": session,
        "import": imported,
        "status": status,
        "microcompact": micro,
        "compact": compacted,
        "context_before": _summed(before, pages_before, family, int(status["message_tokens"])),
        "context_after": _summed(after, pages_after, family, int(compacted["tokens_after"])),
        "memory": memory,
        "search": search,
        "original": original,
        "undo": undo,
    }


def _summed(messages: list[Json], pages: int, family: Family, tokens: int) -> Json:
    """A context in figures: what fills it, how many results in it are cleared."""
    return {
        "messages": len(messages),
        "pages": pages,
        "cleared_results": sum(block.cleared for block in results_of(messages)),
        "tokens": tokens,
        "slices": scaled(slices_of_messages(messages, family=family), tokens),
    }


async def _context(talk: Talk, session: str) -> tuple[list[Json], int]:
    """The live context, all pages of it."""
    messages: list[Json] = []
    cursor, pages = "", 0
    while pages == 0 or cursor:
        page = await talk.call("get_messages_after_boundary", session_id=session, cursor=cursor)
        messages += page["messages"]
        cursor, pages = str(page.get("next_cursor") or ""), pages + 1
    return messages, pages


async def _compact(talk: Talk, session: str, status: Mapping[str, Any]) -> Json:
    """A forced compaction; where the context fits the default target, to half of its size if that is worth it."""
    request: Json = {"session_id": session, "trigger": "manual", "force": True}
    done = await talk.call("compact_session", **request)
    target = int(status["message_tokens"]) // 2
    half = done["status"] in ("nothing_to_compact", "no_progress") and target >= LEAST_TARGET
    if half:
        done = await talk.call("compact_session", **request, target_tokens=target)
    return {**done, "half_as_target": half}


async def _search(talk: Talk, session: str, before: list[Json], after: list[Json]) -> Json:
    """A search for words that are no longer in the context; empty where nothing of the kind left."""
    for words in forgotten_words(before, after, CANDIDATES):
        found = await talk.call("search_messages", query=words, session_id=session)
        for hit in found["hits"]:
            said = hit.get("role") in ("user", "assistant") and words.lower() in str(hit.get("snippet", "")).lower()
            if said and not hit.get("in_context"):
                return {"query": words, "in_context": False, "hits": len(found["hits"]), "hit": hit}
    return {}


async def _original(talk: Talk, session: str, before: list[Json], after: list[Json], transcript: Path) -> Json:
    """A result that left, fetched whole and compared with the transcript's own bytes; empty where none left."""
    call_id = left_result(before, after)
    if not call_id:
        return {}
    text, cursor, parts, part = "", "", 0, {}
    while parts == 0 or cursor:
        part = await talk.call("get_original", session_id=session, id=call_id, cursor=cursor)
        text += str(part["text"])
        cursor, parts = str(part.get("next_cursor") or ""), parts + 1
    own = result_in_file(transcript, call_id)
    return {
        "tool_use_id": call_id,
        "tool": part.get("tool", ""),
        "bytes": len(text.encode()),
        "parts": parts,
        "same_bytes": own is not None and own.encode() == text.encode(),
        "text": text,
    }


async def _undo(talk: Talk, session: str, before: Mapping[str, Any]) -> Json:
    """Undo, and whether the live context is what it was before the compaction."""
    done = await talk.call("undo_compaction", session_id=session)
    now = await talk.call("get_context_status", session_id=session)
    return {**done, "same_hash": now["live_hash"] == before["live_hash"]}
