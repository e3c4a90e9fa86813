"""A session of Claude Code that `resume --format codex` writes, opened by the real Codex."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.conftest import as_lines, records
from tests.e2e.claude import KEPT, REPOSITORY, SECONDS
from tests.e2e.conftest import program_of

CONFIG = """
model = "stand-in"
model_provider = "stand-in"
[model_providers.stand-in]
name = "stand-in"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
"""
USAGE = {
    "input_tokens": 100, "output_tokens": 2, "total_tokens": 102,
    "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
}  # fmt: skip


class Responses(BaseHTTPRequestHandler):
    """Answers the Responses API with one word, and keeps what it was sent."""

    requests: list[dict]

    def log_message(self, format, *args):
        """Quiet."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [], "models": []}')

    def do_POST(self):
        self.requests.append(json.loads(self.rfile.read(int(self.headers.get("content-length", 0)))))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        item = {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "content": [{"type": "output_text", "text": "done"}],
        }
        for kind, data in (
            ("response.created", {"response": {"id": "r1"}}),
            ("response.output_item.done", {"item": item, "output_index": 0}),
            ("response.completed", {"response": {"id": "r1", "usage": USAGE}}),
        ):
            self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())


@pytest.fixture
def endpoint():
    """The endpoint's requests and its port."""
    requests: list[dict] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Responses,), {"requests": requests}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield requests, server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def run(words, cwd, env):
    done = subprocess.run(
        words, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_request_of_a_resumed_codex_session_holds_what_was_written(endpoint, tmp_path):
    program = program_of("codex")
    requests, port = endpoint
    project, home = tmp_path / "project", tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    project.mkdir()
    (home / ".codex" / "config.toml").write_text(CONFIG.format(port=port))
    transcript = project / "session.jsonl"
    transcript.write_text(as_lines(records(project)), encoding="utf-8")
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    env |= {
        "HOME": str(home),
        "MCP_COMPACT_DB": str(home / "a.db"),
        "PYTHONPATH": str(REPOSITORY),
        "STAND_IN_KEY": "none",
    }
    words = [
        sys.executable,
        "-P",
        "-m",
        "mcp_compact",
        "resume",
        str(transcript),
        "--format",
        "codex",
        "--target",
        "8000",
        "--json",
    ]
    made = json.loads(run(words, project, env))
    lines = [json.loads(line) for line in Path(made["path"]).read_text(encoding="utf-8").splitlines()]
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    run([str(program), "exec", "--skip-git-repo-check", "resume", made["new_session_id"], "what next"], project, env)
    sent = [item for item in requests[-1]["input"] if item.get("role") != "developer"]
    own = [
        {key: value for key, value in item.items() if key in items[at]} for at, item in enumerate(sent[: len(items)])
    ]
    assert own == items
    assert sent[-1]["content"] == [{"type": "input_text", "text": "what next"}]
    assert "Never touch the folder vendor/." in json.dumps(items)
    assert [item["call_id"] for item in items if item["type"] == "function_call"] != []
