from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from mcp_compact.cli.statusline import Level, _level

SESSION = "5e551011-0000-4000-8000-000000000001"


def line(program, said, env=None):
    """What the client would show."""
    data = said if isinstance(said, bytes) else json.dumps(said).encode()
    ended = program("statusline", stdin=data, env={"NO_COLOR": "1", **(env or {})})
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("\n") == 1
    return ended.out.strip()


def said(used=150_000, window=200_000, **more):
    usage = {
        "input_tokens": used - 300,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 100,
        "output_tokens": 0,
    }
    return {"session_id": SESSION, "context_window": {"context_window_size": window, "current_usage": usage}, **more}


def test_it_says_how_full_the_context_is_and_what_is_kept(program, transcript):
    assert program("import", str(transcript)).code == 0
    assert re.fullmatch(r"context 75% of 200k \| [12] rules? kept", line(program, said()))


def test_it_says_when_the_session_was_compacted_last(program, transcript):
    boundary = {
        "type": "system", "subtype": "compact_boundary", "uuid": "b0000000-0000-4000-8000-000000000001", "parentUuid": None,
        "sessionId": SESSION, "timestamp": "2026-01-01T09:00:00.000Z", "content": "Conversation compacted",
        "compactMetadata": {"trigger": "manual", "preTokens": 1000},
    }  # fmt: skip
    with transcript.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(boundary) + "\n")
    assert program("import", str(transcript)).code == 0
    assert " | compacted " in line(program, said())


def test_a_session_that_is_not_known_yet_has_nothing_kept(program):
    assert line(program, said()) == "context 75% of 200k | mcp-compact: nothing kept yet"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"no json", b"[]", b"{}", b"null", b"\xff\xfe", b"[" * 100_000, b'{"session_id": 7, "context_window": []}',
        b'{"context_window": {"current_usage": null}}', b'{"context_window": {"current_usage": {"input_tokens": "x"}}}',
    ],
)  # fmt: skip
def test_whatever_the_client_says_a_line_is_printed(program, data):
    assert line(program, data).startswith("context: not known yet | mcp-compact: ")


@pytest.mark.parametrize(
    ("context", "shown"),
    [
        ({"used_percentage": 75, "total_input_tokens": 150_000}, "context 75% of 200k"),
        ({"used_percentage": 75, "current_usage": None}, "context 75% of 200k"),
        ({"used_percentage": 41.7, "current_usage": {}}, "context 41% of 200k"),
        ({"used_percentage": 0}, "context 0% of 200k"),
        ({"used_percentage": 29, "current_usage": {"input_tokens": 100_000}}, "context 50% of 200k"),
        *(({"used_percentage": bad}, "context: not known yet") for bad in (None, "75", True, -1, 1e300, [75])),
    ],
)
def test_the_clients_own_percentage_tells_where_it_gives_no_usage(program, context, shown):
    told = {"session_id": SESSION, "context_window": {"context_window_size": 200_000, **context}}
    assert line(program, told).startswith(f"{shown} | ")


def test_every_whole_percentage_is_shown_as_it_is():
    for percent in range(101):
        for window in (200_000, 1_000_000, 199_999):
            level = _level({"context_window": {"context_window_size": window, "used_percentage": percent}})
            assert str(level).startswith(f"context {percent}% of ")


def test_a_broken_archive_is_said_and_harms_nothing(program, archive):
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"no database at all" * 100)
    assert line(program, said()) == "context 75% of 200k | mcp-compact: OFF, run mcp-compact doctor"


def test_a_project_that_is_switched_off_is_said_to_be(program, tmp_path):
    (tmp_path / ".mcp-compact-off").touch()
    assert line(program, said(cwd=str(tmp_path))).endswith("| mcp-compact: off here")


def test_colours_are_there_unless_they_are_not_wanted(program):
    data = json.dumps(said(used=180_000)).encode()
    assert program("statusline", stdin=data, env={"TERM": "xterm"}).out.startswith("\x1b[31mcontext 90% of 200k\x1b[0m")


@pytest.mark.parametrize(
    ("used", "window", "code"),
    [
        (None, 200_000, ""), (10, None, ""), (146_999, 200_000, ""), (147_000, 200_000, "33"), (166_999, 200_000, "33"),
        (167_000, 200_000, "31"), (4_000, 10_000, "33"), (5_000, 10_000, "31"),
    ],
)  # fmt: skip
def test_the_colour_is_that_of_the_level(used, window, code):
    assert Level(used, window).code == code


def test_a_window_that_is_smaller_than_what_was_sent_is_not_believed():
    assert str(Level(357_000, 200_000)) == "context 357.0k"


def test_it_loads_neither_the_server_nor_the_operations(program):
    code = (
        "import sys; from mcp_compact.cli import statusline; "
        "print([m for m in sys.modules if m.split('.')[0] in ('mcp', 'pydantic', 'aiosqlite', 'anyio', 'tiktoken') "
        "or m.startswith('mcp_compact.adapters.sqlite.operations')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
