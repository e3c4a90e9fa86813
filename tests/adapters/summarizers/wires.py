"""The wire formats of providers, as their public API documents show them: answers, errors, and how a request looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.adapters.summarizers.scripted import Reply, Seen


@dataclass(frozen=True)
class Wire:
    """What the two formats have in common. `base` is what follows the server's address."""

    name: str
    model: str
    base: str
    path: str
    limit: str
    """The name of the output limit."""
    ended: str
    cut_off: str
    tool: str

    def reply(self, text: str = "All is noted.", stop: str = "", **more: Any) -> Reply:
        blocks = [{"type": "text", "text": text}] if text else []
        return self.blocks(blocks, stop, **more)

    def blocks(self, blocks: list[dict[str, Any]], stop: str = "", **more: Any) -> Reply:
        raise NotImplementedError

    def error(self, status: int, kind: str, message: str, **more: Any) -> Reply:
        raise NotImplementedError

    def asked(self, seen: Seen) -> tuple[str, list[str]]:
        """The system prompt and the user messages of a request."""
        raise NotImplementedError


class AnthropicMessages(Wire):
    def blocks(self, blocks, stop="", **more):
        return Reply(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": self.model,
                "content": blocks,
                "stop_reason": stop or self.ended,
                "stop_sequence": None,
                "usage": {"input_tokens": 1200, "output_tokens": 34},
            },
            **more,
        )

    def error(self, status, kind, message, **more):
        return Reply({"type": "error", "error": {"type": kind, "message": message}}, status, **more)

    def asked(self, seen):
        system = seen.body["system"]
        text = system if isinstance(system, str) else "".join(block["text"] for block in system)
        return text, [_text(message["content"]) for message in seen.body["messages"] if message["role"] == "user"]


class ChatCompletions(Wire):
    def blocks(self, blocks, stop="", **more):
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for block in blocks:
            match block["type"]:
                case "text":
                    message["content"] = block["text"]
                case "thinking":
                    message["reasoning_content"] = block["thinking"]
                case "tool_use":
                    call = {"name": block["name"], "arguments": "{}"}
                    message["tool_calls"] = [{"id": block["id"], "type": "function", "function": call}]
        return Reply(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1_760_000_000,
                "model": self.model,
                "choices": [{"index": 0, "message": message, "finish_reason": stop or self.ended, "logprobs": None}],
                "usage": {"prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234},
            },
            **more,
        )

    def error(self, status, kind, message, **more):
        return Reply({"error": {"message": message, "type": kind, "param": None, "code": kind}}, status, **more)

    def asked(self, seen):
        messages = seen.body["messages"]
        system = [_text(message["content"]) for message in messages if message["role"] in ("system", "developer")]
        return "".join(system), [_text(message["content"]) for message in messages if message["role"] == "user"]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


ANTHROPIC = AnthropicMessages(
    "anthropic", "claude-haiku-4-5", "", "/v1/messages", "max_tokens", "end_turn", "max_tokens", "tool_use"
)
OPENAI = ChatCompletions(
    "openai",
    "gpt-5-mini",
    "/v1",
    "/v1/chat/completions",
    "max_completion_tokens",
    "stop",
    "length",
    "tool_calls",
)
LOCAL = ChatCompletions(
    "openai-compatible",
    "qwen3:8b",
    "/v1",
    "/v1/chat/completions",
    "max_tokens",
    "stop",
    "length",
    "tool_calls",
)
WIRES = (ANTHROPIC, OPENAI, LOCAL)
