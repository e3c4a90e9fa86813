"""What every test can ask for: the backend, a clean environment, and the shared test data where it is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED_VARIABLE = "MCP_COMPACT_SHARED"
# `.ci/run` looks for these words among the reasons of skipped tests.
SHARED_MISSING = f"shared test data is not there: set {SHARED_VARIABLE} or lay it beside the repository as ../shared"
PRODUCT_VARIABLES = ("MCP_COMPACT_", "TENGU_", "ENABLE_CLAUDE_CODE_SM_COMPACT", "DISABLE_CLAUDE_CODE_SM_COMPACT")

# In CI a failure must come back on the next run; on a developer's machine new examples are welcome.
# The same examples are drawn each time: more of them would find nothing that the run before did not.
settings.register_profile(
    "ci", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("dev", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def shared_folder() -> Path | None:
    """The folder of shared test data: from the environment, else beside the repository, else None.

    A folder that the environment names but that is not there is a mistake, not a reason to skip.
    """
    named = os.environ.get(SHARED_VARIABLE)
    folder = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    if (folder / "transcripts").is_dir():
        return folder
    if named:
        raise pytest.UsageError(f"{SHARED_VARIABLE} names {named!r}, which has no folder 'transcripts'")
    return None


# Read once, before `clean_environment` hides the variable from the test itself.
SHARED = shared_folder()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The one backend: aiosqlite needs asyncio."""
    return "asyncio"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the person who runs the tests decides how they end."""
    for name in [name for name in os.environ if name.startswith(PRODUCT_VARIABLES)]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared test data; the test is skipped where there is none."""
    if SHARED is None:
        pytest.skip(SHARED_MISSING)
    return SHARED


@pytest.fixture(scope="session")
def recall_files(shared: Path) -> tuple[Path, ...]:
    """The transcripts that the recall benchmark reads, by name."""
    return transcripts(shared, "recall")


@pytest.fixture(scope="session")
def claude_code_files(shared: Path) -> tuple[Path, ...]:
    """Whole sessions of Claude Code, by name."""
    return transcripts(shared, "claude-code")


def transcripts(shared: Path, kind: str) -> tuple[Path, ...]:
    """All transcripts of a kind; none at all is an error, so that no test passes over nothing."""
    files = tuple(sorted((shared / "transcripts" / kind).glob("*.jsonl")))
    if not files:
        pytest.fail(f"no transcripts of the kind {kind!r} in {shared}")
    return files
