"""Asking for a summary: the writers in the order of the settings, until one gives a usable one."""

from __future__ import annotations

from dataclasses import replace

from mcp_compact.compaction.attempt import Attempt
from mcp_compact.compaction.pipeline import Finished, NothingDone
from mcp_compact.compaction.plan import Declined
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.errors import ServerError
from mcp_compact.ports.summarizer import Later, Summarizer, WriterFailed, Written
from mcp_compact.service.asking import ask_agent, ask_client
from mcp_compact.service.jobs import Job, planned, room_of_agent
from mcp_compact.service.results import CompactResult

MAX_TRIES = 3


async def written(job: Job, attempt: Attempt, asked: SummaryRequest) -> Finished | NothingDone | CompactResult:
    """A summary by the first of the job's writers that gives a usable one.

    A result instead, where the answer comes with another call: the calling agent's, or that of a client's model.
    """
    declined = asked.declined
    for writer in job.writers.values():
        so_far = replace(asked, declined=declined)
        if writer is None:
            return await _by_agent(job, attempt, so_far)
        outcome = await _by_writer(job, attempt, asked, writer)
        if isinstance(outcome, Later):
            return await ask_client(job, attempt, so_far, outcome.within_s)
        declined = (*declined, *outcome.declined)
        if isinstance(outcome, Finished):
            return replace(outcome, declined=declined)
    return NothingDone("failed", declined)


async def _by_agent(job: Job, attempt: Attempt, asked: SummaryRequest) -> CompactResult:
    """The agent reads the material into the context that is to become smaller: into the room that is left there."""
    if attempt.room_tokens is None:
        again, attempt = await planned(job, replace(attempt, room_tokens=room_of_agent(attempt)))
        asked = replace(again, declined=asked.declined) if isinstance(again, SummaryRequest) else asked
    return await ask_agent(job, attempt, asked)


async def _by_writer(
    job: Job, attempt: Attempt, asked: SummaryRequest, writer: Summarizer
) -> Finished | NothingDone | Later:
    """At most three tries: where the material was too long, oldest rounds are left out."""
    for _ in range(MAX_TRIES):
        answer = await writer.write(asked)
        if isinstance(answer, Later):
            return answer
        if isinstance(answer, WriterFailed):
            return NothingDone("failed", (Declined("summary", answer.reason, f"{writer.name}: {answer.detail}"),))
        if isinstance(answer, Written):
            outcome, _ = await planned(job, replace(attempt, answer=answer.answer))
            if isinstance(outcome, SummaryRequest):
                raise ServerError("no_summary", "The summary was asked for twice.", "Call again.")
            # With a summary at hand the paths before it are not tried again: their reasons are those of the request.
            if isinstance(outcome, Finished):
                notes = (*outcome.plan.warnings, *_cost(answer))
                return Finished(replace(outcome.plan, warnings=notes), writer=answer.writer)
            own = [declined for declined in outcome.declined if declined.path == "summary"]
            named = tuple(replace(item, detail=f"{writer.name}: {item.detail}") for item in own)
            return replace(outcome, declined=named)
        over = answer.overrun.over or asked.material_tokens // 5
        attempt = replace(attempt, drop_tokens=attempt.drop_tokens + max(1, over))
        shorter, attempt = await planned(job, attempt)
        if not isinstance(shorter, SummaryRequest) or shorter.material_tokens >= asked.material_tokens:
            break
        asked = shorter
    detail = f"{writer.name}: the material is too long for it, also without the oldest messages"
    return NothingDone("failed", (Declined("summary", "too_long", detail),))


def _cost(answer: Written) -> tuple[str, ...]:
    if answer.input_tokens is None and answer.output_tokens is None:
        return (f"written by {answer.writer}, which does not say what it cost",)
    price = f", {answer.cost:.4f} US dollars" if answer.cost is not None else ""
    return (f"written by {answer.writer}: {answer.input_tokens} tokens read, {answer.output_tokens} written{price}",)
