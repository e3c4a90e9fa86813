"""What to do where a compaction came to nothing: one sentence or two, by the reason that decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_compact.compaction.attempt import target_of
from mcp_compact.compaction.cuts import open_call_index
from mcp_compact.compaction.micro_request import is_compactable
from mcp_compact.compaction.pipeline import NothingDone
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.policy import Policy, levels
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.messages.message import Entry

OF_PATHS = ("custom_instructions", "not_configured", "reactive", "summary_given")
"""Why a path was not for this call: no reason why nothing was done."""
OF_SIZE = ("gain_too_small", "no_room", "nothing_to_compact", "still_above_target", "too_long")
"""What more can be done depends on what the context holds."""
SMALL_TOKENS = 1_000
"""Of a context that is hardly more than the notes that would stand for it."""
SAME = "Nothing has changed since the last attempt; force=true makes it again all the same. "
WRITE_ANEW = (
    "Call again: the writer gave no usable summary, another try may. Or name another in MCP_COMPACT_SUMMARIZERS."
)
LATER = "Call again later, or name another writer too in MCP_COMPACT_SUMMARIZERS."
MODEL = (
    "Let MCP_COMPACT_LLM_MODEL name a provider and a model of it, or name another writer in MCP_COMPACT_SUMMARIZERS."
)
KEY = "Set MCP_COMPACT_LLM_API_KEY, or name another writer in MCP_COMPACT_SUMMARIZERS."
MEMORY = "Write the session memory with update_session_memory (its whole content), then call again."
WITHOUT = " Without custom_instructions the session memory stands in, which needs no writer."
NEXT = {
    "base_changed": (
        "Somebody else compacted this session just now, or took messages or a compaction back: nothing was written "
        "here. Fetch get_messages_after_boundary, the context as it is now; compact again only if it is still due."
    ),
    "below_threshold": "Go on working; pass force=true to compact now all the same.",
    "blocked_by_hook": "The hook says why in `declined`. Do what it asks for; force=true compacts all the same.",
    "summary_required": "Write the summary that is asked for and hand it in with submit_summary.",
    # Session memory.
    "switched_off": "Switch MCP_COMPACT_FLAG_SM_COMPACT on, or name a writer in MCP_COMPACT_SUMMARIZERS.",
    "mark_not_found": MEMORY,
    "no_memory": MEMORY,
    "memory_empty": MEMORY,
    "memory_behind": MEMORY,
    # A summary that is no good.
    "blank": WRITE_ANEW,
    "copy_of_prompt": WRITE_ANEW,
    "cut_off": "Raise MCP_COMPACT_LLM_MAX_TOKENS and call again, or name another writer in MCP_COMPACT_SUMMARIZERS.",
    "error_text": WRITE_ANEW,
    "refused": WRITE_ANEW,
    "thinking_only": WRITE_ANEW,
    "too_large": "The summary is too long for the room that it has: call again, or pass a larger target_tokens.",
    "too_short": WRITE_ANEW,
    "tool_call": WRITE_ANEW,
    # A writer that gave none.
    "bad_address": "Correct MCP_COMPACT_LLM_BASE_URL, or name another writer in MCP_COMPACT_SUMMARIZERS.",
    "bad_answer": WRITE_ANEW,
    "bad_key": KEY,
    "bad_model": MODEL,
    "no_answer": WRITE_ANEW,
    "no_key": KEY,
    "no_such_model": MODEL,
    "no_tries": WRITE_ANEW,
    "not_installed": "Install the extra (pip install 'mcp-compact[llm]'), or name another in MCP_COMPACT_SUMMARIZERS.",
    "quota": "The account is used up: another key, or another writer in MCP_COMPACT_SUMMARIZERS.",
    "rate_limited": LATER,
    "rejected": "The provider says in `declined` what it does not take: another model, or another writer.",
    "timeout": "Call again, raise MCP_COMPACT_LLM_TIMEOUT_S, or name another writer in MCP_COMPACT_SUMMARIZERS.",
    "unavailable": LATER,
}
"""What to do, by the reasons that are no matter of the context's size."""
OF_WRITERS = frozenset(NEXT) - {
    "base_changed", "below_threshold", "blocked_by_hook", "summary_required",
    "switched_off", "mark_not_found", "no_memory", "memory_empty", "memory_behind",
}  # fmt: skip
TOO_LONG_TO_WRITE = "Name a writer with a larger context window in MCP_COMPACT_SUMMARIZERS."
LARGER_WINDOW = "a model with a larger window"
NO_PATH = "Switch MCP_COMPACT_FLAG_SM_COMPACT on, or name a writer in MCP_COMPACT_SUMMARIZERS."
OF_CLIENT = (
    "This client keeps its own history: its own /compact makes that smaller, or a fresh session with what "
    "`mcp-compact handoff` writes."
)


