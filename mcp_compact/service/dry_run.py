"""Plans that a dry run answered: what is kept of one, so that exactly it can be carried out later.

Nothing of the plan itself is kept: the same request on the same base makes the same plan. Beside the request
stands what the plan was made of, so that a difference can be named, and a hash of it, so that none is missed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mcp_compact.compaction.in_memory import fingerprint
from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.plan import CompactionPlan
from mcp_compact.compaction.policy import Policy
from mcp_compact.compaction.request import CompactRequest
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.messages.codec import body_hash
from mcp_compact.ports.store import Pending
from mcp_compact.service.asking import PENDING_MS, pending_request
from mcp_compact.service.jobs import Job
from mcp_compact.service.status import counter_name

PLAN = "plan-"
"""Begins the id of every plan: summaries and plans wait in the same place."""


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """What is stored of a plan."""

    request: CompactRequest
    summaries: bool
    """Was there anybody to write a summary?"""
    overhead_tokens: int
    """As it was known then: a later measurement does not change the plan."""
    made_of: Mapping[str, str]
    """What the plan was made of, by names for people."""
    digest: str


async def keep_plan(job: Job, snapshot: Snapshot, plan: CompactionPlan) -> str:
    """Keep a plan for an hour; its id. The same plan of the same session has the same id."""
    asked = pending_request(job.request)
    named = [job.key.namespace, job.key.session_id, fingerprint(snapshot, job.request, job.policy), asked]
    plan_id = PLAN + _hash(json.dumps(named))
    kept = {
        "request": asked,
        "summaries": job.policy.summaries,
        "overhead_tokens": snapshot.overhead_tokens,
        "made_of": made_of(job, snapshot),
        "digest": digest_of(plan),
    }
    now = job.deps.clock.now_ms()
    await job.deps.store.put_pending(Pending(plan_id, job.key, json.dumps(kept), snapshot.base, now, now + PENDING_MS))
    return plan_id


def kept_plan(text: str) -> KeptPlan:
    """What `keep_plan` stored."""
    fields: dict[str, Any] = json.loads(text)
    asked: dict[str, Any] = json.loads(fields.pop("request"))
    overrun = asked.pop("overrun", None)
    request = replace(CompactRequest(**asked), overrun=Overrun(**overrun) if overrun else None)
    return KeptPlan(request, **fields)


def made_of(job: Job, snapshot: Snapshot) -> dict[str, str]:
    """What a plan is made of, the request aside, by names for people."""
    return {
        "the live context": snapshot.base.live_hash,
        "the session memory": str(snapshot.memory.version if snapshot.memory else 0),
        "the settings": _of_policy(job.policy),
        "the context window": str(snapshot.context_window),
        "the model": snapshot.family.name,
        "how tokens are counted": counter_name(job.deps),
    }


def digest_of(plan: CompactionPlan) -> str:
    """Names what a plan would write and say, warnings aside."""
    return _hash(repr(replace(plan, warnings=())))


def _of_policy(policy: Policy) -> str:
    return _hash(repr(policy))


def _hash(text: str) -> str:
    return body_hash(text.encode("utf-8", "backslashreplace")).hex()
