"""A client's folder for a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hooking.client import ClientFolder


@pytest.fixture
def client(tmp_path: Path) -> ClientFolder:
    return ClientFolder(tmp_path)
