"""MCP's own conformance suites against the server over HTTP.

Most of their scenarios drive tools, resources and prompts with names of their own that only a test server has:
shipping those would test the SDK, not this server. They stand in the lists of expected failures, each with what it
wants. What applies to any server has to pass, check by check.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.node.fetching import run
from tests.server.web import Web, web

HERE = Path(__file__).parent
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT.*")
FINE = ("SUCCESS", "INFO")


class Suite(NamedTuple):
    """A version of the suite, what of it is run, and what any server has to pass."""

    tool: str
    words: tuple[str, ...]
    expected: str
    applies: tuple[str, ...]
    besides: Mapping[str, tuple[str, ...]] = {}
    """Checks of those that need what only a test server has."""


OLD = Suite(
    "conformance-0.1.16",
    (),
    "expected-0.1.16.yml",
    (
        *("server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "completion-complete"),
        *("server-sse-multiple-streams", "dns-rebinding-protection"),
    ),
)
ACTIVE = Suite(
    "conformance-0.2.0-alpha.12", (), "expected-0.2.0-alpha.12.yml", (*OLD.applies, "server-session-lifecycle")
)
NEWEST = Suite(
    "conformance-0.2.0-alpha.12",
    ("--requirements", "2026-07-28"),
    "expected-2026-07-28.yml",
    (
        *("tools-list", "resources-list", "prompts-list", "completion-complete", "dns-rebinding-protection"),
        *("server-sse-multiple-streams", "caching", "http-header-validation", "sep-2164-resource-not-found"),
        *("input-required-result-unsupported-methods", "server-stateless"),
    ),
    {
        # It wants a tool `test_missing_capability`.
        "server-stateless": (
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
            # It wants a tool that changes the lists of tools and prompts, which never change here.
            "sep-2575-server-sends-prompts-list-changed-on-subscription",
            "sep-2575-server-sends-tools-list-changed-on-subscription",
        ),
        # There are templates of resources, and no resource that is always there.
        "caching": ("sep-2549-resources-read-caching-hints",),
    },
)
SUITES = {"0.1.16": OLD, "0.2.0-alpha.12": ACTIVE, "2026-07-28": NEWEST}
SESSIONS = {"with sessions": (), "stateless": ("--stateless",)}


@pytest.fixture(scope="module", params=list(SESSIONS))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Web]]:
    with web(tmp_path_factory.mktemp("conformance"), "--transport", "http", *SESSIONS[request.param]) as running:
        yield request.param, running


def checks(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The checks of every scenario that was run."""
    found = {}
    for path in sorted(folder.glob("*/checks.json")):
        name = STAMP.sub("", path.parent.name).removeprefix("server-")
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", list(SUITES))
def test_what_applies_to_any_server_passes_and_nothing_fails_that_is_not_expected(name, server, tmp_path):
    suite = SUITES[name]
    kind, running = server
    if kind == "stateless" and name != "2026-07-28":
        pytest.skip("older versions of the protocol keep a session, which these suites ask for")
    done = run(
        suite.tool,
        *("server", "--url", running.url, *suite.words, "-o", str(tmp_path / "out")),
        *("--expected-failures", str(HERE / suite.expected)),
        folder=tmp_path,
    )
    found = checks(tmp_path / "out")
    for scenario in suite.applies:
        own = found[scenario]
        besides = suite.besides.get(scenario, ())
        wrong = [(check["id"], check.get("errorMessage")) for check in own if check["status"] not in FINE]
        assert [one for one in wrong if one[0] not in besides] == [], scenario
        assert any(check["status"] == "SUCCESS" for check in own), scenario
    assert done.returncode == 0, done.stdout[done.stdout.find("=== SUMMARY") :]


def test_every_expected_failure_has_its_reason():
    for suite in SUITES.values():
        lines = (HERE / suite.expected).read_text(encoding="utf-8").splitlines()
        reason = ""
        for line in lines:
            if line.strip().startswith("#"):
                reason = line
            elif line.strip().startswith("- "):
                assert reason, line
            else:
                reason = ""
