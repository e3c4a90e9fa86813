"""Tests by tools from npm run only where they are asked for: `python -m pytest -m node`."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what lies here; leave it out unless the marker or the folder is named."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.node)
    named = any(HERE.name in Path(str(word).partition("::")[0]).parts for word in config.invocation_params.args)
    if not named and "node" not in str(config.option.markexpr or ""):
        config.hook.pytest_deselected(items=ours)
        items[:] = [item for item in items if item not in ours]
