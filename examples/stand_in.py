"""A stand-in for a provider on 127.0.0.1: the Messages API at /v1/messages, the chat API at /v1/chat/completions.

The "model" asks for part after part of a book, then says the sum of what it read. Like a real one it refuses a
request that is too long, a call without its result, and a result without its call; and it ends the example
where the user's rule is missing from a request, since a real model would break it from there on.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
RULE = "Never name the book's author."
TASK = f"Read every part of the book, one after the other, and tell me the sum of the figures in it. {RULE}"
TOOL = "read_part"
CHARS_PER_TOKEN = 4
LINES_PER_PART = 24


def read_part(number: int) -> str:
    """The tool: a part of the book, with a figure in it."""
    lines = [
        f"{number}.{line} The keeper of gauge {number} wrote down the tide of day {line}."
        for line in range(LINES_PER_PART)
    ]
    return "\n".join([f"Part {number}. Its figure is {figure(number)}, its mark {mark(number)}.", *lines])


def figure(number: int) -> int:
    """The figure of a part."""
    return number * 7 % 101


def mark(number: int) -> str:
    """A word that stands in one part alone."""
    return f"tide-{number:04d}"


@dataclass
class StandIn:
    """How it answers, and what came in."""

    parts: int
    window: int
    """Tokens that a request may have."""
    asked: int = 0
    """Parts that were asked for so far."""
    refused: list[str] = field(default_factory=list)
    largest: int = 0
    """Tokens of the largest request that it took."""
    url: str = ""

    def told(self) -> str:
        """How large the requests became, and how many were refused."""
        return f"the largest of {self.largest:,} of {self.window:,} tokens, {len(self.refused)} refused"

    def answer(self, body: Json, pairs: list[str]) -> tuple[int, Json | int | str]:
        """The status, and a part's number, the last words, or an error."""
        tokens = len(json.dumps(body, ensure_ascii=False)) // CHARS_PER_TOKEN
        if tokens > self.window:
            return 400, _error(self, f"prompt is too long: {tokens} tokens > {self.window} maximum")
        if pairs:
            return 400, _error(self, pairs[0])
        if RULE not in json.dumps(body, ensure_ascii=False):
            return 400, _error(self, "the user's rule is not in the request")
        self.largest = max(self.largest, tokens)
        if self.asked == self.parts:
            return 200, f"The sum is {sum(figure(number + 1) for number in range(self.parts))}."
        self.asked += 1
        return 200, self.asked


def _error(stand_in: StandIn, message: str) -> Json:
    stand_in.refused.append(message)
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}


@contextmanager
def serving(parts: int, window: int) -> Iterator[StandIn]:
    """The stand-in, listening on a free port of the loopback until the block ends."""
    stand_in = StandIn(parts, window)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Answering", (Answering,), {"stand_in": stand_in}))
    server.daemon_threads = True
    stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Answering(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    stand_in: StandIn

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        """Answer a request of either API."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        is_chat = self.path.endswith("/chat/completions")
        messages = body.get("messages", [])
        status, said = self.stand_in.answer(body, chat_problems(messages) if is_chat else problems(messages))
        if isinstance(said, dict):
            self.reply(status, said)
            return
        tokens = len(json.dumps(body, ensure_ascii=False)) // CHARS_PER_TOKEN
        self.reply(status, chat_completion(said, tokens) if is_chat else message(said, tokens))

    def reply(self, status: int, data: Json) -> None:
        """JSON to the client."""
        out = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)


def message(said: int | str, tokens: int) -> Json:
    """An answer of the Messages API."""
    block: Json = {"type": "text", "text": said}
    if isinstance(said, int):
        block = {"type": "tool_use", "id": f"toolu_{said:04d}", "name": TOOL, "input": {"number": said}}
    return {
        "id": f"msg_{said if isinstance(said, int) else 'end'}",
        "type": "message",
        "role": "assistant",
        "model": "stand-in",
        "content": [block],
        "stop_reason": "tool_use" if isinstance(said, int) else "end_turn",
        "usage": {"input_tokens": tokens, "output_tokens": 20},
    }


def chat_completion(said: int | str, tokens: int) -> Json:
    """An answer of the chat API."""
    answer: Json = {"role": "assistant", "content": None if isinstance(said, int) else said}
    if isinstance(said, int):
        function = {"name": TOOL, "arguments": json.dumps({"number": said})}
        answer["tool_calls"] = [{"id": f"call_{said:04d}", "type": "function", "function": function}]
    choice = {"index": 0, "message": answer, "finish_reason": "tool_calls" if isinstance(said, int) else "stop"}
    usage = {"prompt_tokens": tokens, "completion_tokens": 20, "total_tokens": tokens + 20}
    return {"id": "chat-1", "object": "chat.completion", "model": "stand-in", "choices": [choice], "usage": usage}


def problems(messages: list[Json]) -> list[str]:
    """What the Messages API would refuse of these pairs."""
    found: list[str] = []
    waiting: set[str] = set()
    if messages and messages[0]["role"] != "user":
        found.append("messages: first message must use the user role")
    for item in messages:
        blocks = item["content"] if isinstance(item["content"], list) else []
        answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        found += [f"tool_use ids were found without tool_result blocks: {id_}" for id_ in sorted(waiting - answered)]
        found += [f"unexpected tool_use_id found in tool_result blocks: {id_}" for id_ in sorted(answered - waiting)]
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return found


def chat_problems(messages: list[Json]) -> list[str]:
    """What the chat API would refuse of these pairs."""
    found: list[str] = []
    waiting: list[str] = []
    for item in messages:
        if item["role"] == "tool":
            if item["tool_call_id"] not in waiting:
                found.append("messages with role 'tool' must be a response to a preceding message with 'tool_calls'")
            waiting = [id_ for id_ in waiting if id_ != item["tool_call_id"]]
            continue
        found += [f"tool_call_ids did not have response messages: {id_}" for id_ in waiting]
        waiting = [call["id"] for call in item.get("tool_calls", ())]
    return found
