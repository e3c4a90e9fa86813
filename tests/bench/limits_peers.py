"""Other libraries on the same messages: what their compaction costs, and what is left after it.

Two kinds: clearing old tool results, and cutting to a size. Ours is shown as the pure plan over what an archive holds,
as the archive's whole operation, and as the library's function over bare messages. A library that is not installed is
left out, and the table says so.
"""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from mcp_compact import compact
from mcp_compact.adapters.sqlite import operations
from mcp_compact.compaction.in_memory import clearable_of, conversation
from mcp_compact.compaction.micro import MicroMode, MicroRequest, plan_clearing
from mcp_compact.compaction.plan import ClearingPlan
from mcp_compact.compaction.policy import MicroPolicy
from mcp_compact.compaction.request import Surroundings
from mcp_compact.config import load_settings
from mcp_compact.messages.live import LiveContext, live_context
from mcp_compact.messages.weights import CLAUDE
from mcp_compact.service.prepare import prepare
from mcp_compact.testing import Talk, tool_result
from tests.adapters.sqlite.builders import KEY
from tests.bench.measuring import Times, milliseconds

MESSAGES, FEW = 10_000, 2_000
"""The second for libraries whose time grows with the square of the number."""
BUDGET = 100_000
LONG_AGO_S = 1_700_000_000
BY_TOKENS = MicroRequest(mode=MicroMode.TOKENS, trigger_tokens=BUDGET)
Said = tuple[str, str, str]
"""Role, id of a call, text."""
Prepared = Callable[[], Callable[[], Any]]
"""Makes a fresh copy of the messages, and gives what is measured."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to compact, and what it does with what it takes out."""

    name: str
    kind: str
    """`clear` or `cut`."""
    number: int
    originals: str
    prepared: Prepared
    said: Callable[[Any], list[Said]]
    """What is left, of what the measured work gave."""


def corpus(number: int) -> list[Said]:
    """Prompts, calls, their results, answers, in turn."""
    words = [f"word{at}" for at in range(2000)]
    rng = random.Random(7)
    out: list[Said] = []
    for at in range(number):
        match at % 4:
            case 0:
                out.append(("user", "", " ".join(rng.choices(words, k=30))))
            case 1:
                out.append(("call", f"t{at}", f"src/module_{at % 97}.py"))
            case 2:
                out.append(("result", f"t{at - 1}", " ".join(rng.choices(words, k=300))))
            case _:
                out.append(("assistant", "", " ".join(rng.choices(words, k=40))))
    return out


# ---------------------------------------------------------------- ours


def _context(messages: Iterable[Said]) -> LiveContext:
    talk = Talk()
    for role, call, said in messages:
        match role:
            case "user":
                talk.user(said)
            case "call":
                talk.add("assistant", [{"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": said}}])
            case "result":
                talk.add("user", [tool_result(call, said)])
            case _:
                talk.assistant(said)
    return live_context(talk.records, [])


def _anthropic(messages: Iterable[Said]) -> list[dict[str, Any]]:
    return [
        {"role": record.message.role, "content": record.message.content}
        for record in _context(messages).records
        if record.message
    ]


def _said(messages: Iterable[Mapping[str, Any]]) -> list[Said]:
    """Anthropic messages as they are compared."""
    out: list[Said] = []
    for message in messages:
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            match block["type"]:
                case "tool_use":
                    out.append(("call", block["id"], str(block["input"])))
                case "tool_result":
                    said = block.get("content") or ""
                    texts = said if isinstance(said, str) else " ".join(part.get("text", "") for part in said)
                    out.append(("result", block["tool_use_id"], texts))
                case _:
                    out.append((str(message["role"]), "", str(block.get("text", ""))))
    return out


def _without(messages: Sequence[Said], cleared: Iterable[str]) -> list[Said]:
    gone = set(cleared)
    return [(r, c, "[Old tool result content cleared]" if r == "result" and c in gone else s) for r, c, s in messages]


