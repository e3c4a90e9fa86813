"""Which client a process works for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_compact import ancestors

REPOSITORY = Path(__file__).resolve().parents[1]
ASK = "from mcp_compact import ancestors; print(ancestors.client())"
needs_proc = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="this system does not tell processes apart so")


def asked(*before: str) -> str:
    """What a process of its own takes for its client, started behind these words."""
    done = subprocess.run(
        [*before, sys.executable, "-c", ASK],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_it_works_for_the_process_that_started_it():
    assert asked() == ancestors.own()


@needs_proc
def test_shells_and_launchers_in_between_are_passed_over():
    # The second command keeps the shell from giving its place to the first.
    inner = f"'{sys.executable}' -c '{ASK}'; true"
    done = subprocess.run(
        ["timeout", "60", "sh", "-c", inner],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == ancestors.own()


def test_what_the_client_states_wins_and_a_process_that_has_ended_does_not():
    assert ancestors.client(os.getpid()) == ancestors.own()
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    if Path("/proc/self").is_dir():
        assert ancestors.client(process.pid) == ancestors.name_of(os.getppid())


@needs_proc
def test_a_process_is_alive_under_its_own_start_only():
    number = os.getpid()
    assert ancestors.is_alive(ancestors.own())
    assert not ancestors.is_alive(f"{number}:1")
    for name in ("", "x", ":", "999999999:1"):
        assert not ancestors.is_alive(name)
