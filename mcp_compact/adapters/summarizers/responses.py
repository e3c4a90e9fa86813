"""A provider's answer as a summary's: its blocks, how it ended, what it took."""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import BaseToolCallPart, ModelResponse, ModelResponsePart, TextPart, ThinkingPart

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.ports.summarizer import Written


def written(response: ModelResponse, model: str) -> Written:
    """The answer as it came; whether it is a summary is for others to say."""
    return Written(
        SummaryAnswer([_block(part) for part in response.parts], _stop_reason(response)),
        str(response.model_name or model),
        _count(response.usage.input_tokens),
        _count(response.usage.output_tokens),
        _cost(response),
    )


def _stop_reason(response: ModelResponse) -> str:
    """In the provider's own word; in the library's where it took that away, as it does for a refusal."""
    raw = (response.provider_details or {}).get("finish_reason")
    return str(raw or response.finish_reason or "")


def _block(part: ModelResponsePart) -> dict[str, Any]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.content}
        case ThinkingPart():
            return {"type": "thinking", "thinking": part.content}
        case BaseToolCallPart():
            return {"type": "tool_use", "id": part.tool_call_id, "name": part.tool_name, "input": part.args}
        case _:
            return {"type": part.part_kind}


def _count(tokens: object) -> int | None:
    """None where the provider told nothing, which the library gives as 0."""
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def _cost(response: ModelResponse) -> float | None:
    """US dollars by the price list that comes with the library; None for a model or provider that it lacks."""
    if not response.model_name or not response.usage.has_values():
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None
