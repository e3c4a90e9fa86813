"""The archive: a dozen coarse operations, each one transaction. Nothing in it is ever changed or removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from mcp_compact.compaction.snapshot import Registered as Registered  # noqa: PLC0414 - the port's own word too
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.markers import Clearing, Marker
from mcp_compact.messages.message import Record
from mcp_compact.messages.values import value
from mcp_compact.messages.weights import Weight
from mcp_compact.ports.bindings import Bindings
from mcp_compact.ports.search import Found, SearchQuery

if TYPE_CHECKING:
    # A client's hook loads this module, and of all these not one: they would cost it more than its own work.
    from mcp_compact.compaction.micro import Clearable
    from mcp_compact.compaction.plan import ClearingPlan, CompactionPlan
    from mcp_compact.compaction.snapshot import Base, InputFacts, MediaFacts, Memory, Reach, Snapshot
    from mcp_compact.compaction.snip import SnipPlan


@dataclass(frozen=True, slots=True)
class SessionKey:
    """Names a session; the namespace is `local` or the tenant's."""

    namespace: str
    session_id: str


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What a caller or an import states of a session. None leaves what is stored."""

    title: str | None = None
    model: str | None = None
    context_window: int | None = None
    cwd: str | None = None
    owner: str | None = None
    """`loop` (the caller sends what we give it) or `client` (the client keeps its own history)."""
    parent_session_id: str | None = None
    agent_id: str | None = None
    overhead_tokens: int | None = None


@value
class Prepared:
    """A record ready to be stored: counted, its links found, its instructions noted.

    Preparing is pure and happens outside of the transaction.
    """

    record: Record
    weight: Weight
    """By estimate; never changes."""
    exact_units: int | None
    """Text units by the tokenizer, None where it was not ready."""
    result_weights: tuple[Weight, ...]
    """Of each result block, in the order of `record.results`."""
    cleared_weights: tuple[Weight, ...]
    """Of what would stand in each result's place."""
    media: tuple[MediaFacts, ...] = ()
    inputs: tuple[InputFacts, ...] = ()
    """Of each call, in the order of `record.calls`; empty where nobody looked."""
    instructions: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Names of tools that a tool search discovered."""
    content_hash: bytes = b""
    """Of role and content; recognises a list that is sent again. Empty for imported records."""


@dataclass(frozen=True, slots=True)
class NativeBoundary:
    """A client's own compaction found in a transcript; `uuid` names its record, stored in the same batch or earlier."""

    uuid: MessageUuid
    service: tuple[MessageUuid, ...]
    preserved: tuple[MessageUuid, ...]
    metadata: dict[str, object] = field(default_factory=dict)
    cleared_tool_use_ids: tuple[ToolUseId, ...] = ()
    """Of a client's own micro-compaction; then it is no compact boundary."""
    micro: bool = False


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """How far a file was read: an import goes on from there."""

    source: str
    offset: int
    line: int
    ordinal: int
    head_hash: str
    """Of the first bytes read: another file under the same name starts afresh."""
    state: str = ""
    """The reader's own state, as JSON."""
    session_id: str = field(default="", compare=False)
    """The session that it was read into; empty before it is stored."""


@value
class Batch:
    """What one append brings."""

    records: tuple[Prepared, ...]
    facts: SessionFacts = field(default_factory=SessionFacts)
    boundaries: tuple[NativeBoundary, ...] = ()
    position: SourcePosition | None = None
    create: bool = True

    @property
    def is_import(self) -> bool:
        """Does it come from a transcript? Imported records carry no content hash."""
        if self.position is not None:
            return True
        # A plain loop: this is asked at each append.
        for item in self.records:
            if item.content_hash:
                return False
        return bool(self.records)


@value
class Appended:
    """What an append did. `uuids` are all records of the batch in order, new or known."""

    uuids: tuple[MessageUuid, ...]
    new: int
    known: int
    conflicts: tuple[MessageUuid, ...]
    """Same uuid, other content: the stored one stays, the other is archived beside it."""
    missing_parents: tuple[MessageUuid, ...]
    last_seq: int
    row: SessionRow
    """The session's counters as they are now."""


