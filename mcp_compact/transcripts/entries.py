"""What a translated format says of its entries: one value for each record to be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mcp_compact.messages.message import Message
from mcp_compact.messages.values import value
from mcp_compact.transcripts.kinds import BOUNDARY


@value
class Entry:
    """One record to be, as its format understood it."""

    kind: str
    """Its type, as the report counts it."""
    raw: Mapping[str, Any]
    message: Message | None = None
    uuid: str | None = None
    """Its own id; None where it has none."""
    parent: str | None = None
    """The entry that it follows; None: the one before."""
    is_root: bool = False
    """Nothing comes before it."""
    at: object = None
    subtype: str = ""
    is_meta: bool = False
    is_summary: bool = False
    agent_id: str | None = None
    body: bytes | None = None
    """Its bytes in the file; None where it was made of a part of an entry."""
    compaction: Mapping[str, Any] | None = None
    """Of a boundary: what the client told of its own compaction, in the names that `native` reads."""
    unknown: tuple[str, ...] = ()
    """What of it was not understood: counted, and kept as it is."""


def boundary(
    raw: Mapping[str, Any], *, kept: Iterable[str] = (), segment: tuple[str, str] | None = None,
    trigger: str | None = None, tokens_before: int | None = None, tokens_after: int | None = None,
    **more: Any,  # noqa: ANN401 - fields of an entry
) -> Entry:  # fmt: skip
    """The entry of a client's own compaction.

    `kept`: uuids of the earlier records that it kept; or `segment`: the first and the last of them, where what stands
    between is for the archive to tell.
    """
    told = {"trigger": trigger, "preTokens": tokens_before, "postTokens": tokens_after}
    stated: dict[str, Any] = {key: value for key, value in told.items() if value is not None}
    if uuids := list(kept):
        stated["preservedMessages"] = {"uuids": uuids}
    elif segment is not None:
        stated["preservedSegment"] = {"headUuid": segment[0], "tailUuid": segment[1]}
    return Entry(str(more.pop("kind", "compaction")), raw, subtype=BOUNDARY, compaction=stated, **more)
