from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import pytest

from tools import docs

# Spelt apart: this file is checked too.
OUTSIDE_DOCUMENT = "SPEC" + ".md"
REGISTRY = "pypi" + ".org"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="mcp-compact")
    made.add_argument("--version", action="store_true")
    commands = made.add_subparsers(dest="command")
    commands.add_parser("demo", help="a compaction, shown")
    commands.add_parser("serve", help="the server")
    return made


def page(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def links(folder: Path, text: str) -> list[str]:
    return list(docs.broken_links(page(folder, "page.md", text), text, folder))


def unknown(text: str) -> list[str]:
    return list(docs.unknown_commands("page.md", text, lambda: {"demo", "--version"}))


def test_a_table_keeps_each_cell_on_its_line():
    assert docs.table(("a", "b"), [("x | y", "two\nlines")]) == "| a | b |\n| --- | --- |\n| x \\| y | two lines |"


def test_subcommands_are_read_from_the_parser_with_their_help():
    assert docs.subcommands(parser()) == {"demo": "a compaction, shown", "serve": "the server"}


def test_a_generated_part_is_written_and_writing_it_again_changes_nothing():
    text = "before\n\n<!-- generated: one -->\nold\n<!-- end -->\n\nafter\n"
    filled = docs.fill(text, {"one": lambda: "new"})
    assert filled == "before\n\n<!-- generated: one -->\n\nnew\n\n<!-- end -->\n\nafter\n"
    assert docs.fill(filled, {"one": lambda: "new"}) == filled


def test_two_generated_parts_do_not_swallow_what_stands_between():
    text = "<!-- generated: a -->\n<!-- end -->\nkept\n<!-- generated: b -->\n<!-- end -->\n"
    filled = docs.fill(text, {"a": lambda: "A", "b": lambda: "B"})
    assert "\nkept\n" in filled
    assert filled.index("A") < filled.index("kept") < filled.index("B")


@pytest.mark.parametrize(
    "text",
    [
        "<!-- generated: unknown -->\n<!-- end -->\n",
        "<!-- generated: one -->\nno end\n",
        "<!-- generated:one -->\n<!-- end -->\n",
    ],
)
def test_a_marker_without_generator_or_end_is_an_error(text: str):
    with pytest.raises(docs.DocsError):
        docs.fill(text, {"one": lambda: "new"})


def test_a_generator_without_its_code_is_an_error_that_names_the_code():
    with pytest.raises(docs.DocsError, match=r"mcp_compact\.errors\.no_such_rows"):
        docs.rows_from_code("mcp_compact.errors", "no_such_rows", 2)


def test_a_link_to_a_file_or_heading_that_is_there_is_right(tmp_path: Path):
    page(tmp_path, "docs/other.md", "# Some `code`, and more\n")
    assert links(tmp_path, "[a](docs/other.md) [b](docs/other.md#some-code-and-more) [c](https://example.com/x)") == []


@pytest.mark.parametrize("link", ["gone.md", "docs/other.md#gone", "#gone", "../above.md"])
def test_a_link_that_leads_nowhere_is_named_with_its_line(tmp_path: Path, link: str):
    page(tmp_path, "above.md", "")
    page(tmp_path, "repo/docs/other.md", "# Other\n")
    (problem,) = links(tmp_path / "repo", f"# Page\n\n[a]({link})\n")
    assert problem.startswith("page.md:3: ")
    assert link in problem


def test_links_in_code_are_no_links(tmp_path: Path):
    assert links(tmp_path, "`[a](gone.md)`\n\n```text\n[a](gone.md)\n```\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "mcp-compact gone",
        "$ mcp-compact gone --now",
        "uv run mcp-compact gone",
        "pip install . && .venv/bin/mcp-compact gone",
    ],
)
def test_a_command_that_does_not_exist_is_named_with_its_line(line: str):
    assert unknown(f"# Page\n\n```bash\n{line}\n```\n") == ["page.md:4: mcp-compact has no command gone"]


def test_commands_that_exist_and_names_in_prose_are_right():
    assert (
        unknown("mcp-compact gone\n\n```bash\nmcp-compact demo\nmcp-compact --version\npip install mcp-compact\n```\n")
        == []
    )


@pytest.mark.parametrize(
    "text", ["see /work/main", '"/tmp/x"', "(/root)", OUTSIDE_DOCUMENT, "../shared/x", f"https://{REGISTRY}/x"]
)
def test_words_that_do_not_belong_into_the_project_are_found(text: str):
    (problem,) = docs.forbidden_words("docs/page.md", f"first\n{text}\n")
    assert problem.startswith("docs/page.md:2: ")


@pytest.mark.parametrize("text", ["https://example.com/work/x", "./tmp/x", "~/work", "/workspace/x", "/tmpfs"])
def test_words_that_only_look_like_a_machines_path_are_left_alone(text: str):
    assert list(docs.forbidden_words("docs/page.md", text)) == []


def test_tests_may_hold_machine_paths_in_strings_but_not_in_comments():
    assert list(docs.forbidden_words("tests/test_x.py", 'cwd = "/work/x"\n')) == []
    assert len(list(docs.forbidden_words("tests/test_x.py", "cwd = 1  # as in /work/x\n"))) == 1


def test_tests_may_name_the_folder_of_shared_data_but_not_its_documents():
    assert list(docs.forbidden_words("tests/test_x.py", 'x = "../shared"\n')) == []
    assert len(list(docs.forbidden_words("tests/test_x.py", f'x = "{OUTSIDE_DOCUMENT}"\n'))) == 1


def test_only_files_that_git_tracks_or_would_track_are_checked(tmp_path: Path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    page(tmp_path, ".gitignore", "*.log\n")
    page(tmp_path, "new.md", "")
    page(tmp_path, "noise.log", "")
    assert [path.name for path in docs.project_files(tmp_path)] == [".gitignore", "new.md"]


def test_a_folder_outside_git_is_an_error_and_not_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(docs.DocsError, match="git checkout"):
        docs.project_files(tmp_path)
