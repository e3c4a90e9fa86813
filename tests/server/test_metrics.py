"""What the server counts, who may read it, and how it logs."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import metrics

from mcp_compact.config import load_settings
from mcp_compact.messages.ids import SessionId
from mcp_compact.ports.store import SessionFacts, SessionKey
from mcp_compact.server.logs import JsonLines, PlainLines
from mcp_compact.server.metrics import BEFORE, DECLINES, RULES_LOST, Metrics
from mcp_compact.server.metrics_route import AGE_S, DAY_MS, PAGE, Sessions
from mcp_compact.wiring import open_service, open_tenants
from tests.server.web import WAIT_S, Web, environment, new_token, web

VALUE = re.compile(r'^(\w+)\{\w+="([^"]*)"\} (\d+)$', re.MULTILINE)
LINE = re.compile(r'(# (HELP|TYPE) \w+ .+|\w+\{\w+="\w+"\} \d+)')


def figures(server: Web, token: str = "") -> dict[tuple[str, str], int]:
    reply = server.get("/metrics", {"Authorization": f"Bearer {token}"} if token else {})
    assert reply.status == 200, reply
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = reply.body.decode()
    assert all(LINE.fullmatch(line) for line in text.splitlines()), text
    return {(name, label): int(number) for name, label, number in VALUE.findall(text)}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with web(tmp_path_factory.mktemp("metrics"), "--transport", "http") as running:
        yield running


def conversation(turns: int) -> list[dict[str, str]]:
    return [
        {"role": role, "content": f"{role} {turn}: " + " ".join(f"w{turn}x{n}" for n in range(600))}
        for turn in range(turns)
        for role in ("user", "assistant")
    ]


@pytest.mark.process
async def test_compactions_declines_and_sessions_are_counted_under_fixed_names(server):
    before = figures(server)
    assert {key for key in before if key[0] == "mcp_compact_sessions"} == {
        ("mcp_compact_sessions", level) for level in ("ok", "warning", "compact", "hard")
    }
    async with server.client() as client:
        await client.call_tool("append_messages", {"messages": conversation(30), "session_id": "counted"})
        done = await client.call_tool(
            "compact_session", {"session_id": "counted", "target_tokens": 20_000, "trigger": "manual"}
        )
        result = done.structured_content
        assert result is not None
        assert result["status"] == "compacted", result
        again = await client.call_tool("compact_session", {"session_id": "counted", "force": True})
    after = figures(server)
    strategy = result["strategy"]
    assert after[("mcp_compact_compactions_total", strategy)] >= 1
    assert after[("mcp_compact_tokens_before_total", strategy)] >= result["tokens_before"] > result["tokens_after"]
    assert after[("mcp_compact_tokens_after_total", strategy)] >= result["tokens_after"]
    assert ("mcp_compact_rules_lost_total", strategy) in after
    if again.structured_content and again.structured_content["status"] != "compacted":
        assert sum(number for (name, _), number in after.items() if name == "mcp_compact_declines_total") >= 1


@pytest.mark.process
def test_without_tokens_only_this_machine_and_no_proxy_may_read(server):
    assert server.get("/metrics").status == 200
    assert server.get("/metrics", {"X-Forwarded-For": "203.0.113.9"}).status == 403
    assert server.get("/metrics", {"Forwarded": "for=203.0.113.9"}).status == 403
    assert server.get("/metrics", {"Host": "evil.example"}).status == 421


@pytest.mark.process
@pytest.mark.parametrize("transport", ["http", "sse"])
def test_with_tokens_only_the_owners_tenant_may_read(transport, tmp_path):
    owner, other = new_token(tmp_path, "me", "--namespace", "local"), new_token(tmp_path, "other")
    with web(tmp_path, "--transport", transport) as running:
        assert running.get("/metrics").status == 401
        assert running.get("/metrics", {"Authorization": "Bearer mcpc_wrong"}).status == 401
        refused = running.get("/metrics", {"Authorization": f"Bearer {other}"})
        assert (refused.status, b"mcp_compact_" in refused.body) == (403, False)
        if transport == "http":
            called = running.call(
                "append_messages", {"messages": [], "session_id": "s"}, {"Authorization": f"Bearer {other}"}
            )
            assert called.status == 200
            # A foreign tenant's session counts, and is not named.
            assert sum(n for (name, _), n in figures(running, owner).items() if name == "mcp_compact_sessions") == 1
            assert b"other" not in running.get("/metrics", {"Authorization": f"Bearer {owner}"}).body
        else:
            figures(running, owner)


def test_a_label_that_is_no_word_of_ours_is_other():
    counted = Metrics()
    counted.add(DECLINES, 'x"} 1\nevil{a="b')
    counted.add(DECLINES, "same_attempt")
    counted.add(BEFORE, "session_memory", 70_000)
    text = counted.text({"ok": 2})
    assert 'mcp_compact_declines_total{reason="other"} 1' in text
    assert "evil" not in text
    assert 'mcp_compact_sessions{level="ok"} 2' in text
    assert 'mcp_compact_tokens_before_total{strategy="session_memory"} 70000' in text
    assert f"# TYPE {RULES_LOST}_total counter" in text


async def test_sessions_of_every_tenant_count_while_they_are_a_day_old_at_most(tmp_path: Path):
    settings = load_settings({"MCP_COMPACT_DB": str(tmp_path / "archive.db")})
    async with open_tenants(settings) as tenants, open_service(settings) as service:
        now_ms = service.deps.clock.now_ms()
        for namespace, name, age_ms in (
            ("local", "new", 0),
            *(("other", f"session-{number}", number * 1_000) for number in range(PAGE + 5)),
            ("other", "old", DAY_MS + 60_000),
            ("third", "older", 2 * DAY_MS),
        ):
            await service.deps.store.create_session(
                SessionKey(namespace, SessionId(name)), SessionFacts(), now_ms - age_ms
            )
        assert await tenants.active(now_ms - DAY_MS) == ["local", "other"]
        times = iter([0.0, 0.0, 1.0, 1.0 + AGE_S + 1, 1.0 + AGE_S + 1])
        sessions = Sessions(lambda: service, lambda: tenants, lambda: next(times))
        assert await sessions.by_level() == {"ok": PAGE + 6}
        await service.deps.store.create_session(SessionKey("local", SessionId("newer")), SessionFacts(), now_ms)
        assert await sessions.by_level() == {"ok": PAGE + 6}, "it is not counted anew so soon"
        assert await sessions.by_level() == {"ok": PAGE + 7}


class Recorded(metrics.NoOpMeter):
    """A meter as an SDK brings one, which keeps what it is given."""

    def __init__(self) -> None:
        super().__init__("recorded")
        self.seen: list[tuple[str, float, Any]] = []

    def create_counter(self, name: str, unit: str = "", description: str = "") -> metrics.Counter:  # noqa: ARG002 - its names
        meter = self

        class Counter(metrics.NoOpCounter):
            def add(self, amount: float, attributes: Any = None, context: Any = None) -> None:  # noqa: ARG002 - its names
                meter.seen.append((name, amount, attributes))

        return Counter(name)


def test_the_same_figures_go_to_opentelemetry(monkeypatch: pytest.MonkeyPatch):
    meter = Recorded()
    monkeypatch.setattr(metrics, "get_meter", lambda *_: meter)
    counted = Metrics()
    counted.add(DECLINES, "same_attempt")
    counted.add(BEFORE, "summary", 900)
    assert meter.seen == [
        ("mcp_compact_declines", 1, {"reason": "same_attempt"}),
        ("mcp_compact_tokens_before", 900, {"strategy": "summary"}),
    ]


# ---------------------------------------------------------------- logs


def record(message: str, *, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("mcp_compact.test", logging.WARNING, "f.py", 1, message, None, info)


def test_a_json_line_is_one_line_whatever_the_message_holds():
    try:
        int("bad\nvalue")
    except ValueError as error:
        text = JsonLines().format(record("two\nlines \ud800 and password=hunter2secret", error=error))
    line = json.loads(text)
    assert "\n" not in text
    assert text.isascii()
    assert set(line) == {"time", "level", "logger", "message", "error"}
    assert (line["level"], line["logger"]) == ("WARNING", "mcp_compact.test")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", line["time"])
    assert "Traceback" in line["error"]


@pytest.mark.parametrize("formatter", [JsonLines(), PlainLines("%(levelname)s %(name)s: %(message)s")])
def test_keys_are_masked_in_every_format(formatter):
    key = "ghp_" + "a1B2" * 9
    text = formatter.format(record(f"token {key} and password=hunter2secret"))
    assert key not in text
    assert "hunter2secret" not in text


@pytest.mark.process
def test_the_server_logs_json_where_it_is_asked_to_and_stdout_stays_the_protocols(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mcp_compact", "serve"],
        input=b'{"jsonrpc": broken\n',
        env=environment(tmp_path, {"MCP_COMPACT_LOG_FORMAT": "json", "MCP_COMPACT_LOG_LEVEL": "DEBUG"}),
        cwd=tmp_path,
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    lines = done.stderr.decode().splitlines()
    assert lines
    assert all({"time", "level", "logger", "message"} <= set(json.loads(line)) for line in lines)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in done.stdout.decode().splitlines())


def test_the_form_of_the_log_is_a_setting_and_a_wrong_one_is_warned_of(tmp_path: Path):
    assert load_settings({"MCP_COMPACT_LOG_FORMAT": "json", "MCP_COMPACT_DB": str(tmp_path / "a")}).log_format == "json"
    ignored = load_settings({"MCP_COMPACT_LOG_FORMAT": "yaml", "MCP_COMPACT_DB": str(tmp_path / "a")})
    assert (ignored.log_format, bool(ignored.warnings)) == ("text", True)
