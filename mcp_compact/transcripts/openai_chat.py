"""Reads message lists of OpenAI's chat API.

A JSON list, an object with `messages` (a request, or the log of one with its `response`), or one message a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_compact.messages.blocks import OBJECT
from mcp_compact.transcripts.anthropic import AnthropicReader


class OpenAiChatReader(AnthropicReader):
    """Turns a message list into records; what a message means is told by `openai_chat_messages`."""

    def messages_of(self, value: Mapping[str, Any]) -> list[Any] | None:
        """The messages of a request; of a log also the answer that came."""
        messages = super().messages_of(value)
        return messages if messages is None else [*messages, *_answers(value.get("response"))]


def _answers(response: object) -> Iterator[Any]:
    """The first choice of a response: a conversation goes on from one."""
    choices = response.get("choices") if isinstance(response, OBJECT) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, OBJECT) else None
    if isinstance(message, dict):
        yield message
