"""What the whole archive of a session holds that its context holds no more."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from anyio import to_thread

from mcp_compact.compaction.in_memory import with_clearings
from mcp_compact.compaction.loss import KindLoss, Lost, audit
from mcp_compact.messages.masking import masked
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.deps import Deps
from mcp_compact.service.reading import load_live
from mcp_compact.service.session_results import LossAudit

FETCH = "get_original(message_uuid) gives a message back whole; search_messages(text) finds others."


async def audit_loss(deps: Deps, key: SessionKey) -> LossAudit:
    """Every message that was ever stored is read. Raises CallerError `unknown_session`."""
    row = await deps.row(key)
    live, _ = await load_live(deps, key)
    around = await deps.surroundings(key.session_id)
    shown = [with_clearings(record, live, around) for record in live.all]
    here = {record.uuid for record in shown if record.uuid not in live.clearings}
    stored = await deps.store.records(key, after_seq=0, up_to_seq=row.last_seq, live_only=False)
    left = [record for record in stored if record.is_message and not record.is_summary and record.uuid not in here]
    kinds = await to_thread.run_sync(partial(audit, left, shown))
    return LossAudit(
        session_id=key.session_id,
        messages_left=sum(record.uuid not in live.clearings for record in left),
        kinds=tuple(_masked(kind) for kind in kinds),
        next=FETCH if any(kind.only_in_archive for kind in kinds) else "",
    )


def _masked(kind: KindLoss) -> KindLoss:
    """Without keys: what is derived from the archive never shows one."""
    return replace(kind, only_in_archive=tuple(Lost(masked(i.text), i.message_uuid) for i in kind.only_in_archive))
