"""Files are read inside of the roots only, wherever links and dots lead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcp_compact.errors import CallerError
from mcp_compact.server.roots import default_roots, readable_path
from mcp_compact.transcripts.project_folder import project_slug


def test_a_project_is_named_as_claude_code_names_its_folder():
    assert project_slug(Path("/home/me/my.app_2")) == "-home-me-my-app-2"


def test_the_default_roots_are_the_folder_and_its_transcripts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    here, transcripts = default_roots(tmp_path / "app")
    assert here == tmp_path / "app"
    assert transcripts == tmp_path / ".claude" / "projects" / project_slug(tmp_path / "app")
    transcripts.mkdir(parents=True)
    (transcripts / "run.jsonl").touch()
    (tmp_path / "app").mkdir()
    assert readable_path("~/.claude/projects/" + transcripts.name + "/run.jsonl", (here, transcripts), here).is_file()
    with pytest.raises(CallerError, match="outside"):
        readable_path("~/.claude/projects/other/run.jsonl", (here, transcripts), here)


def test_links_and_dots_are_followed_before_the_folder_is_checked(tmp_path: Path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").touch()
    (inside / "fine").touch()
    (inside / "leads-out").symlink_to(outside)
    (outside / "leads-in").symlink_to(inside)
    assert readable_path("sub/../fine", (inside,), inside) == (inside / "fine").resolve()
    assert readable_path(str(outside / "leads-in" / "fine"), (inside,), inside) == (inside / "fine").resolve()
    for path in ("leads-out/secret", "../out/secret", str(outside / "secret"), str(tmp_path), "../in-not"):
        with pytest.raises(CallerError, match="outside"):
            readable_path(path, (inside,), inside)


def test_a_root_that_is_a_link_holds_what_it_leads_to(tmp_path: Path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "file").touch()
    (tmp_path / "link").symlink_to(real)
    assert readable_path("file", (tmp_path / "link",), tmp_path / "link").is_file()


def test_devices_and_pipes_are_no_files(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CallerError, match="pipe"):
        readable_path("pipe", (tmp_path,), tmp_path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for path in ("x" * 5_000, "x/" * 3_000, "loop"):
        with pytest.raises(CallerError) as refused:
            readable_path(path, (tmp_path,), tmp_path)
        assert refused.value.code == "bad_path"
        assert len(str(refused.value)) < 500
    with pytest.raises(CallerError, match="no usable path"):
        readable_path("a\0b", (tmp_path,), tmp_path)
    with pytest.raises(CallerError, match="outside"):
        readable_path("/dev/zero", (tmp_path,), tmp_path)


@pytest.mark.parametrize("place", ["/", "home"])
def test_a_server_that_starts_in_no_project_reads_no_whole_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    cwd = tmp_path if place == "home" else Path("/")
    (tmp_path / "secret.jsonl").touch()
    roots = default_roots(cwd)
    assert roots == (tmp_path / ".claude" / "projects" / project_slug(cwd),)
    with pytest.raises(CallerError, match="outside"):
        readable_path(str(tmp_path / "secret.jsonl"), roots, cwd)
