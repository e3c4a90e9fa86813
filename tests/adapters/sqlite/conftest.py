"""An archive for a test: in a file, since most of what can go wrong needs one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_compact.adapters.sqlite import operations
from mcp_compact.adapters.sqlite.connection import ArchiveConnection


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.db"


@pytest.fixture
def conn(path: Path) -> Iterator[ArchiveConnection]:
    opened = operations.connect(path)
    yield opened
    opened.close()