@dataclass(frozen=True, slots=True)
class LiveMedia:
    """Images and documents of a live context: how many, and what they take in a request, in bytes."""

    count: int = 0
    bytes: int = 0


@value
class SessionRow:
    """A session's counters: one row answers most questions."""

    key: SessionKey
    title: str
    model: str
    context_window: int | None
    cwd: str
    owner: str
    parent_session_id: str | None
    agent_id: str | None
    created_ms: int
    updated_ms: int
    last_seq: int
    """Records in the archive, markers and service records included."""
    message_count: int
    marker_seq: int
    live_count: int
    live_weight: Weight
    live_hash: str
    overhead_tokens: int
    overhead_source: str
    """`usage` (measured), `given`, or `none`."""
    compactions: int
    last_compaction_ms: int | None
    memory_version: int
    memory_mark_seq: int | None
    declines: dict[str, int]
    last_attempt: str
    body_bytes: int
    client_tokens: int | None = None
    """Tokens of the last request by the client's own usage, and what was appended since; None without usage.

    Our own boundaries do not change it, a client's own does.
    """
    forked_at: int | None = None
    """Of a fork: the last record of its parent that it began with, by seq; 0 for none. None: it is no fork."""
    auto_failures: int = 0
    """Automatic compactions in a row that came to nothing; any compaction that is done begins the count anew."""
    active_ms: int = 0
    """When it was last at work: the time of its newest record, or of a compaction. Stored it was at `updated_ms`."""
    memory_weight: Weight = field(default_factory=Weight)
    """Of the newest memory, by estimate."""
    media: LiveMedia = field(default_factory=LiveMedia)


@dataclass(frozen=True, slots=True)
class LivePage:
    """Live records in order with their bodies, and the clearings that apply to them."""

    records: tuple[Record, ...]
    clearings: dict[MessageUuid, tuple[Clearing, ...]]
    next_after: int | None
    """Position to go on from; None at the end."""
    version: str
    """Changes when the live context changes in any way but by an append."""
    service: tuple[MessageUuid, ...] = ()
    """Which of the live records the last boundary brought."""
    boundary: Marker | None = None


@dataclass(frozen=True, slots=True)
class Stamp:
    """Time and identifiers for what a commit writes; made outside of the transaction."""

    now_ms: int
    uuids: tuple[str, ...]
    duration_ms: int = 0
    """How long the compaction took, from its first reading."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A compaction that waits for its summary: what was asked, and what it was asked of.

    Nothing else is stored: the same request on the same base makes the same plan.
    """

    compaction_id: str
    key: SessionKey
    request: str
    """The request as JSON."""
    base: Base
    created_ms: int
    expires_ms: int
    used: bool = False


@value
class Committed:
    """A marker that was written, or why it was not (`base_changed`, `nothing_to_clear`, `nothing_to_snip`)."""

    marker: Marker | None
    reason: str = ""
    live_hash: str = ""
    live_weight: Weight = field(default_factory=Weight)


