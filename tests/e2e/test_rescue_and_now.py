"""Sessions that a client cannot send any more, opened again by the real one; and its own compaction, asked for by `now`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import as_lines, records
from tests.e2e.claude import MODEL
from tests.e2e.endpoint import Rule, whole_text

SESSION = "5e551011-0000-4000-8000-000000000001"
RULE = "Never touch the folder vendor/."
HUGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 6_000_000}}


def written(claude, items):
    """The session's file among the client's own, in the client's project."""
    path = claude.folder / "projects" / _slug(claude.project) / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(as_lines(items), encoding="utf-8")
    return path


def _slug(folder):
    return "".join(char if char.isalnum() else "-" for char in str(folder.resolve()))


def broken(items):
    """The session with what a client cannot send: an image too large, half a pair, and one call without its result."""
    orphan = {"type": "tool_result", "tool_use_id": "toolu_gone", "content": "left alone"}
    call = {"type": "tool_use", "id": "toolu_open", "name": "Bash", "input": {"command": "make"}}
    for number, (role, content) in enumerate((("user", [HUGE]), ("user", [orphan]), ("assistant", [call]))):
        items.append({
            **items[-1], "type": role, "uuid": f"00000000-0000-4000-9000-{number:012d}", "parentUuid": items[-1]["uuid"],
            "message": {"role": role, "content": content, "id": f"msg_x{number}"},
        })  # fmt: skip
    return items


def said(messages):
    """What a model reads, block by block: without the client's own reminders, cache marks and blank edges."""
    told: list[Any] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            match block["type"]:
                case "text" if block["text"].strip().startswith("<system-reminder>"):
                    continue
                case "text":
                    told.append((message["role"], block["text"].strip()))
                case "tool_use":
                    told.append(("call", block["id"], block["name"], json.dumps(block["input"], sort_keys=True)))
                case "tool_result":
                    told.append(("result", block["tool_use_id"], _text(block.get("content", ""))))
                case kind:
                    told.append((kind, json.dumps(block, sort_keys=True)))
    return told


def _text(content):
    return content if isinstance(content, str) else "\n".join(part.get("text", part["type"]) for part in content)


def live(claude, session):
    """The live context of the archive, as Anthropic messages."""
    import anyio

    from mcp_compact.config import load_settings
    from mcp_compact.service.deps import session_key
    from mcp_compact.service.reading import live_messages
    from mcp_compact.wiring import open_service

    async def work():
        async with open_service(load_settings({"MCP_COMPACT_DB": str(claude.database)})) as service:
            return await live_messages(service.deps, session_key("local", session))

    return anyio.run(work)


@pytest.mark.parametrize("rounds", [40, 420], ids=["a long session", "a session over its window"])
def test_the_first_request_of_a_resumed_session_is_our_live_context(fresh_claude, rounds):
    claude = fresh_claude
    own = written(claude, broken(records(claude.project, rounds=rounds)))
    before = own.read_bytes()
    made = claude.ours_json("resume", SESSION, "--target", "12000")
    assert made["status"] == "compacted"
    assert made["tokens_after"] <= 12_000
    expected = said(live(claude, made["new_session_id"]))
    claude.model.script(Rule("what next", text="on we go"))
    with claude.conversation(resume=made["new_session_id"]) as talk:
        (request,) = [body for body in talk.ask("what next") if body.get("tools")]
    sent = said(request["messages"])
    assert sent[: len(expected)] == expected
    assert sent[-1] == ("user", "what next")
    assert RULE in whole_text(request)
    assert request["model"] == MODEL
    assert own.read_bytes() == before


def test_a_resumed_session_goes_on_and_the_client_compacts_it_by_itself(fresh_claude):
    claude = fresh_claude
    written(claude, records(claude.project, rounds=40))
    new = claude.ours_json("resume", SESSION, "--target", "8000")["new_session_id"]
    claude.model.script(Rule("detailed summary", text="<summary>Gauges were renamed.</summary>"))
    with claude.conversation(resume=new) as talk:
        talk.ask("go on")
        talk.ask("/compact")
        (request,) = [body for body in talk.ask("and now?") if body.get("tools")]
    assert "Gauges were renamed." in whole_text(request)
    again = claude.ours_json("resume", new)
    assert "Gauges were renamed." in json.dumps(live(claude, again["new_session_id"]))


def test_now_asks_the_client_to_keep_the_rules(fresh_claude):
    claude = fresh_claude
    written(claude, records(claude.project, rounds=10))
    claude.model.script(Rule("detailed summary", text="<summary>Ten gauges.</summary>"))
    before = len(claude.model.requests)
    answer = claude.ours_json("now", SESSION)
    assert answer["status"] == "compacted"
    assert answer["tokens_after"] < answer["tokens_before"]
    asked = [whole_text(body) for body in claude.model.requests[before:]]
    assert any(
        "Additional Instructions:" in text and f"- {RULE}" in text.split("Additional Instructions:")[-1]
        for text in asked
    )
