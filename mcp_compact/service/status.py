"""How full a context is, and a picture of what fills it."""

from __future__ import annotations

from collections.abc import Iterable

from mcp_compact.compaction.in_memory import with_clearings
from mcp_compact.compaction.request import Surroundings
from mcp_compact.messages.blocks import Block, MediaBlock, TextBlock, ThinkingBlock, ToolResultBlock
from mcp_compact.messages.codec import format_time
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.masking import masked
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import UNITS_PER_TOKEN, Family, Weight, countable
from mcp_compact.ports.store import LiveMedia, SessionKey, SessionRow
from mcp_compact.service.breaker import is_open
from mcp_compact.service.deps import Deps, Settings, family
from mcp_compact.service.reading import load_live
from mcp_compact.service.results import Picture, SessionLine, Slice, Status

BYTES_PER_TOKEN = 4
"""Of text as JSON: 3.0 to 4.1 in real sessions. Where size matters, media weigh by far the most."""
NEAR_PERCENT = 80
"""From this share of a provider's limit on, clearing is offered."""
CLEAR_MEDIA = (
    "Call microcompact_tool_results with media=all: all but the newest leave, and get_original gives each back."
)
OF_CLIENT = "This client keeps its own history: its own /compact takes them out."


async def status_of(deps: Deps, key: SessionKey) -> Status:
    """A session's level and counters: one row is read, whatever the session holds."""
    return describe(deps, await deps.row(key))


def describe(deps: Deps, row: SessionRow) -> Status:
    """The status that a session's row tells."""
    kind, ladder, media = family(row), deps.ladder(row), row.media
    message_tokens = kind.tokens(row.live_weight)
    tokens = used_tokens(row, kind)
    covered = row.memory_mark_seq or 0
    size = media.bytes + row.live_weight.units * BYTES_PER_TOKEN // UNITS_PER_TOKEN
    return Status(
        session_id=row.key.session_id,
        owner=row.owner,
        model=row.model,
        family=kind.name,
        tokens=tokens,
        message_tokens=message_tokens,
        overhead_tokens=row.overhead_tokens,
        overhead_source=row.overhead_source,
        context_window=ladder.window,
        window_known=ladder.known,
        percent=round(100 * tokens / ladder.window),
        level=ladder.level(tokens),
        should_compact=tokens >= ladder.compact,
        warning_at=ladder.warning,
        compact_at=ladder.compact,
        hard_at=ladder.hard,
        live_messages=row.live_count,
        archived_records=row.last_seq,
        archived_bytes=row.body_bytes,
        live_hash=row.live_hash,
        compactions=row.compactions,
        last_compaction=format_time(row.last_compaction_ms) if row.last_compaction_ms else None,
        memory_version=row.memory_version,
        memory_tokens=kind.tokens(row.memory_weight),
        uncovered_messages=max(0, min(row.live_count, row.last_seq - covered)),
        declines=row.declines,
        counter=counter_name(deps),
        auto_failures=row.auto_failures,
        breaker_open=is_open(row),
        warnings=_warnings(deps, kind, window_known=ladder.known),
        bytes=size,
        media_count=media.count,
        media_bytes=media.bytes,
        next=_near_a_limit(deps.settings, row, size, media),
    )


def _near_a_limit(settings: Settings, row: SessionRow, size: int, media: LiveMedia) -> str:
    """What to do where the provider would soon refuse the request whatever its tokens; empty where it would not.

    One image is always left by clearing, so a single one is nothing that clearing could help with.
    """
    full = 100 * size >= NEAR_PERCENT * settings.request_bytes
    many = 100 * media.count >= NEAR_PERCENT * settings.request_media
    if media.count < 2 or not (full or many):  # noqa: PLR2004 - see above
        return ""
    held = f"{media.count} images and documents of {media.bytes / 1e6:.1f} MB are in the context"
    limits = f"providers take {settings.request_media} and about {settings.request_bytes // 1_000_000} MB in a request"
    return f"{held}; {limits}. {OF_CLIENT if row.owner == 'client' else CLEAR_MEDIA}"


def used_tokens(row: SessionRow, kind: Family) -> int:
    """Tokens of the next request: for a client's own history by the client's figures, not by our view."""
    if row.owner == "client" and row.client_tokens is not None:
        return row.client_tokens
    return kind.tokens(row.live_weight) + row.overhead_tokens


def counter_name(deps: Deps) -> str:
    """How tokens are counted, for people."""
    tokenizer = deps.tokenizer
    return f"estimate ({tokenizer.reason})" if tokenizer.state == "failed" else tokenizer.name


def _warnings(deps: Deps, kind: Family, *, window_known: bool) -> tuple[str, ...]:
    out = list(deps.settings.warnings)
    if not kind.known:
        out.append("the model is unknown: tokens are counted as o200k x 1.2")
    if not window_known:
        out.append("the context window is unknown: 200,000 tokens are assumed")
    return tuple(out)


def line_of(deps: Deps, row: SessionRow) -> SessionLine:
    """A session in a list."""
    kind, ladder = family(row), deps.ladder(row)
    tokens = used_tokens(row, kind)
    return SessionLine(
        session_id=row.key.session_id,
        title=masked(row.title),
        model=row.model,
        owner=row.owner,
        cwd=row.cwd,
        updated=format_time(row.active_ms),
        stored=format_time(row.updated_ms),
        messages=row.message_count,
        tokens=tokens,
        level=ladder.level(tokens),
        compactions=row.compactions,
        parent_session_id=row.parent_session_id or "",
        is_fork=row.forked_at is not None,
    )


async def picture_of(deps: Deps, key: SessionKey) -> Picture:
    """What fills the live context, by kind. Reads every live body."""
    row = await deps.row(key)
    live, _ = await load_live(deps, key)
    around = await deps.surroundings(key.session_id)
    slices = slices_of(live, family(row), around)
    return Picture(key.session_id, sum(s.tokens for s in slices), deps.ladder(row).window, slices)


def slices_of(live: LiveContext, kind: Family, around: Surroundings) -> tuple[Slice, ...]:
    """The live context by kind: memory, the user's words, assistant, thinking, calls, results by tool, media."""
    tools: dict[ToolUseId, str] = {call.id: call.name for record in live.all for call in record.calls}
    sums: dict[str, tuple[Weight, set[str]]] = {}
    for record in live.all:
        shown = with_clearings(record, live, around)
        for name, block in _kinds(shown, tools, is_service=record in live.service):
            texts, rest = countable([block])
            weight, uuids = sums.get(name, (Weight(), set()))
            sums[name] = (weight + rest + Weight(units=sum(around.count(texts))), uuids | {record.uuid})
    return tuple(Slice(name, kind.tokens(weight), len(uuids)) for name, (weight, uuids) in sums.items())


def _kinds(record: Record, tools: dict[ToolUseId, str], *, is_service: bool) -> Iterable[tuple[str, Block]]:
    for block in record.blocks:
        if is_service:
            yield "memory", block
        elif isinstance(block, ThinkingBlock):
            yield "thinking", block
        elif isinstance(block, ToolResultBlock):
            yield f"{tools.get(block.tool_use_id) or 'unknown tool'} results", block
        elif isinstance(block, MediaBlock):
            yield "images and documents", block
        elif isinstance(block, TextBlock) and record.type == "user":
            yield ("reminders" if record.is_meta else "your words"), block
        else:
            yield ("assistant" if isinstance(block, TextBlock) else "tool calls"), block
