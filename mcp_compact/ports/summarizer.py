"""Somebody who writes a summary when asked: a provider's model, or the client's by sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.overrun import Overrun
from mcp_compact.compaction.summary import SummaryRequest


@dataclass(frozen=True, slots=True)
class Written:
    """A summary and what it cost; None where the writer does not say."""

    answer: SummaryAnswer
    writer: str
    """Who wrote it, e.g. the model's name."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    """In US dollars."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TooLong:
    """The material was too long for the writer."""

    overrun: Overrun


@dataclass(frozen=True, slots=True)
class WriterFailed:
    """The writer gave nothing: a stable reason (`timeout`, `unavailable`, `no_key`, ...) and what it said."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Later:
    """The writer was asked; its answer comes with another call, or not at all."""

    within_s: float
    """An answer that takes longer is not waited for."""


class Summarizer(Protocol):
    """Writes summaries; never raises but when it is cancelled."""

    @property
    def name(self) -> str: ...

    async def write(self, request: SummaryRequest) -> Written | TooLong | WriterFailed | Later:
        """One summary. Retries what may pass by itself, within its time limit."""
        ...
