"""When the session memory is to be brought up to date."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_compact.compaction.cuts import total
from mcp_compact.compaction.policy import MemoryPolicy
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.messages.memory_document import is_empty
from mcp_compact.messages.message import Entry


def tokens_until_due(snapshot: Snapshot, policy: MemoryPolicy) -> int:
    """Tokens that must still come before the memory can be due; 0 where enough has come. Tool calls aside.

    The snapshot's tail reaches down to the memory's mark.
    """
    if snapshot.memory is None or is_empty(snapshot.memory.text):
        return max(0, policy.first_at_tokens - snapshot.live_tokens)
    return max(0, policy.then_each_tokens - snapshot.family.tokens(total(_uncovered(snapshot))))


def is_memory_due(snapshot: Snapshot, policy: MemoryPolicy) -> bool:
    """First at `first_at_tokens`; then after `then_each_tokens` more and a pause in the work.

    That is `then_each_calls` tool calls since, or an answer without any: the agent has ended its turn.
    """
    if tokens_until_due(snapshot, policy) > 0:
        return False
    if snapshot.memory is None or is_empty(snapshot.memory.text):
        return True
    fresh = _uncovered(snapshot)
    return sum(len(entry.calls) for entry in fresh) >= policy.then_each_calls or _ended_its_turn(fresh)


def _uncovered(snapshot: Snapshot) -> Sequence[Entry]:
    memory = snapshot.memory
    if memory is None or memory.covers_all:
        return () if memory else snapshot.tail
    return [entry for entry in snapshot.tail if entry.seq > (memory.mark_seq or 0)]


def _ended_its_turn(entries: Sequence[Entry]) -> bool:
    """Does the newest answer, whole, make no call?"""
    newest = next((entry for entry in reversed(entries) if entry.role == "assistant"), None)
    if newest is None:
        return False
    same = [entry for entry in entries if newest.message_id and entry.message_id == newest.message_id]
    return not any(entry.calls for entry in (newest, *same))
