"""The newest of a session's whole transcript, as a client shows it: masked, and no more than a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.codec import clean, format_time
from mcp_compact.messages.masking import masked
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.deps import Deps
from mcp_compact.service.paging import page, pieces

LOOKED_AT = 400
"""Records that are read from the end: more than fit into a page."""


@dataclass(frozen=True, slots=True)
class TranscriptTail:
    """The newest messages of the archive in their order."""

    messages: tuple[Mapping[str, Any], ...]
    next: str
    """How what is older is found."""


async def transcript_tail(deps: Deps, key: SessionKey) -> TranscriptTail:
    """The newest messages, also those that left the context, up to a page. Raises CallerError `unknown_session`."""
    row = await deps.row(key)
    records = await deps.store.records(
        key, after_seq=max(0, row.last_seq - LOOKED_AT), up_to_seq=row.last_seq, live_only=False
    )
    shown = [_shown(record) for record in records if record.is_message]
    # The newest first, since it is the older ones that have to stay out.
    taken, _ = page(list(pieces(shown[::-1], deps.settings.page_tokens)), 0, deps.settings.page_tokens)
    is_all = len(taken) == len(shown) and row.last_seq <= LOOKED_AT
    return TranscriptTail(
        tuple(taken[::-1]), "" if is_all else "search_messages finds older ones, get_original reads one"
    )


def _shown(record: Record) -> dict[str, Any]:
    message = record.message
    return {
        "uuid": record.uuid,
        "role": message.role if message else record.type,
        "time": format_time(record.at_ms) if record.at_ms is not None else "",
        "content": _masked(clean(message.content if message else "")),
    }


def _masked(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Every text in a JSON value masked for keys."""
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, OBJECT):
        return {name: _masked(item) for name, item in value.items()}
    return [_masked(item) for item in value] if isinstance(value, list | tuple) else value
