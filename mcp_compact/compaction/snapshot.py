"""What a compaction works on: one consistent reading of a session, bodies left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.message import Entry
from mcp_compact.messages.tool_inputs import Lines
from mcp_compact.messages.weights import NOTHING, Family, Weight


@dataclass(frozen=True, slots=True)
class Base:
    """What a plan was made for. A newer marker makes it void; mere appends do not."""

    last_seq: int
    marker_seq: int
    """The current marker, 0 for none."""
    live_hash: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A version of the session memory and what it covers, read as one."""

    text: str
    version: int
    mark_uuid: MessageUuid | None = None
    """The record it was written up to; None: it covers nothing, or everything (`covers_all`)."""
    mark_seq: int | None = None
    """Where that record stands; None where the archive does not hold it."""
    covers_all: bool = False
    writer: str = "agent"
    """Who wrote it: `agent`, `extractor` or a model."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """A standing instruction of the user, word for word, and the record that holds it."""

    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class ServiceRecord:
    """A record that the last boundary brought: its summary, an attachment, a hook result."""

    uuid: MessageUuid
    seq: int
    weight: Weight
    text: str
    kind: str = "summary"
    """`summary`, `attachment` or `hook_result`."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A pin: something that every later context must hold. `kind`: instruction, plan, todos, skill, file or tools."""

    kind: str
    name: str
    text: str
    seq: int = 0
    """Newest record when it was pinned."""


class InputFacts(NamedTuple):
    """What is kept of the input of a call."""

    hash: bytes = b""
    """Of the input's JSON: calls of one tool with the same hash are the same call. Empty where it is not known."""
    freed_units: int = 0
    """What clearing the input frees: its units less those of what would stand in its place."""
    path: str = ""
    """The file that it names."""
    lines: Lines | None = None
    """What a read of that file asks for; None where that is not known."""


class CallFacts(NamedTuple):
    """A live call, as its result knows it."""

    uuid: MessageUuid
    seq: int
    block: int
    input: InputFacts
    holds_thinking: bool = False
    """Does a record of its message id hold thinking? Then its input is never changed."""
    input_cleared: bool = False


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """One tool result of the live context that could be cleared."""

    tool_use_id: ToolUseId
    tool: str
    uuid: MessageUuid
    seq: int
    block: int
    weight: Weight
    """Of the whole result as it is now."""
    cleared_weight: Weight
    """Of what would stand in its place."""
    at_ms: int | None = None
    is_error: bool = False
    cleared: bool = False
    call: CallFacts | None = None
    """The newest live call of that id; None where there is none, or where nobody asked."""


@dataclass(frozen=True, slots=True)
class MediaFacts:
    """One image or document of the live context. `part` is its place inside a result."""

    kind: str
    uuid: MessageUuid
    seq: int
    block: int
    part: int | None
    tokens: int
    tool_use_id: ToolUseId | None = None
    mark_units: int = 0
    """Of the mark that would stand in its place, by the counter of the texts around it."""
    bytes: int = 0
    """What it takes in a request: base64 as it stands, or the text of a document; 0 for an address."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One reading of a session's live context.

    `tail` holds the newest live records without service records, as far back as any cut may
    reach; `tail_is_all` says that it begins at the floor. Weights are those of the live context
    (clearings applied).
    """

    base: Base
    family: Family
    tail: tuple[Entry, ...]
    tail_is_all: bool
    live_weight: Weight
    """Of everything live, service records included."""
    live_count: int
    """Live records, service records left out."""
    service: tuple[ServiceRecord, ...] = ()
    results: tuple[ResultFacts, ...] = ()
    """Results of the tail that are not cleared."""
    memory: Memory | None = None
    instructions: tuple[Instruction, ...] = ()
    discovered_tools: tuple[str, ...] = ()
    registered: tuple[Registered, ...] = ()
    """The pins in force, in the order in which they were made."""
    context_window: int | None = None
    overhead_tokens: int = 0
    """System prompt and tools: what the provider counts beside the messages."""
    last_message_uuid: MessageUuid | None = None
    last_user_message_uuid: MessageUuid | None = None

    @property
    def live_tokens(self) -> int:
        """Tokens of the live context without overhead."""
        return self.family.tokens(self.live_weight)

    @property
    def service_weight(self) -> Weight:
        return sum((item.weight for item in self.service), NOTHING)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far back a snapshot's tail must go.

    Until its weight is at least `max_tokens`, or at least `min_tokens` with `min_text` text-holding
    records, and until `down_to_seq` (exclusive) where that is given; then on to whole pairs and whole
    message ids; or to the floor.
    """

    min_tokens: int
    min_text: int
    max_tokens: int
    down_to_seq: int | None = None