class Store(Bindings, Protocol):
    """Every method is one transaction, or none; a cancelled call leaves none open."""

    async def append(self, key: SessionKey, batch: Batch, now_ms: int) -> Appended: ...

    async def session(self, key: SessionKey) -> SessionRow | None: ...

    async def sessions(
        self, namespace: str, *, cwd: str | None, limit: int, before_ms: int | None
    ) -> list[SessionRow]: ...

    async def position(self, namespace: str, source: str) -> SourcePosition | None: ...

    async def snapshot(self, key: SessionKey, reach: Reach, *, up_to_seq: int | None = None) -> Snapshot | None:
        """One reading of the live context; with `up_to_seq` as if nothing newer had been appended.

        A marker that came since is not left out: the base shows it. Overhead and memory are today's.
        """
        ...

    async def clearable(self, key: SessionKey) -> Clearable | None:
        """Uncleared results and media of the live context, old to new, and the newest answer; None: no session."""
        ...

    async def records(self, key: SessionKey, *, after_seq: int, up_to_seq: int, live_only: bool) -> list[Record]: ...

    async def live(self, key: SessionKey, *, after: int, limit: int, max_bytes: int) -> LivePage | None: ...

    async def commit(
        self, key: SessionKey, plan: CompactionPlan | ClearingPlan | SnipPlan, stamp: Stamp
    ) -> Committed: ...

    async def put_pending(self, pending: Pending) -> None:
        """Remember a summary that somebody is writing; what expired before is forgotten.

        The same id again replaces it while it is unused. Raises CallerError `no_such_session`.
        """
        ...

    async def pending(self, namespace: str, compaction_id: str) -> Pending | None: ...

    async def use_pending(self, namespace: str, compaction_id: str, now_ms: int) -> bool:
        """Mark it as used; False where it was used before, has expired, or is not there."""
        ...

    async def register(self, key: SessionKey, item: Registered, now_ms: int) -> None:
        """Pin something; the same kind and name replaces what was there, in its place.

        `seq` is found here. Raises CallerError: `too_long` (over 400,000 characters), `no_such_session`.
        """
        ...

    async def unregister(self, key: SessionKey, kind: str, name: str) -> bool:
        """Take a pin back; False where there is none of that name."""
        ...

    async def registered(self, key: SessionKey) -> list[Registered]:
        """The pins in force, in the order in which they were made."""
        ...

    async def create_session(self, key: SessionKey, facts: SessionFacts, now_ms: int) -> bool:
        """A new, empty session; False where it is there already (its facts are not changed)."""
        ...

    async def delete_session(self, key: SessionKey) -> int:
        """Remove a session with everything that was made of it; the number of records removed, 0 for no session.

        Sub-agents' sessions and forks stay, with the bodies that they share.
        """
        ...

    async def fork_session(self, key: SessionKey, new_key: SessionKey, up_to: MessageUuid | None, now_ms: int) -> int:
        """A new session that begins with this one's live context (up to a message); bodies are shared. Live records.

        Its owner is `loop`: no client knows of it. Raises CallerError: `session_exists`, `unknown_message` (not in
        the live context), `no_such_session`.
        """
        ...

    async def undo(self, key: SessionKey, stamp: Stamp) -> Committed: ...

    async def memory(self, key: SessionKey, version: int | None = None) -> Memory | None: ...

    async def write_memory(
        self,
        key: SessionKey,
        text: str,
        mark_uuid: MessageUuid | None,
        writer: str,
        now_ms: int,
        *,
        if_version: int | None = None,
    ) -> Memory:
        """Add a version; with `if_version` only where that one is still the newest (0: none was written yet).

        Raises CallerError: `no_such_session`, `memory_changed`.
        """
        ...

    async def note(
        self, key: SessionKey, *, decline: str = "", attempt: str = "", auto_failed: bool | None = None
    ) -> None:
        """Count a decline by its reason; remember the fingerprint of an attempt that came to nothing.

        `auto_failed` counts another automatic compaction that came to nothing; False begins that count anew.
        """
        ...

    async def record(self, key: SessionKey, uuid: MessageUuid) -> Record | None: ...

    async def newest_message(self, key: SessionKey) -> MessageUuid | None:
        """The last message of the live context."""
        ...

    async def call(self, key: SessionKey, tool_use_id: ToolUseId) -> tuple[Record | None, Record | None]:
        """The records of a call and of its result; the first result's, however often it was cleared."""
        ...

    async def markers(self, key: SessionKey) -> list[Marker]: ...

    async def index_more(self) -> tuple[int, int]:
        """Make some of what was stored last ready for searches: how many records, and how many still wait."""
        ...

    async def search(self, namespace: str, query: SearchQuery) -> Found: ...

    async def match_prefix(self, key: SessionKey, hashes: Sequence[bytes]) -> int:
        """How many of these content hashes, from the first on, the loop's own messages already are, by position."""
        ...