def ours(messages: Sequence[Said], folder: Path) -> list[Peer]:
    """Our plan over stored facts, the archive's operation, the library over bare messages."""
    context = _context(messages)
    facts = clearable_of(conversation(context, CLAUDE, Surroundings()))
    numbers = count()
    stored = prepare(context.records, None, with_content_hash=True)
    bare = _anthropic(messages)

    def planned() -> ClearingPlan:
        return plan_clearing(facts, BY_TOKENS, MicroPolicy())

    def left(plan: ClearingPlan) -> list[Said]:
        return _without(messages, (item.clearing.tool_use_id for item in plan.cleared if item.clearing.tool_use_id))

    def in_archive() -> Callable[[], ClearingPlan]:
        conn = operations.connect(folder / f"peers{next(numbers)}.db")
        from mcp_compact.ports.store import Batch, SessionFacts, Stamp

        operations.append(conn, KEY, Batch(tuple(stored), SessionFacts(model="claude-sonnet-4-5")), 1)

        def run() -> ClearingPlan:
            live = operations.clearable(conn, KEY)
            assert live is not None
            plan = plan_clearing(live, BY_TOKENS, MicroPolicy())
            operations.commit(conn, KEY, plan, Stamp(1, ("marker",)))
            return plan

        return run

    def library() -> list[dict[str, Any]]:
        return compact(bare, target_tokens=BUDGET)[0]

    in_archive_too = "in the archive, by id"
    return [
        Peer("mcp-compact, the plan", "clear", len(messages), in_archive_too, lambda: planned, left),
        Peer("mcp-compact, in the archive", "clear", len(messages), in_archive_too, in_archive, left),
        Peer("mcp-compact, library", "cut", len(messages), "with the caller", lambda: library, _said),
    ]


# ---------------------------------------------------------------- LangChain, compact-middleware


def _langchain(messages: Iterable[Said]) -> list[Any]:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    out: list[Any] = []
    for role, call, said in messages:
        match role:
            case "user":
                out.append(HumanMessage(said))
            case "call":
                out.append(AIMessage("", tool_calls=[{"name": "read_file", "args": {"file_path": said}, "id": call}]))
            case "result":
                out.append(ToolMessage(said, tool_call_id=call, name="read_file"))
            case _:
                # compact-middleware acts where the newest answer is an hour old.
                out.append(AIMessage(said, additional_kwargs={"timestamp": LONG_AGO_S}))
    return out


def _of_langchain(messages: Iterable[Any]) -> list[Said]:
    out: list[Said] = []
    for message in messages:
        if message.type == "tool":
            out.append(("result", message.tool_call_id, str(message.content)))
        elif getattr(message, "tool_calls", None):
            out += [("call", call["id"], str(call["args"])) for call in message.tool_calls]
        else:
            out.append(("user" if message.type == "human" else "assistant", "", str(message.content)))
    return out


def langchain(messages: Sequence[Said]) -> list[Peer]:
    """Its clearing of tool results, and its trimming to a size."""
    from langchain.agents.middleware.context_editing import ClearToolUsesEdit
    from langchain_core.messages.utils import count_tokens_approximately, trim_messages

    theirs = _langchain(messages)

    def clear() -> Callable[[], list[Any]]:
        fresh, edit = copy.deepcopy(theirs), ClearToolUsesEdit(trigger=BUDGET, keep=3)

        def run() -> list[Any]:
            edit.apply(fresh, count_tokens=count_tokens_approximately)
            return fresh

        return run

    def trim() -> Callable[[], list[Any]]:
        fresh = copy.deepcopy(theirs)
        return lambda: trim_messages(
            fresh, max_tokens=BUDGET, token_counter=count_tokens_approximately, start_on="human"
        )

    return [
        Peer("LangChain ClearToolUsesEdit", "clear", len(messages), "gone", clear, _of_langchain),
        Peer("LangChain trim_messages", "cut", len(messages), "gone", trim, _of_langchain),
    ]


def compact_middleware(messages: Sequence[Said]) -> list[Peer]:
    """Its micro-compaction."""
    from compact_middleware.config import MicrocompactConfig
    from compact_middleware.microcompact import microcompact_messages

    theirs = _langchain(messages)

    def clear() -> Callable[[], list[Any]]:
        fresh, config = copy.deepcopy(theirs), MicrocompactConfig()
        return lambda: microcompact_messages(fresh, config)[0]

    return [Peer("compact-middleware", "clear", len(messages), "gone", clear, _of_langchain)]


# ---------------------------------------------------------------- agent-framework


def _framework(messages: Iterable[Said]) -> list[Any]:
    from agent_framework import Content, Message

    out: list[Any] = []
    for role, call, said in messages:
        match role:
            case "call":
                content = Content.from_function_call(call, "read_file", arguments={"file_path": said})
                out.append(Message("assistant", [content]))
            case "result":
                out.append(Message("tool", [Content.from_function_result(call, result=said)]))
            case _:
                out.append(Message(role, [said]))
    return out


