"""The one place that calls the library which speaks to providers: pydantic-ai's direct requests, without its agents."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self

from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import ModelRequest, ModelRequestPart, ModelResponse, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from mcp_compact.adapters.summarizers.choice import Choice
from mcp_compact.adapters.summarizers.failures import failure_of, malformed
from mcp_compact.adapters.summarizers.responses import written
from mcp_compact.adapters.summarizers.tries import Again
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.ports.summarizer import TooLong, WriterFailed, Written

TALKATIVE = ("anthropic", "google_genai", "httpcore2", "httpx2", "openai")
MALFORMED = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What the providers' packages raise over an answer that is JSON but not their API's: most of them check no answer."""


class OpenModel:
    """A model that can be asked; as a context it closes its connections."""

    def __init__(self, choice: Choice) -> None:
        for name in TALKATIVE:
            # At their lower levels they log what they send, the conversation.
            logging.getLogger(name).setLevel(logging.WARNING)
        self._choice = choice
        self._model = _model(choice)

    async def __aenter__(self) -> Self:
        await self._model.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._model.__aexit__(kind, error, trace)

    async def ask(
        self, request: SummaryRequest, max_tokens: int, timeout_s: float
    ) -> Written | TooLong | WriterFailed | Again:
        """One request, tried once."""
        try:
            response = await self._send(request, max_tokens, timeout_s)
        except (AgentRunError, UserError) as error:
            return failure_of(error, self._choice.api_key)
        except MALFORMED as error:
            return malformed(error, self._choice.api_key)
        return written(response, self._choice.model)

    async def _send(self, request: SummaryRequest, max_tokens: int, timeout_s: float) -> ModelResponse:
        parts: list[ModelRequestPart] = [
            SystemPromptPart(_sendable(request.system)),
            UserPromptPart(_sendable(request.text)),
        ]
        # No temperature: several models refuse any. The retries are counted in one place, our own.
        settings = ModelSettings(max_tokens=max_tokens, timeout=timeout_s, max_retries=0)
        return await model_request(self._model, [ModelRequest(parts=parts)], model_settings=settings, instrument=False)


def _sendable(text: str) -> str:
    """Half a surrogate pair, as cut transcripts hold it, is no text that can be sent."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _model(choice: Choice) -> Model:
    match choice.kind:
        case "anthropic":
            return _anthropic(choice)
        case "google":
            return _google(choice)
        case "openai" | "openai-compatible":
            return _openai(choice)


def _anthropic(choice: Choice) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - each provider's package takes seconds
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415 - as above

    provider = AnthropicProvider(api_key=choice.api_key, base_url=choice.base_url)
    return AnthropicModel(choice.model, provider=provider)


def _google(choice: Choice) -> Model:
    from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415 - as above
    from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415 - as above

    provider = GoogleProvider(api_key=choice.api_key, base_url=choice.base_url)
    return GoogleModel(choice.model, provider=provider)


def _openai(choice: Choice) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - as above

    if choice.kind == "openai":
        from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415 - as above

        own = OpenAIProvider(api_key=choice.api_key, base_url=choice.base_url)
        return OpenAIChatModel(choice.model, provider=own)
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415 - as above
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415 - as above

    other = OpenAICompatibleProvider(choice.kind, base_url=choice.base_url, api_key=choice.api_key)
    # The older name of the limit: the newer one is OpenAI's alone, and a server that ignores it writes without end.
    older_limit = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
    return OpenAIChatModel(choice.model, provider=other, profile=older_limit)