@dataclass(frozen=True, slots=True)
class Situation:
    """What was to be compacted, and what was asked for."""

    snapshot: Snapshot
    request: CompactRequest
    policy: Policy
    is_client: bool = False
    """Does a client keep the history?"""


def next_step(outcome: NothingDone, there: Situation) -> str:
    """What to do next, for the caller."""
    decided = _decided(outcome.declined)
    if decided is None:
        return NO_PATH
    if decided.reason == "too_long" and decided.path == "summary":
        return TOO_LONG_TO_WRITE + _without_instructions(there)
    if decided.reason in OF_SIZE:
        return _of_size(there, decided.reason)
    if decided.reason == "same_attempt":
        return SAME + _of_size(there, decided.reason)
    told = NEXT.get(decided.reason, WRITE_ANEW)
    return told + (_without_instructions(there) if decided.reason in OF_WRITERS else "")


def _decided(declined: Sequence[Declined]) -> Declined | None:
    """The last reason that is one: the last path was the last chance."""
    return next((item for item in reversed(declined) if item.reason not in OF_PATHS), None)


def _without_instructions(there: Situation) -> str:
    return WITHOUT if there.request.custom_instructions.strip() and there.policy.sm_compact else ""


# ---------------------------------------------------------------- the context's size


def _of_size(there: Situation, reason: str) -> str:
    snapshot = there.snapshot
    ladder = levels(snapshot.context_window, there.policy.compact_at)
    target, tokens = target_of(snapshot, there.request, there.policy), snapshot.live_tokens + snapshot.overhead_tokens
    stays = "a compaction would free too little" if reason == "gain_too_small" else "no more of it may leave"
    if there.request.trigger == "reactive" or reason == "too_long":
        return _too_large(there, f"The prompt is too long for the provider, and {stays}", LARGER_WINDOW)
    if tokens >= ladder.compact:
        over = f"The context is too large ({tokens} of {ladder.window} tokens), and {stays}"
        return _too_large(there, over, LARGER_WINDOW)
    if snapshot.live_tokens > target:
        over = f"The context ({snapshot.live_tokens} tokens of messages) is above the target of {target}, and {stays}"
        return _too_large(there, over, "a larger target_tokens")
    if snapshot.live_tokens < SMALL_TOKENS:
        return "Go on working: the context holds hardly more than the notes that would stand for it."
    return "Go on working: the context is within its target; a smaller target_tokens (with force=true) lets more leave."


def _too_large(there: Situation, over: str, larger: str) -> str:
    """That it is too large, which message most of all, and what can be done."""
    if there.is_client:
        return f"{over}. {OF_CLIENT}"
    largest = _largest(there.snapshot)
    named = "" if largest is None else f" The largest message is {_named(there, largest)}."
    can = [*(_ways(there, largest) if largest else ()), *_less_overhead(there.snapshot), larger]
    return f"{over}.{named} What can be done: {'; '.join(can)}."


def _largest(snapshot: Snapshot) -> Entry | None:
    return max(snapshot.tail, key=lambda entry: snapshot.family.tokens(entry.weight), default=None)


def _named(there: Situation, entry: Entry) -> str:
    tools = dict.fromkeys(result.tool for result in there.snapshot.results if result.seq == entry.seq and result.tool)
    of = f", result of {', '.join(tools)}" if tools else ""
    return f"{entry.uuid} ({entry.role}{of}, {there.snapshot.family.tokens(entry.weight)} tokens)"


def _ways(there: Situation, entry: Entry) -> Iterator[str]:
    """How this message could be made smaller or taken out."""
    snapshot, micro = there.snapshot, there.policy.micro
    frees = [
        result
        for result in snapshot.results
        if result.seq == entry.seq
        and is_compactable(result.tool, micro)
        and snapshot.family.frees(result.weight - result.cleared_weight)
    ]
    if frees:
        yield "microcompact_tool_results with mode=all and keep=0 clears its result (get_original gives it back)"
    still_open = open_call_index(snapshot.tail)
    if still_open is None or entry.seq < snapshot.tail[still_open].seq:
        yield f"snip_messages (profile full) with uuids={entry.uuid} and force=true takes it out"


def _less_overhead(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.overhead_tokens > snapshot.live_tokens:
        yield f"a shorter system prompt or fewer tools ({snapshot.overhead_tokens} tokens)"