def _of_framework(kept: Iterable[Any]) -> list[Said]:
    out: list[Said] = []
    for message in kept:
        for item in message.contents:
            kind = {"function_call": "call", "function_result": "result"}.get(item.type, str(message.role))
            out.append((kind, getattr(item, "call_id", None) or "", item.text or str(item.result or "")))
    return out


def agent_framework(messages: Sequence[Said]) -> list[Peer]:
    """Its clearing of results, and its truncation to a size, at fewer messages."""
    from agent_framework import _compaction as theirs

    few = messages[:FEW]

    def by(strategy: Callable[[], Any]) -> Prepared:
        def prepared() -> Callable[[], list[Any]]:
            fresh, chosen = _framework(few), strategy()
            tokenizer = theirs.CharacterEstimatorTokenizer()
            return lambda: asyncio.run(theirs.apply_compaction(fresh, strategy=chosen, tokenizer=tokenizer))

        return prepared

    def truncation() -> Any:
        size = BUDGET * FEW // MESSAGES
        return theirs.TruncationStrategy(max_n=size, compact_to=size, tokenizer=theirs.CharacterEstimatorTokenizer())

    clear = by(lambda: theirs.ToolResultCompactionStrategy(keep_last_tool_call_groups=5))
    return [
        Peer("agent-framework, tool results", "clear", FEW, "excluded, still in the list", clear, _of_framework),
        Peer("agent-framework, truncation", "cut", FEW, "excluded, still in the list", by(truncation), _of_framework),
    ]


FAMILIES: Mapping[str, Callable[[Sequence[Said]], list[Peer]]] = {
    "langchain": langchain,
    "compact-middleware": compact_middleware,
    "agent-framework-core": agent_framework,
}


# ---------------------------------------------------------------- the table


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of the messages, and what that cost."""

    name: str
    kind: str
    messages: int
    ms: float
    kept_percent: float
    """Characters."""
    prompts_percent: float
    """Prompts that are there word for word."""
    results_percent: float
    """Results that are."""
    orphans: int
    """Calls without a result, and results without a call."""
    originals: str


def rows(folder: Path, repeats: int) -> list[Mapping[str, object]]:
    """Every way over the same messages, in turn."""
    load_settings({})
    messages = corpus(MESSAGES)
    peers = ours(messages, folder)
    out: list[Mapping[str, object]] = []
    for name, family in FAMILIES.items():
        try:
            peers += family(messages)
        except ImportError as error:
            out.append({"name": name, "missing": str(error)})
    times, kept = Times(), {}
    for _ in range(repeats):
        for peer in peers:
            work = peer.prepared()
            found: list[Any] = []
            times.add(peer.name, milliseconds(lambda work=work, found=found: found.append(work())))  # type: ignore[misc]
            kept[peer.name] = peer.said(found[0])
    return [*(asdict(left_of(peer, messages, kept[peer.name], times.median(peer.name))) for peer in peers), *out]


def left_of(peer: Peer, whole: Sequence[Said], kept: Sequence[Said], ms: float) -> Left:
    given = whole[: peer.number]
    calls, results = ({c for r, c, _ in kept if r == role} for role in ("call", "result"))
    return Left(
        name=peer.name,
        kind=peer.kind,
        messages=peer.number,
        ms=round(ms, 2),
        kept_percent=_percent(sum(len(s) for *_, s in kept), sum(len(s) for *_, s in given)),
        prompts_percent=_share(given, kept, "user"),
        results_percent=_share(given, kept, "result"),
        orphans=len(calls ^ results),
        originals=peer.originals,
    )


def _share(given: Sequence[Said], kept: Sequence[Said], role: str) -> float:
    there = "\n".join(said for own, _, said in kept if own == role)
    said = [said for own, _, said in given if own == role]
    return _percent(sum(one in there for one in said), len(said))


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def table(peers: Sequence[Mapping[str, object]]) -> str:
    """As Markdown; each time is that of its number of messages."""
    lines = [
        "| | messages | CPU ms | size left | prompts left | results left | orphans | what went out |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for item in peers:
        if "missing" in item:
            lines.append(f"| {item['name']} | | not installed: {item['missing']} | | | | | |")
            continue
        figures = " | ".join(f"{item[key]} %" for key in ("kept_percent", "prompts_percent", "results_percent"))
        lines.append(
            f"| {item['name']} | {item['messages']:,} | {item['ms']} | {figures} | {item['orphans']} | {item['originals']} |"
        )
    return "\n".join(lines)
