"""The public fault cases that meet the tools: arguments, sizes, searches, text of any kind, calls at once."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from mcp_compact.service.paging import size_tokens
from tests.problems import problems
from tests.server.talk import call, context_of, conversation, refused, text_of, user
from tests.server.web import web


def expanded(value: Any) -> Any:
    """A case's input with its repetitions written out."""
    if isinstance(value, dict):
        if set(value) == {"$rep"}:
            return value["$rep"][0] * value["$rep"][1]
        return {key: expanded(item) for key, item in value.items()}
    return [expanded(item) for item in value] if isinstance(value, list) else value


@pytest.fixture(scope="session")
def cases(shared: Path) -> dict[str, dict[str, Any]]:
    """The cases by id, their inputs expanded."""
    lines = (shared / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: expanded(case["input"]) for case in map(json.loads, lines)}


async def test_toolio_01_a_list_given_as_json_text_is_accepted(client: Client, cases: dict[str, Any]):
    assert (await call(client, "append_messages", **cases["TOOLIO-01"]["arguments"]))["stored"] == 1


async def test_toolio_02_text_that_looks_like_json_stays_text(client: Client, cases: dict[str, Any]):
    case = cases["TOOLIO-02"]
    await call(client, "append_messages", session_id=case["arguments"]["session_id"], messages=[user("hi")])
    for text in (case["arguments"]["content"], *case["also"]):
        await call(client, "update_session_memory", **(case["arguments"] | {"content": text}))
        assert (await call(client, "get_session_memory", session_id="s"))["content"] == text


async def test_toolio_04_pages_are_small_and_together_the_whole(client: Client, cases: dict[str, Any]):
    sent = cases["TOOLIO-04"]["messages"]
    await call(client, "append_messages", session_id="s", messages=sent)
    received: list[dict[str, Any]] = []
    cursor = ""
    while not received or cursor:
        result = await client.call_tool("get_messages_after_boundary", {"session_id": "s", "cursor": cursor})
        assert isinstance(result.structured_content, dict)
        assert size_tokens(result.structured_content) + size_tokens(text_of(result)) < 20_000
        received += result.structured_content["messages"]
        cursor = result.structured_content["next_cursor"]
    assert [message["role"] for message in received] == [message["role"] for message in sent]
    for got, given in zip(received, sent, strict=True):
        text = given["content"] if isinstance(given["content"], str) else given["content"][0]["text"]
        assert json.dumps(text)[1:-1] in json.dumps(got)
    assert problems(received) == []


async def test_toolio_05_any_text_can_be_searched_for(client: Client, cases: dict[str, Any]):
    case = cases["TOOLIO-05"]
    await call(client, "append_messages", session_id="s", messages=case["messages"])
    found = []
    for query in case["queries"]:
        result = await client.call_tool("search_messages", {"session_id": "s", "query": query})
        if result.is_error:
            assert "empty_query: " in text_of(result)
            assert not query.strip()
        else:
            assert isinstance(result.structured_content, dict)
            found.append(bool(result.structured_content["hits"]))
    assert found[:6] == [True] * 6


async def test_uni_01_lone_surrogates_harm_no_call(client: Client, cases: dict[str, Any]):
    messages = cases["UNI-01"]["messages"]
    await call(client, "append_messages", session_id="s\udc00", messages=messages)
    await call(client, "compact_session", session_id="s\udc00", force=True)
    await call(client, "update_session_memory", session_id="s\udc00", content=cases["UNI-01"]["llm"][0])
    page = await call(client, "get_messages_after_boundary", session_id="s\udc00")
    json.dumps(page, ensure_ascii=False).encode()
    assert "echo \ufffd" in json.dumps(page, ensure_ascii=False)
    original = await call(client, "get_original", session_id="s\udc00", id="t1")
    assert original["text"] == "tail \ufffd"


async def test_uni_03_nul_hides_nothing(client: Client, cases: dict[str, Any]):
    messages = cases["UNI-03"]["messages"]
    await call(client, "append_messages", session_id="s", messages=messages)
    page = await call(client, "get_messages_after_boundary", session_id="s")
    for message in messages:
        text = message["content"] if isinstance(message["content"], str) else message["content"][0]["text"]
        assert json.dumps(text) in json.dumps(page)
    assert (await call(client, "search_messages", session_id="s", query="needle"))["hits"]


async def test_race_01_what_is_appended_during_a_compaction_comes_after_it(client: Client, cases: dict[str, Any]):
    await call(client, "append_messages", session_id="s", messages=conversation(12))
    during = cases["RACE-01"]["during"]
    results: dict[str, dict[str, Any]] = {}

    async def compact() -> None:
        results["compact"] = await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True)

    async def append() -> None:
        results["append"] = await call(client, "append_messages", session_id="s", messages=during)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(compact)
        tasks.start_soon(append)
    assert results["compact"]["status"] == "compacted"
    assert results["append"]["uuids"] == ["u3"]
    assert "5 sent while busy" in json.dumps((await context_of(client, "s"))[-1])


async def test_race_02_two_compactions_at_once_write_one_boundary(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(12))
    statuses: list[str] = []

    async def compact() -> None:
        answer = await call(client, "compact_session", session_id="s", target_tokens=6_000, force=True)
        statuses.append(answer["status"])

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(compact)
    assert statuses.count("compacted") == 1
    assert (await call(client, "get_context_status", session_id="s"))["compactions"] == 1


async def test_race_03_a_cancelled_call_leaves_the_archive_free(client: Client):
    await call(client, "append_messages", session_id="s", messages=conversation(12))
    with anyio.move_on_after(0.01):
        await client.call_tool("compact_session", {"session_id": "s", "target_tokens": 6_000, "force": True})
    await call(client, "append_messages", session_id="s", messages=[user("after the cancellation")])
    status = await call(client, "get_context_status", session_id="s")
    assert "after the cancellation" in json.dumps((await context_of(client, "s"))[-1])
    assert status["compactions"] in (0, 1), "all of it or nothing"


async def test_an_empty_search_is_refused_with_what_to_pass(client: Client):
    assert "empty_query: " in await refused(client, "search_messages", query="")


@pytest.mark.e2e
def test_io_05_only_known_hosts_are_answered(tmp_path: Path, cases: dict[str, Any]):
    env = {"MCP_COMPACT_HTTP_ALLOWED_HOSTS": "proxy.example"}
    with web(tmp_path, "--transport", "http", env=env) as server:

        def status(host: str) -> int:
            hosted = {"Host": host.replace("PORT", str(server.port))}
            asked = {"messages": [user("hi")], "session_id": "of-" + host.replace(":", "-").replace(".", "-")}
            return server.call("append_messages", asked, hosted).status

        found = {host: status(host) for host in (*cases["IO-05"]["hosts"], "proxy.example")}
        # A tunnel brings another port, which no page of another site can make a browser send with our name.
        assert found.pop("127.0.0.1:9999") == 200
        assert found == {"evil.example": 421, "localhost:PORT": 200, "[::1]:PORT": 200, "proxy.example": 200}
    with contextlib.closing(sqlite3.connect(tmp_path / "archive.db")) as stored:
        assert stored.execute("SELECT count(*) FROM session").fetchone() == (4,)
