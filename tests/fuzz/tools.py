"""What must hold of any call of any tool: an answer, or a refusal with a code; sessions stay valid, errors store nothing."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp.types import CallToolResult, TextContent

from mcp_compact.adapters.sqlite import operations
from mcp_compact.config import Settings
from mcp_compact.ports.store import SessionKey
from mcp_compact.server.app import build_server, local_place
from mcp_compact.service.service import Service
from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.registry import FORMATS
from mcp_compact.wiring import open_service
from tests.fuzz import shapes
from tests.fuzz.importing import LONGEST_S, everything, look, session_ids, sizes
from tests.fuzz.mutations import mutant, mutated_value, nested, odd_value
from tests.fuzz.samples import samples
from tests.server.talk import conversation

REFUSED = re.compile(r"[a-z_]+: \S")
MOST_KNOWN = 40
WORDS: Mapping[str, tuple[str, ...]] = {
    "format": (*FORMATS, *OUTS, "", "nothing"),
    "trigger": ("agent", "manual", "auto", "reactive", "", "other"),
    "mode": ("age", "tokens", "all", "", "other"),
    "media": ("large", "all", "", "none"),
    "kind": ("instruction", "plan", "todos", "skill", "file", "tools", "", "other"),
    "owner": ("loop", "client", "", "other"),
    "section": ("", "Task", "# User requests and instructions", "worklog", "nothing of it"),
    "query": ("main", "it's", "get_running_loop", '"', "foo/bar.py", "38.101", "*", "NEAR(a b)", "-", "\u8a9e", ""),
    "now": ("", "2026-01-01T00:00:00Z", "1767225600000", "soon"),
    "error": ("", "prompt is too long: 210000 tokens > 200000 maximum", "out of luck"),
    "path": ("", "/etc/passwd", "../../secret", ".", "a\0b", "~/x.jsonl"),
}
NUMBERS = (0, 1, -1, 5, 60, 2_000, 200_000, 2**31, 2**63, -(2**64), 10**30)


class Defects(logging.Handler):
    """What the server logs as an error of its own: none may come of a call."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[BaseException] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self.seen.append(error if error is not None else AssertionError(record.getMessage()))

    def raise_first(self) -> None:
        if self.seen:
            error = self.seen.pop()
            self.seen.clear()
            raise error.__cause__ or error


@dataclass(slots=True)
class Bench:
    """A client and the server's own archive; what was answered so far is what later calls name."""

    client: Client
    service: Service
    schemas: Mapping[str, Mapping[str, Any]]
    defects: Defects
    known: dict[str, list[str]] = field(default_factory=dict)
    last: str = ""
    """The last call, for an account of what failed."""

    def note(self, value: Any, name: str = "") -> None:
        """Remember names that an answer gave: ids, uuids, cursors."""
        if isinstance(value, Mapping):
            for key, inner in value.items():
                self.note(inner, str(key))
        elif isinstance(value, list):
            for inner in value[:5]:
                self.note(inner, name)
        elif isinstance(value, str) and 0 < len(value) < 200:
            known = self.known.setdefault(name, [])
            known.append(value)
            del known[:-MOST_KNOWN]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Bench]:
    """A server with all its tools over an archive in memory, in this process, and a client."""
    settings = Settings(db=Path(":memory:"), hook_entry_points=False, extract=False, follow=False)
    defects = Defects()
    logging.getLogger().addHandler(defects)
    try:
        async with AsyncExitStack() as stack:
            service = await stack.enter_async_context(open_service(settings))
            server = build_server(settings, profile="full", place=local_place(settings, folder))
            client = await stack.enter_async_context(Client(server))
            listed = (await client.list_tools()).tools
            yield Bench(client, service, {tool.name: tool.input_schema["properties"] for tool in listed}, defects)
    finally:
        logging.getLogger().removeHandler(defects)


# ---------------------------------------------------------------- arguments


