"""The storage operations are there by their names, whichever of their modules was loaded first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mcp_compact.adapters.sqlite import operations

NAMES = """
import sys
from importlib import import_module
from types import ModuleType
for name in sys.argv[1:]:
    import_module(f"mcp_compact.adapters.sqlite.operations.{name}")
from mcp_compact.adapters.sqlite import operations
for name in operations.__all__:
    found = getattr(operations, name)
    assert callable(found) and not isinstance(found, ModuleType), name
    assert found is getattr(operations, name), name
"""


@pytest.mark.parametrize(
    "first", [(), ("live",), ("append", "search", "snapshot"), ("commit", "memory", "spoken", "pending")], ids=str
)
def test_a_name_is_the_operation_and_never_a_module(first: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, "-c", NAMES, *first], check=True)


def test_what_is_no_operation_is_told_by_its_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'compress'"):
        _ = operations.compress


def test_a_server_has_loaded_them_all_before_it_serves() -> None:
    code = (
        "import sys, mcp_compact.adapters.sqlite.store; from mcp_compact.adapters.sqlite.operations import _WHERE; "
        "sys.exit(str(set(_WHERE.values()) - set(sys.modules)) if set(_WHERE.values()) - set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
