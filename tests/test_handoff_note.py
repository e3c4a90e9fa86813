from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from mcp_compact import handoff_note

NOW_MS = 1_767_225_600_000


@pytest.fixture
def archive(tmp_path):
    return str(tmp_path / "data" / "archive.db")


def test_a_brief_is_given_once(archive, tmp_path):
    path = handoff_note.put(archive, str(tmp_path), "do this", NOW_MS)
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert handoff_note.take(archive, str(tmp_path), NOW_MS + 1) == "do this"
    assert handoff_note.take(archive, str(tmp_path), NOW_MS + 2) == ""
    assert not list((tmp_path / "data" / "handoff").iterdir())


def test_after_an_hour_it_is_given_no_more(archive, tmp_path):
    handoff_note.put(archive, str(tmp_path), "do this", NOW_MS)
    assert handoff_note.take(archive, str(tmp_path), NOW_MS + handoff_note.LIFE_MS + 1) == ""
    assert not list((tmp_path / "data" / "handoff").iterdir())


def test_only_the_project_that_it_was_left_for_gets_it(archive, tmp_path):
    for name in ("a-b", "a/b"):
        (tmp_path / name).mkdir(parents=True)
    handoff_note.put(archive, str(tmp_path / "a-b"), "for the first", NOW_MS)
    assert handoff_note.take(archive, str(tmp_path / "a/b"), NOW_MS) == ""
    assert handoff_note.take(archive, str(tmp_path / "a-b"), NOW_MS) == "for the first"


def test_links_to_a_folder_mean_the_folder(archive, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    handoff_note.put(archive, str(tmp_path / "link"), "x", NOW_MS)
    assert handoff_note.take(archive, str(tmp_path / "real"), NOW_MS) == "x"


def test_the_newest_brief_replaces_the_last(archive, tmp_path):
    for text in ("old", "new"):
        handoff_note.put(archive, str(tmp_path), text, NOW_MS)
    assert handoff_note.take(archive, str(tmp_path), NOW_MS) == "new"


def test_it_can_be_taken_back(archive, tmp_path):
    handoff_note.put(archive, str(tmp_path), "x", NOW_MS)
    assert handoff_note.forget(archive, str(tmp_path))
    assert not handoff_note.forget(archive, str(tmp_path))
    assert handoff_note.take(archive, str(tmp_path), NOW_MS) == ""


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"cwd": 1}',
        json.dumps({"cwd": "/elsewhere", "at_ms": NOW_MS, "text": "x"}).encode(),
    ],
)
def test_a_damaged_file_is_no_brief(archive, tmp_path, content):
    path = Path(handoff_note.put(archive, str(tmp_path), "x", NOW_MS))
    path.write_bytes(content)
    assert handoff_note.take(archive, str(tmp_path), NOW_MS) == ""
    assert not path.exists()


def test_a_text_that_a_client_would_cut_is_refused(archive, tmp_path):
    with pytest.raises(ValueError, match="characters"):
        handoff_note.put(archive, str(tmp_path), "x" * (handoff_note.MOST_CHARS + 1), NOW_MS)
