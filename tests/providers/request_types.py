"""Lists of messages by the types that the providers' own libraries give their requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter


@cache
def _adapter(provider: str) -> TypeAdapter[Any]:
    match provider:
        case "anthropic":
            from anthropic.types.beta import BetaMessageParam

            return TypeAdapter(list[BetaMessageParam])
        case "openai-chat":
            from openai.types.chat import ChatCompletionMessageParam

            return TypeAdapter(list[ChatCompletionMessageParam])
        case "openai-responses":
            from openai.types.responses import ResponseInputItemParam

            return TypeAdapter(list[ResponseInputItemParam])
        case _:
            from google.genai.types import Content

            return TypeAdapter(list[Content])


def check(provider: str, messages: Sequence[Any]) -> None:
    """Raises pydantic's ValidationError where a message is not of the library's own types."""
    _read_through(_adapter(provider).validate_python(messages))


def _read_through(value: object) -> None:
    """Lists inside of these types are checked only while they are read."""
    if isinstance(value, Mapping):
        for item in value.values():
            _read_through(item)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes) and not hasattr(value, "model_fields_set"):
        for item in value:
            _read_through(item)
