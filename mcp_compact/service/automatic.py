"""Compacting by itself, where the owner of the server has switched that on."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from mcp_compact.errors import CompactError
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.compacting import compact
from mcp_compact.service.deps import Deps
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.results import CompactResult, Status
from mcp_compact.service.status import status_of

CALL = CompactCall(trigger="auto", agent_writes=False)
"""Nobody waits for a question: only paths that need no answer of the caller."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Automatic:
    """What came of it, and the session's status then. The note is empty where it was not tried."""

    status: Status
    compacted: bool = False
    note: str = ""


async def compact_if_due(deps: Deps, key: SessionKey, status: Status) -> Automatic:
    """After an append: compact a loop's session that has reached its threshold.

    A client that keeps its own history is left alone: nothing that it sends would shrink. The messages are
    stored already, so a failure here is told in the note and never raised: the caller would send them again.
    """
    if not (deps.settings.auto and status.owner == "loop" and status.should_compact):
        return Automatic(status)
    try:
        result = await compact(deps, key, CALL)
        done = result.status == "compacted"
        return Automatic(await status_of(deps, key) if done else status, done, _note(result))
    except CompactError as error:
        return Automatic(status, note=f"automatic compaction failed: {error.code}: {error}")
    except Exception:
        logger.exception("an automatic compaction failed")
        return Automatic(status, note="automatic compaction failed by a defect; the log on stderr tells more")


def _note(result: CompactResult) -> str:
    if result.status == "compacted":
        sizes = f"{result.tokens_before} -> {result.tokens_after} tokens"
        return f"compacted automatically ({result.strategy}): {sizes}. {result.next}"
    why = "; ".join(f"{item.path} {item.reason}" for item in result.declined if item.reason != "not_configured")
    return f"automatic compaction: {result.status} ({why}). {result.next}"
