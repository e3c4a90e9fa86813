"""The active branch: which records of the archive belong to the conversation as it stands.

The parents of the last record, through records of every type. An answer that is stored block
by block looks like a fork wherever calls ran in parallel, so all records of a message id on
the way belong to it, and so do the results of their calls. A record whose parent is missing
(or stands later) goes on from the record before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_compact.messages.ids import ApiMessageId, MessageUuid, ToolUseId
from mcp_compact.messages.message import Record


@dataclass(frozen=True, slots=True)
class Link:
    """What the branch needs of a record."""

    seq: int
    uuid: MessageUuid
    parent_uuid: MessageUuid | None = None
    is_root: bool = False
    message_id: ApiMessageId | None = None
    calls: tuple[ToolUseId, ...] = ()
    results: tuple[ToolUseId, ...] = ()


def link_of(record: Record) -> Link:
    """The links of a record."""
    message = record.message
    return Link(
        record.seq,
        record.uuid,
        record.parent_uuid,
        record.is_root,
        message.id if message else None,
        tuple(call.id for call in record.calls),
        tuple(result.tool_use_id for result in record.results),
    )


def parent_positions(links: Sequence[Link], before: Mapping[MessageUuid, int] | None = None) -> list[int | None]:
    """For each link the position of its parent: an index, -1 for "older than this list", None for a root.

    `before` names older records outside the list (any value); their children get -1.
    """
    at: dict[MessageUuid, int] = {}
    out: list[int | None] = []
    for index, link in enumerate(links):
        parent = link.parent_uuid
        if parent is not None and parent in at:
            out.append(at[parent])
        elif parent is not None and before and parent in before:
            out.append(-1)
        elif link.is_root:
            out.append(None)
        else:
            out.append(index - 1)
        at.setdefault(link.uuid, index)
    return out


def active_positions(links: Sequence[Link]) -> set[int]:
    """Positions of the links on the active branch, its last record the newest link."""
    parents = parent_positions(links)
    chain: set[int] = set()
    at: int | None = len(links) - 1
    while at is not None and at >= 0:
        chain.add(at)
        at = parents[at]
    return chain | set(_belonging(links, chain))


def _belonging(links: Sequence[Link], chain: Iterable[int]) -> Iterable[int]:
    """Records that share a message id with the chain, and results of calls of all these."""
    ids = {links[i].message_id for i in chain} - {None}
    shared = {i for i, link in enumerate(links) if link.message_id in ids}
    calls = {call for i in shared.union(chain) for call in links[i].calls}
    return shared | {i for i, link in enumerate(links) if not calls.isdisjoint(link.results)}
