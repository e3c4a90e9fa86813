"""The same conversation again, under another name or with its session named: nothing is stored twice."""

from __future__ import annotations

import json
from pathlib import Path

from tests.service.test_summaries import opened

SESSION = "0199aaaa-0000-7000-8000-000000000001"


async def test_a_rollout_is_the_same_under_another_name_and_with_its_session_named(tmp_path: Path) -> None:
    lines = [{"type": "session_meta", "payload": {"id": SESSION, "cwd": "/x"}}]
    for number in range(4):
        content = [{"type": "input_text", "text": f"part {number}"}]
        payload = {"type": "message", "role": "assistant" if number % 2 else "user", "content": content}
        lines.append({"type": "response_item", "payload": payload})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    for name in ("rollout-a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    async with opened(tmp_path) as service:
        first = await service.import_file(tmp_path / "rollout-a.jsonl")
        assert (first.session_id, first.stored) == (SESSION, 5)
        for name, session in (("rollout-a.jsonl", SESSION), ("b.jsonl", ""), ("b.jsonl", SESSION)):
            again = await service.import_file(tmp_path / name, session_id=session)
            assert (again.session_id, again.stored) == (SESSION, 0)
