"""A long session in Claude Code's own form, laid where the client finds it."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

from tests.e2e.claude import MODEL, Claude


def long_session(claude: Claude, rule: str, *, megabytes: int) -> str:
    """Write a session of that size whose first prompt states a rule; its id."""
    session = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{claude.project}"))
    # The client names a project's folder by its path, everything but letters and digits replaced.
    folder = claude.folder / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(claude.project.resolve()))
    folder.mkdir(parents=True, exist_ok=True)
    lines, size = [], 0
    for record in _records(session, str(claude.project), rule):
        lines.append(json.dumps(record))
        size += len(lines[-1])
        if size > megabytes << 20 and record["type"] == "assistant" and record["message"]["stop_reason"] == "end_turn":
            break
    (folder / f"{session}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return session


def _records(session: str, cwd: str, rule: str) -> Iterator[dict[str, Any]]:
    """A rule, then rounds of a request, the reading of a file, and what was seen."""
    made = 0
    parent: str | None = None

    def record(role: str, content: Any, **message: Any) -> dict[str, Any]:
        nonlocal made, parent
        own = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{session}/{made}"))
        line = {
            "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": session,
            "version": "2.1.332", "gitBranch": "", "type": role, "uuid": own,
            "timestamp": f"2026-01-{1 + made // 86400:02d}T{made // 3600 % 24:02d}:{made // 60 % 60:02d}:{made % 60:02d}.000Z",
            "message": {"role": role, "content": content, **message},
        }  # fmt: skip
        made, parent = made + 1, own
        return line

    def answer(content: list[dict[str, Any]], stop: str) -> dict[str, Any]:
        usage = {"input_tokens": 1000, "output_tokens": 20}
        return record(
            "assistant", content, id=f"msg_{made:06d}", type="message", model=MODEL, stop_reason=stop, usage=usage
        )

    yield record("user", rule)
    yield answer([{"type": "text", "text": "I will keep to it."}], "end_turn")
    for at in range(100_000):
        yield record("user", f"Look at gauge {at}.")
        call = {
            "type": "tool_use",
            "id": f"toolu_{at:06d}",
            "name": "Read",
            "input": {"file_path": f"{cwd}/gauge_{at}.py"},
        }
        yield answer([call], "tool_use")
        body = "\n".join(f"{line}\tdef reading_{at}_{line}(level): return level * {line}" for line in range(1, 61))
        yield record("user", [{"type": "tool_result", "tool_use_id": call["id"], "content": body}])
        yield answer([{"type": "text", "text": f"Gauge {at} has 60 readings."}], "end_turn")
