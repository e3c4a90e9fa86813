"""The writer that asks a provider's model. The library it needs is optional and is loaded on the first summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from mcp_compact.adapters.summarizers.choice import Choice, choose
from mcp_compact.adapters.summarizers.tries import Again, Outcome, Sleep, Tries
from mcp_compact.compaction.summary import MAX_SUMMARY_TOKENS, SummaryRequest
from mcp_compact.ports.summarizer import WriterFailed, Written

if TYPE_CHECKING:
    from mcp_compact.adapters.summarizers.library import OpenModel

LIBRARY = "pydantic_ai"
INSTALL = "pip install 'mcp-compact[llm]'"
SHOWN = 100


@dataclass(frozen=True, slots=True)
class ProviderSummarizer:
    """Asks `anthropic:`, `openai:`, `google:` or `openai-compatible:` models (the latter at `base_url`) for summaries.

    `timeout_s` limits a summary with all its tries, `max_tokens` what the model may write; neither depends on the
    length of the material. Nothing is loaded or sent before `write`, and whatever is wrong is told as a value there.
    """

    model: str
    _: KW_ONLY
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: float = 120
    tries: int = 3
    max_tokens: int = MAX_SUMMARY_TOKENS
    backoff_s: float = 1.0
    """Before the second try; twice as long before each one after that, and never less than the provider asks for."""
    sleep: Sleep = anyio.sleep

    @property
    def name(self) -> str:
        """The model as the settings name it."""
        return self.model[:SHOWN]

    def problem(self) -> WriterFailed | None:
        """Why no summary can be had, as far as it shows without asking anybody; None where nothing is wrong."""
        choice = choose(self.model, self.base_url, self.api_key)
        if isinstance(choice, WriterFailed):
            return choice
        return None if find_spec(LIBRARY) else _not_installed()

    async def write(self, request: SummaryRequest) -> Outcome:
        """One summary; it is not checked here whether it is a usable one. Raises nothing but the cancellation."""
        choice = choose(self.model, self.base_url, self.api_key)
        if isinstance(choice, WriterFailed):
            return choice
        tries, started = Tries(self.tries, self.backoff_s, self.sleep), anyio.current_time()
        with anyio.move_on_after(self.timeout_s):
            outcome = await self._write(choice, request, tries, started + self.timeout_s)
            if isinstance(outcome, Written):
                return replace(outcome, seconds=anyio.current_time() - started)
            return outcome
        before = f"; the try before: {tries.last.detail}" if tries.last else ""
        return WriterFailed("timeout", f"{self.name} gave no summary within {self.timeout_s:g} s{before}")

    async def _write(self, choice: Choice, request: SummaryRequest, tries: Tries, deadline: float) -> Outcome:
        opened = await _open(choice)
        if isinstance(opened, WriterFailed):
            return opened
        most = min(request.max_tokens, self.max_tokens)
        async with opened:
            ask: Callable[[], Awaitable[Outcome | Again]] = partial(opened.ask, request, most, self.timeout_s)
            return await tries.of(ask, deadline)


class ProviderSettings(Protocol):
    """What the settings say about the model that writes summaries."""

    @property
    def model(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def api_key(self) -> str: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def max_tokens(self) -> int: ...


def provider_of(settings: ProviderSettings) -> ProviderSummarizer:
    """The writer that the settings describe; what is wrong with them shows when it is asked."""
    return ProviderSummarizer(
        settings.model,
        base_url=settings.base_url,
        api_key=settings.api_key,
        timeout_s=settings.timeout_s,
        max_tokens=settings.max_tokens,
    )


async def _open(choice: Choice) -> OpenModel | WriterFailed:
    # To load the library takes seconds of computing; the server's other calls must not wait for it.
    return await anyio.to_thread.run_sync(_load, choice, abandon_on_cancel=True)


def _load(choice: Choice) -> OpenModel | WriterFailed:
    try:
        from mcp_compact.adapters.summarizers.library import OpenModel  # noqa: PLC0415 - optional, and slow to load

        return OpenModel(choice)
    except ImportError as error:
        return _not_installed(f": {error}")


def _not_installed(why: str = "") -> WriterFailed:
    return WriterFailed("not_installed", f"The library that asks providers is missing; {INSTALL} brings it{why[:300]}")
