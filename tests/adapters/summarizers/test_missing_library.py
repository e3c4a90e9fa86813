from __future__ import annotations

import subprocess
import sys

import pytest

from mcp_compact.adapters.summarizers import ProviderSummarizer
from mcp_compact.adapters.summarizers.provider import INSTALL
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.ports.summarizer import WriterFailed

REQUEST = SummaryRequest("s", "p", "m", 1, 10, 0)
PROGRAM = """
import sys
from mcp_compact.adapters.summarizers import ProviderSummarizer
writer = ProviderSummarizer("openai:m", api_key="k")
writer.problem()
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"pydantic_ai", "openai", "anthropic", "google", "httpx2", "pydantic"}))
"""


def without_library(monkeypatch: pytest.MonkeyPatch) -> ProviderSummarizer:
    for name in [name for name in sys.modules if name.startswith("mcp_compact.adapters.summarizers.library")]:
        monkeypatch.delitem(sys.modules, name)
    # What stands as None is not found: as where the package is not installed.
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    return ProviderSummarizer("openai:m", api_key="sk-secret")


def test_the_missing_library_shows_before_a_summary_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    problem = without_library(monkeypatch).problem()
    assert problem is not None
    assert problem.reason == "not_installed"
    assert INSTALL in problem.detail


async def test_a_summary_asked_for_without_the_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    outcome = await without_library(monkeypatch).write(REQUEST)
    assert isinstance(outcome, WriterFailed)
    assert outcome.reason == "not_installed"
    assert "pip install 'mcp-compact[llm]'" in outcome.detail


def test_nothing_of_the_library_is_loaded_before_a_summary_is_asked_for():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
