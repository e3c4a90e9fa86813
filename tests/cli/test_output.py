from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from mcp_compact.cli.output import plain, print_json, write_whole
from mcp_compact.errors import CallerError
from mcp_compact.service.results import Slice


def test_values_become_json_and_lone_surrogates_do_no_harm(capsys, tmp_path):
    print_json({"slices": (Slice("a\ud800", 1, 2),), "path": tmp_path})
    shown = json.loads(capsys.readouterr().out)
    assert shown == {"slices": [{"kind": "a\ufffd", "tokens": 1, "messages": 2}], "path": str(tmp_path)}


def test_plain_leaves_plain_values_alone():
    assert plain({"a": [1, "x", None, True, 1.5]}) == {"a": [1, "x", None, True, 1.5]}


def test_a_file_is_written_for_its_owner_alone_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("old")
    path.chmod(0o644)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_a_device_is_written_to_as_it_is():
    write_whole(__import__("pathlib").Path("/dev/null"), b"new")


@pytest.mark.parametrize("name", ["", "missing/out.json"])
def test_what_cannot_be_written_is_said(tmp_path, name):
    with pytest.raises(CallerError):
        write_whole(tmp_path / name, b"x")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/proc/out.json", ""),
        ("/dev/full", "No space left on device"),
        ("{}/" + "n" * 300, "File name too long"),
        ("{}/file/below.json", ""),
        ("{}/none/out.json", "does not exist"),
        ("{}/nul\0", ""),
    ],
)
@pytest.mark.parametrize(
    "words", [["validate", "{}", "--repair"], ["export", "5e551011", "--raw"], ["handoff", "5e551011"]]
)
def test_of_a_file_that_cannot_be_written_the_name_that_was_given_and_the_reason_are_told(
    command, transcript, tmp_path, name, reason, words
):
    command("import", str(transcript))
    (tmp_path / "file").write_text("")
    source = tmp_path / "list.json"
    source.write_text('[{"role": "user", "content": "go"}]')
    target = name.format(tmp_path)
    done = command(*(word.format(source) for word in words), "-o", target)
    assert done.code == 2
    named = target.replace("\0", " ")[:200]
    assert named in done.err or str(Path(named).parent) in done.err
    assert "/.out.json." not in done.err
    assert "free space" not in done.err
    assert reason in done.err or "is no plain file" in done.err
