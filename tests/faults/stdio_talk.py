"""A server of its own over stdio, forked and not started anew, and a client that speaks to it line by line.

The process that talks and its server form one process group, so that one kill takes both.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from mcp_compact.config import Settings
from mcp_compact.server.transports import serve_stdio
from mcp_compact.service.paging import joined

CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "storm", "version": "1"}}


class ServerTalk:
    """Calls tools of a server, one after the other."""

    def __init__(self, settings: Settings) -> None:
        to_server, self._out = os.pipe()
        self._in, from_server = os.pipe()
        if os.fork() == 0:
            os.close(self._out)
            os.close(self._in)
            _serve(settings, to_server, from_server)
        os.close(to_server)
        os.close(from_server)
        self._answers = os.fdopen(self._in, "rb")
        self._number = 0
        self._ask("initialize", CLIENT)
        os.write(self._out, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._number += 1
        asked = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        data = json.dumps(asked).encode() + b"\n"
        while data:
            data = data[os.write(self._out, data) :]
        while line := self._answers.readline():
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == self._number:
                return answer
        raise EOFError("the server ended")

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call. Raises LookupError for a refusal."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        if result.get("isError"):
            raise LookupError(result["content"][0]["text"])
        data: dict[str, Any] = result["structuredContent"]
        return data

    def context(self, session: str) -> list[dict[str, Any]]:
        """The whole live context, page by page."""
        pages: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = self.call("get_messages_after_boundary", session_id=session, cursor=cursor)
            pages += page["messages"]
            cursor = page["next_cursor"]
            if not cursor:
                return joined(pages)


def _serve(settings: Settings, given: int, answers: int) -> None:
    """Serve in this process until the input ends, and never return."""
    code = 1
    try:
        os.dup2(given, 0)
        os.dup2(answers, 1)
        os.close(given)
        os.close(answers)
        # What the forking process had read ahead is none of ours.
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        code = serve_stdio(settings, profile="full")
    except BaseException:  # noqa: BLE001 - shown, and never goes on in the parent's place
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)
