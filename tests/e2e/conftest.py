"""Tests that drive real clients run only where they are asked for: `python -m pytest -m e2e`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.claude import Claude
from tests.e2e.clients import fetched
from tests.e2e.endpoint import Model, scripted_model

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what lies here; leave it out unless the marker or the file is named."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.e2e)
    named = any(HERE.name in Path(str(word).partition("::")[0]).parts for word in config.invocation_params.args)
    if not named and "e2e" not in str(config.option.markexpr or ""):
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]


def program_of(client: str) -> Path:
    """A client's program; the test is skipped with the reason where it cannot be had."""
    try:
        return fetched(client)
    except LookupError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    """A scripted model, the whole module's."""
    with scripted_model() as made:
        yield made


@pytest.fixture(scope="module")
def fresh_claude(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Claude:
    """Claude Code in a fresh home, with nothing of ours."""
    base = tmp_path_factory.mktemp("claude code")
    for name in ("home", "project"):
        (base / name).mkdir()
    return Claude(program_of("claude"), base / "home", base / "project", model)


@pytest.fixture(scope="module")
def claude(fresh_claude: Claude) -> Claude:
    """The same, with our plugin installed as a person installs it."""
    done = fresh_claude.ours_json("install", "claude-code")
    assert done["changed"]
    assert [check["ok"] for check in done["checks"]] == [True, True, True]
    return fresh_claude
