"""A scripted model on 127.0.0.1: it answers the Messages API by rules and keeps every request it was sent."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
NO_USAGE = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


@dataclass
class Rule:
    """Answers a request whose last user message matches: with a call of the tool whose name ends so, or with text."""

    match: str
    text: str = ""
    tool: str = ""
    input: Json = field(default_factory=dict)
    times: int = 1_000_000
    input_tokens: int = 0
    """What is reported as used; 0: a quarter of the request's bytes."""


@dataclass
class Model:
    """The rules, and what came in. The first rule that matches and is not used up answers."""

    rules: list[Rule] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    outward: list[str] = field(default_factory=list)
    """Hosts that a program asked this endpoint, as its proxy, to connect to."""

    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def script(self, *rules: Rule) -> None:
        """Other rules from now on; what no rule matches is answered with `done`."""
        with self.lock:
            self.rules = [*rules, Rule("", text="done")]

    def answer(self, body: Json) -> tuple[Rule, str]:
        """The rule for a request, and the full name of its tool."""
        last = _last_text(body)
        names = tool_names(body)
        for rule in self.rules:
            name = next((n for n in names if rule.tool and n.endswith(rule.tool)), "")
            if rule.times > 0 and re.search(rule.match, last) and bool(name) == bool(rule.tool):
                rule.times -= 1
                return rule, name
        return Rule("", text="done"), ""

    def main_requests(self) -> list[Json]:
        """Requests of the conversation itself: those that offer tools or ask for a summary."""
        return [body for body in self.requests if body.get("tools")]


@contextmanager
def scripted_model() -> Iterator[Model]:
    """The model, listening on a free port of the loopback until the block ends."""
    model = Model()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(model))
    server.daemon_threads = True
    model.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def text_of(content: object) -> str:
    """All text of a message's content, tool results included."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part.get("text") or text_of(part.get("content")) for part in parts if isinstance(part, dict))


def last_user_text(body: Json) -> str:
    """The text of the last user message."""
    users = [message for message in body.get("messages") or [] if message.get("role") == "user"]
    return text_of(users[-1].get("content")) if users else ""


def last_input_text(body: Json) -> str:
    """The text of the last item of a Responses request that a user or a tool sent."""
    items = [item for item in body.get("input") or [] if item.get("role") == "user" or "output" in item]
    return text_of(items[-1].get("content") or items[-1].get("output")) if items else ""


def last_contents_text(body: Json) -> str:
    """The text of the last content of a Gemini request that a user or a tool sent."""
    users = [content for content in body.get("contents") or [] if content.get("role") != "model"]
    return contents_text(users[-1:])


def contents_text(contents: object) -> str:
    """All text of Gemini's contents, what functions answered included."""
    held: list[Json] = contents if isinstance(contents, list) else []
    parts = [part for content in held for part in content.get("parts") or []]
    return "\n".join(str(part.get("text") or part.get("functionResponse", {}).get("response", "")) for part in parts)


def _last_text(body: Json) -> str:
    if "contents" in body:
        return last_contents_text(body)
    return last_user_text(body) if "messages" in body else last_input_text(body)


def tool_names(body: Json) -> list[str]:
    """Names of a request's tools, those of its namespaces with the namespace before them."""
    found = []
    for tool in body.get("tools") or []:
        found += [str(each["name"]) for each in tool.get("functionDeclarations") or []]
        found += [f"{tool.get('name', '')}.{inner['name']}" for inner in tool.get("tools") or []]
        found.append(str(tool.get("name", "")))
    return found


def whole_text(body: Json) -> str:
    """Everything that the model would read of a request's messages."""
    return "\n".join(text_of(message.get("content")) for message in body.get("messages") or [])


def _handler(model: Model) -> type[Handler]:
    return type("ModelHandler", (Handler,), {"model": model})


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    model: Model

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_CONNECT(self) -> None:
        self.model.outward.append(self.path)
        self.send_error(502, "no network here")

    def do_GET(self) -> None:
        if self.path.startswith("http"):
            self.model.outward.append(self.path)
        self.send_json({})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "count_tokens" in self.path or "countTokens" in self.path:
            counted = len(json.dumps(body)) // 4
            self.send_json({"input_tokens": counted, "totalTokens": counted})
            return
        with self.model.lock:
            self.model.requests.append(body)
            number = len(self.model.requests)
            rule, tool = self.model.answer(body)
        if "responses" in self.path:
            self.send_events(_response_events(number, rule, tool))
            return
        if "contents" in body:
            answer = _candidates(rule, tool, body)
            self.send_events([("", answer)]) if "stream" in self.path else self.send_json(answer)
            return
        message = _message(number, rule, tool, body)
        if body.get("stream"):
            self.send_events(_events(message))
        else:
            self.send_json(message)

    def send_events(self, events: Sequence[tuple[str, Json]]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for kind, data in events:
            named = f"event: {kind}\n" if kind else ""
            self.wfile.write(f"{named}data: {json.dumps({'type': kind, **data} if kind else data)}\n\n".encode())
        self.close_connection = True

    def send_json(self, data: Json) -> None:
        out = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(out)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(out)


def _message(number: int, rule: Rule, tool: str, body: Json) -> Json:
    block: Json = {"type": "text", "text": rule.text}
    if tool:
        block = {"type": "tool_use", "id": f"toolu_{number:05d}", "name": tool, "input": rule.input}
    used = rule.input_tokens or len(json.dumps(body)) // 4
    return {
        "id": f"msg_{number:05d}", "type": "message", "role": "assistant", "model": body.get("model"),
        "content": [block], "stop_reason": "tool_use" if tool else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": used, "output_tokens": 20, **NO_USAGE},
    }  # fmt: skip


def _events(message: Json) -> list[tuple[str, Json]]:
    """The message as the stream that the Messages API sends."""
    block = message["content"][0]
    tool = block["type"] == "tool_use"
    empty = {**block, "input": {}} if tool else {"type": "text", "text": ""}
    delta = (
        {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        if tool
        else {"type": "text_delta", "text": block["text"]}
    )
    return [
        ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": message["stop_reason"]}, "usage": message["usage"]}),
        ("message_stop", {}),
    ]


def _candidates(rule: Rule, tool: str, body: Json) -> Json:
    """An answer as Gemini's API gives it."""
    part: Json = {"functionCall": {"name": tool, "args": rule.input}} if tool else {"text": rule.text}
    used = rule.input_tokens or len(json.dumps(body)) // 4
    return {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": used, "candidatesTokenCount": 20, "totalTokenCount": used + 20},
    }


def _response_events(number: int, rule: Rule, tool: str) -> list[tuple[str, Json]]:
    """An answer as the stream that the Responses API sends."""
    item: Json = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": rule.text}]}
    if tool:
        namespace, _, name = tool.rpartition(".")
        item = {
            "type": "function_call",
            "call_id": f"call_{number:05d}",
            "name": name,
            "arguments": json.dumps(rule.input),
        }
        item |= {"namespace": namespace} if namespace else {}
    response = {"id": f"resp_{number:05d}"}
    used = rule.input_tokens or 1000
    usage = {"input_tokens": used, "output_tokens": 20, "total_tokens": used + 20}
    return [
        ("response.created", {"response": response}),
        ("response.output_item.done", {"item": item}),
        ("response.completed", {"response": {**response, "usage": usage}}),
    ]
