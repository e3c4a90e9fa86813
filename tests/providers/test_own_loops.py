"""What the providers' own libraries hand a loop is appended as it is, and what comes back is of their types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="the extra llm is not installed")
pytest.importorskip("openai", reason="the extra llm is not installed")
pytest.importorskip("google.genai", reason="the extra llm is not installed")

from anthropic.types import Message
from google.genai.types import Content, GenerateContentResponse, Part
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from mcp_compact.transcripts.validity.providers import findings
from mcp_compact.transcripts.validity.rules import refused
from tests.providers.request_types import check
from tests.service.test_own_loops import PROVIDERS, ROUNDS, given_out, pairs
from tests.service.test_summaries import opened

Json = dict[str, Any]


def responses(items: list[Json]) -> list[Any]:
    """What `client.responses.create(...).output` holds."""
    response = Response.model_validate(
        {
            "id": "resp_1",
            "created_at": 1.0,
            "object": "response",
            "model": "gpt-5",
            "output": items,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
    )
    return list(response.output)


def gemini(contents: list[Json]) -> list[Any]:
    """What `response.candidates[0].content` holds."""
    return [
        (GenerateContentResponse.model_validate({"candidates": [{"content": content}]}).candidates or [])[0].content
        for content in contents
    ]


def openai(messages: list[Json]) -> list[Any]:
    """What `completion.choices[0].message` holds."""
    return [
        ChatCompletion.model_validate(
            {
                "id": "c",
                "created": 1,
                "model": "gpt-5",
                "object": "chat.completion",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            }
        )
        .choices[0]
        .message
        for message in messages
    ]


def anthropic(messages: list[Json]) -> list[Any]:
    """What `client.messages.create(...)` answers."""
    return [
        Message.model_validate(
            {
                "id": f"msg_{number}",
                "type": "message",
                "model": "claude",
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 9, "output_tokens": 9},
                **message,
            }
        )
        for number, message in enumerate(messages)
    ]


OBJECTS = {"responses": responses, "gemini": gemini, "openai": openai, "anthropic": anthropic}


def is_models(item: Json) -> bool:
    kind = item.get("type", "message")
    return item.get("role") in ("assistant", "model") or kind in ("function_call", "reasoning")


@pytest.mark.parametrize("name", tuple(ROUNDS))
async def test_answers_of_a_library_are_appended_as_they_are(tmp_path: Path, name: str) -> None:
    async with opened(tmp_path) as service:
        for item in (item for n in range(2) for item in ROUNDS[name](n)):
            new = OBJECTS[name]([item]) if is_models(item) else [item]
            done = await service.append_messages(new, "s")
            assert done.stored == 1, done
            assert not [text for text in done.warnings if "understood" in text or "content" in text]
        out = await given_out(service, name)
        check(PROVIDERS[name], out)
        assert not refused(findings(PROVIDERS[name], out))
        assert all("lines" in result for _, result in await pairs(service))


async def test_what_was_written_with_a_library_s_own_classes_is_taken(tmp_path: Path) -> None:
    async with opened(tmp_path) as service:
        told = [
            Content(role="user", parts=[Part.from_text(text="Look.")]),
            Content(role="model", parts=[Part.from_function_call(name="look", args={"path": "a"})]),
            Content(role="user", parts=[Part.from_function_response(name="look", response={"output": "lines"})]),
        ]
        assert (await service.append_messages(told, "s")).stored == 3
        assert await pairs(service) == [("a", "lines")]
        picture = Content(role="user", parts=[Part.from_bytes(data=b"\x89PNG\r\n\x1a\n", mime_type="image/png")])
        assert (await service.append_messages([picture], "s")).stored == 1
        check("gemini", await given_out(service, "gemini"))
