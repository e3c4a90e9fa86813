from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme_commands", ROOT / ".ci" / "readme_commands.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def marked(name: str, body: str) -> str:
    return f"<!-- command: {name} -->\n```bash\n{body}\n```\n"


def test_a_command_is_given_word_for_word(script: ModuleType):
    line = """a -e '.[test]' && "$HOME"/b  --c=`d` """
    assert script.commands("# x\n\n" + marked("one", line) + "\ntext\n\n" + marked("two", "e")) == {
        "one": line,
        "two": "e",
    }


@pytest.mark.parametrize(
    "text",
    [
        marked("one", "first\nsecond"),
        marked("one", ""),
        marked("one", "a") + marked("one", "b"),
        "<!-- command: one -->\n\nsome text\n\n```bash\na\n```\n",
        "<!-- command: One! -->\n```bash\na\n```\n",
    ],
)
def test_a_marker_without_its_one_line_is_an_error(script: ModuleType, text: str):
    with pytest.raises(script.ReadmeError):
        script.commands(text)


def test_an_unknown_name_fails_and_names_the_known_ones(script: ModuleType, capsys: pytest.CaptureFixture[str]):
    assert script.main(["gone"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "demo, tests" in printed.err


def test_the_readme_holds_the_commands_that_ci_runs(script: ModuleType, capsys: pytest.CaptureFixture[str]):
    for name in ("demo", "tests", "uv-demo", "uv-tests"):
        assert script.main([name]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 1
