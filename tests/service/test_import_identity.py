"""The same conversation again, under another name or with its session named: nothing is stored twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.service.test_summaries import opened
from tests.transcripts.foreign import WRITERS, Call, Turn

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


TALK = [Turn("Look.", (("I look.", (Call("read", {"path": "a.py"}, "x = 1"),)), ("Done.", ())))]
WITHOUT_ID = frozenset(("openhands", "responses", "gemini", "langchain", "api-log", "swe-agent", "anthropic", "openai"))
"""Files of these formats do not tell whose they are: under another name they are another session's."""


@pytest.mark.parametrize("name", WRITERS)
async def test_a_file_of_any_format_is_the_same_under_another_name(name: str, tmp_path: Path) -> None:
    for stem in ("one", "two"):
        (tmp_path / f"{stem}.json").write_bytes(WRITERS[name](TALK))
    async with opened(tmp_path) as service:
        first = await service.import_file(tmp_path / "one.json")
        other = await service.import_file(tmp_path / "two.json")
        assert (other.session_id == first.session_id) is (name not in WITHOUT_ID)
        assert other.stored == (first.stored if name in WITHOUT_ID else 0)
        for stem in ("one", "two"):
            asked = await service.import_file(tmp_path / f"{stem}.json", session_id="asked for")
            assert (asked.stored, asked.conflicts) == (first.stored if stem == "one" else 0, 0)


async def test_a_session_that_goes_on_in_a_copy_of_its_file_stores_only_what_is_new(tmp_path: Path) -> None:
    for name in ("copilot-cli", "pi"):
        (tmp_path / f"{name}.jsonl").write_bytes(WRITERS[name](TALK))
        (tmp_path / f"{name}-copy.jsonl").write_bytes(WRITERS[name]([*TALK, Turn("And now?", (("Wait.", ()),))]))
    async with opened(tmp_path) as service:
        for name in ("copilot-cli", "pi"):
            first = await service.import_file(tmp_path / f"{name}.jsonl", session_id=name)
            more = await service.import_file(tmp_path / f"{name}-copy.jsonl", session_id=name)
            assert (more.known, more.stored, more.conflicts) == (first.stored, 2, 0)
