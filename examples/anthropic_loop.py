"""An agent loop on the Messages API that compacts its own list: no server, no database, no model.

    python examples/anthropic_loop.py

The loop talks to the stand-in beside this file. For a real provider replace `ask` with its client.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from dataclasses import dataclass
from typing import Any

from stand_in import TASK, TOOL, StandIn, read_part, serving

from mcp_compact import compact

Json = dict[str, Any]
MODEL = "claude-sonnet-4-5"
TOOLS = [
    {
        "name": TOOL,
        "description": "Read a part of the book.",
        "input_schema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
    }
]
FULL = 0.8
"""Share of the window at which the list is compacted, by what the provider counted last."""
TARGET = 0.4
"""Share of the window that the compacted list may have."""


@dataclass
class Ran:
    """How the loop went."""

    answer: str
    requests: int
    compactions: int
    messages: int
    """In the list at the end."""


def ask(url: str, messages: list[Json]) -> Json:
    """One request to the provider."""
    body = {"model": MODEL, "max_tokens": 1024, "tools": TOOLS, "messages": messages}
    request = urllib.request.Request(
        f"{url}/v1/messages", json.dumps(body).encode(), {"content-type": "application/json", "x-api-key": "none"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: Json = json.load(response)
    return answer


def run(stand_in: StandIn) -> Ran:
    """The loop: ask, call the tool, and compact the list when it grows too long."""
    messages: list[Json] = [{"role": "user", "content": TASK}]
    requests = compactions = 0
    while True:
        answer = ask(stand_in.url, messages)
        requests += 1
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            return Ran(answer["content"][-1]["text"], requests, compactions, len(messages))
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": read_part(call["input"]["number"])}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})
        if answer["usage"]["input_tokens"] > FULL * stand_in.window:
            messages, report = compact(messages, target_tokens=int(TARGET * stand_in.window), model=MODEL)
            if report.status != "compacted":
                reasons = "; ".join(declined.detail for declined in report.declined)
                raise SystemExit(f"not compacted: {report.status}: {reasons}")
            compactions += 1
            print(f"request {requests}: {report.tokens_before:,} -> {report.tokens_after:,} tokens")


def main() -> None:
    """Run the loop against the stand-in and say how it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", type=int, default=60, help="parts of the book (default: 60)")
    parser.add_argument("--window", type=int, default=12_000, help="tokens that a request may have (default: 12,000)")
    arguments = parser.parse_args()
    with serving(arguments.parts, arguments.window) as stand_in:
        ran = run(stand_in)
    print(f"{ran.answer} {ran.requests} requests, {ran.compactions} compactions, {stand_in.told()}.")


if __name__ == "__main__":
    main()
