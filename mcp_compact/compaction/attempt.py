"""One attempt at compacting: what is given, what is asked for in return, and the window that a path chose."""

from __future__ import annotations

from dataclasses import dataclass

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.policy import Policy, levels
from mcp_compact.compaction.request import Bodies, CompactRequest, Loaded, Surroundings
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.messages.message import Entry

FEWEST_MEMORY_TOKENS = 60


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call: what is to be compacted, how, and (where they were asked for) the bodies and a summary."""

    snapshot: Snapshot
    request: CompactRequest
    policy: Policy
    around: Surroundings
    loaded: Loaded | None = None
    answer: SummaryAnswer | None = None
    drop_tokens: int = 0
    """So much of the oldest material is left out of a summary's request: it was too long for the writer."""
    room_tokens: int | None = None
    """What the writer has room for beside its own context; None: a window of its own, as large as the session's."""


@dataclass(frozen=True, slots=True)
class NeedsRecords:
    """Bodies are needed: load the live records after `after_seq`, then call again with them."""

    after_seq: int


@dataclass(frozen=True, slots=True)
class Window:
    """What leaves and what stays, and whether the memory must be written anew first."""

    target: int
    """Tokens that memory, tail and restored context may take together."""
    index: int
    kept: tuple[Entry, ...]
    refresh: bool
    covered_seq: int = 0
    """The memory covers the list up to here; 0 for nothing."""

    def last_leaving(self, snapshot: Snapshot) -> Entry | None:
        """The newest entry that leaves, as far as the snapshot holds it."""
        at = len(snapshot.tail) - len(self.kept) - 1
        return snapshot.tail[at] if at >= 0 else None

    def bodies(self, attempt: Attempt) -> Bodies | NeedsRecords:
        """The bodies that the memory does not cover, parted at the cut; what to load where they are not at hand."""
        loaded = attempt.loaded
        if loaded is None or loaded.after_seq > self.covered_seq:
            return NeedsRecords(self.covered_seq)
        cut_seq = self.kept[0].seq if self.kept else attempt.snapshot.base.last_seq + 1
        records = [record for record in loaded.records if record.seq > self.covered_seq]
        return Bodies(tuple(r for r in records if r.seq < cut_seq), tuple(r for r in records if r.seq >= cut_seq))


def target_of(snapshot: Snapshot, request: CompactRequest, policy: Policy) -> int:
    """Tokens that memory, tail and restored context may take together."""
    if request.target_tokens is not None:
        return request.target_tokens
    return levels(snapshot.context_window, policy.compact_at).compact - 1 - snapshot.overhead_tokens