def arguments(chance: Random, bench: Bench, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a tool: mostly what belongs there, then, often, one thing that does not."""
    given = {
        name: argument(chance, bench, name, schema)
        for name, schema in properties.items()
        if name in ("session_id", "messages", "content") or chance.random() < 0.5
    }
    if chance.random() < 0.25:
        # A transcript belongs into `content` and `messages` alone; anything may be spliced into anything.
        changed = mutated_value(chance, given, [conversation(1), {"a": nested(3)}])
        given = changed if isinstance(changed, dict) else {"session_id": changed}
    return {key: value for key, value in given.items() if isinstance(key, str)}


def argument(chance: Random, bench: Bench, name: str, schema: Mapping[str, Any]) -> Any:
    """Something for a parameter: a name that was answered, a word of its own, or anything of its kind."""
    if chance.random() < 0.08:
        return odd_value(chance)
    if name in MAKERS:
        return MAKERS[name](chance)
    if name in WORDS:
        return chance.choice(WORDS[name])
    match schema.get("type"):
        case "integer":
            return chance.choice(NUMBERS)
        case "boolean":
            return chance.random() < 0.5
        case "array":
            return [argument(chance, bench, "uuid", {}) for _ in range(chance.randrange(4))]
        case _:
            return chance.choice([word for known in bench.known.values() for word in known] or ["x"])


def session(chance: Random) -> str:
    """Mostly the same few."""
    odd = ("", "n\0ul", "s\ud83d", "x" * 300, "fork", "import-1")
    return chance.choice(("s1", "s1", "s1", "s2") if chance.random() < 0.85 else odd)


def messages(chance: Random) -> Any:
    """A conversation, now and then with some changes, as a list or as its text."""
    talk: Any = conversation(chance.randint(1, 3))
    for _ in range(chance.choice((0, 0, 1, 3))):
        talk = mutated_value(chance, talk, [conversation(1)])
    return talk if chance.random() < 0.7 else json.dumps(talk)


def transcript(chance: Random) -> str:
    """A transcript of any format, often changed."""
    pool = [data for of_one in samples().values() for data in of_one]
    data = chance.choice(pool)
    return (mutant(chance, data, pool) if chance.random() < 0.6 else data).decode("utf-8", "replace")


MAKERS = {"session_id": session, "new_session_id": session, "messages": messages, "content": transcript}

# ---------------------------------------------------------------- calls


async def check_calls(bench: Bench, chance: Random, number: int) -> dict[str, int]:
    """So many calls of tools drawn by chance on an empty archive, which is emptied again; how they ended."""
    counted: dict[str, int] = {}
    for _ in range(number):
        tool = chance.choice(sorted(bench.schemas))
        if chance.random() < 0.3:
            tool = chance.choice(("append_messages", "import_transcript", "compact_session"))
        code = await _call(bench, tool, arguments(chance, bench, bench.schemas[tool]))
        counted[code or "answered"] = counted.get(code or "answered", 0) + 1
    for session in await look(bench.service, session_ids):
        shapes.check(await everything(bench.service, session, "anthropic"))
        await look(bench.service, operations.delete_session, SessionKey(bench.service.namespace, session))
    health = await look(bench.service, lambda conn: operations.check(conn, bodies=True))
    assert (health.damage, health.wrong_totals, health.wrong_bodies) == ((), (), ())
    assert not any((await look(bench.service, sizes)).values())
    bench.known.clear()
    return counted


async def _call(bench: Bench, tool: str, given: dict[str, Any]) -> str:
    """One call; the code of its refusal, empty for an answer."""
    bench.last = f"{tool} {given!r}"
    before = await look(bench.service, sizes)
    result = await _answer(bench, tool, given)
    bench.defects.raise_first()
    if isinstance(result, str):
        return result
    if not result.is_error:
        json.dumps(result.structured_content, ensure_ascii=False, allow_nan=False).encode()
        bench.note(result.structured_content)
        return ""
    [part] = result.content
    assert isinstance(part, TextContent)
    assert REFUSED.match(part.text), f"{tool} said {part.text[:200]!r}"
    assert "Traceback" not in part.text
    assert await look(bench.service, sizes) == before, f"{tool} stored something and said {part.text[:200]!r}"
    return part.text.partition(":")[0]


async def _answer(bench: Bench, tool: str, given: dict[str, Any]) -> CallToolResult | str:
    """What the client gets; in a word, where the call never came to the tool."""
    with anyio.fail_after(LONGEST_S):
        try:
            result = await bench.client.call_tool(tool, given)
        except MCPError as error:
            # JSON that is nested too deeply for the protocol's own reader.
            if error.error.code in (-32602, -32600):
                return "protocol"
            raise
        except ValueError as error:
            # What the client's own side cannot write is not sent.
            if "serializ" in str(error) or "JSON" in str(error):
                return "unsendable"
            raise
    assert isinstance(result, CallToolResult)
    return result
