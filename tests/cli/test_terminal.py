from __future__ import annotations

import io
import sys

import pytest

from mcp_compact.cli import terminal


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "colours"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours_come_only_where_they_are_wanted(monkeypatch, variables, colours):
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Screen())
    assert terminal.terminal().colours is colours


def test_a_file_gets_no_colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert terminal.terminal().colours is False


def test_a_closed_stream_is_no_screen():
    stream = io.StringIO()
    stream.close()
    assert not terminal.is_screen(stream)
