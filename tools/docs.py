"""Writes the generated tables of the docs, and checks what the docs say against the code.

    python tools/docs.py           write the tables between `<!-- generated: NAME -->` and `<!-- end -->`
    python tools/docs.py --check   write nothing; tables, relative links, commands and words must be right

The tables come from the code itself: a setting, tool or command is described where it is defined.
"""

from __future__ import annotations

import argparse
import importlib
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

GENERATED = re.compile(
    r"(?P<open><!-- generated: (?P<name>[\w-]+) -->\n)(?P<body>.*?)(?P<close><!-- end -->)", re.DOTALL
)
GENERATED_OPEN = re.compile(r"<!-- generated:")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\((?P<inline>[^)\s]+)[^)]*\)|\b(?:src|href)=\"(?P<html>[^\"]+)\"")
ABSOLUTE_LINK = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
HEADING = re.compile(r"^#+ +(?P<title>.+?) *#*$", re.MULTILINE)
# As typed: alone, from an environment's folder, by uv, or after another command.
COMMAND = re.compile(r"(?:^\$? *|&& |uv run |uvx |/bin/)mcp-compact +(?P<word>[^\s;|&]+)", re.MULTILINE)

MACHINE_PATH = re.compile(r"(?<![\w.~:/-])/(?:work|root|tmp)(?![\w-])")
REGISTRY_HOST = re.compile(r"\bpypi\.org|\bpythonhosted\.org|\bregistry\.npmjs\.org")
OUTSIDE_DOCUMENT = re.compile(r"\bSPEC\.md")
OUTSIDE_FOLDER = re.compile(r"\.\./shared")
MAY_NAME_OUTSIDE_FOLDER = ("tests/", ".ci/", "CONTRIBUTING.md")


class DocsError(Exception):
    """The docs cannot be generated or checked at all."""


# ---------------------------------------------------------------- generators


def from_code(module: str, name: str) -> Callable[[], object]:
    """A function of the package, imported when it is needed; raises DocsError where there is none."""
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise DocsError(f"the docs need {module}.{name}: {error}") from error
    if not callable(found):
        raise DocsError(f"the docs need {module}.{name} to be a function")
    function: Callable[[], object] = found
    return function


def rows_from_code(module: str, name: str, width: int) -> list[tuple[str, ...]]:
    """The rows that a function of the package gives, each of `width` cells."""
    rows = from_code(module, name)()
    if not isinstance(rows, Iterable):
        raise DocsError(f"{module}.{name}() must give rows of {width} cells, not {type(rows).__name__}")
    result = [tuple(str(cell) for cell in row) for row in rows]
    if not result or any(len(row) != width for row in result):
        raise DocsError(f"{module}.{name}() must give at least one row, each of {width} cells")
    return result


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells are made safe for one line."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def subcommands(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The subcommands of a parser with their one-line help, in the order of `--help`."""
    # argparse shows its subcommands nowhere but in its help text and in these two lists.
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    return {choice.dest: choice.help or "" for group in groups for choice in group._choices_actions}  # noqa: SLF001


def command_parser() -> argparse.ArgumentParser:
    """The command line's own parser."""
    parser = from_code("mcp_compact.cli.parser", "build_parser")()
    if not isinstance(parser, argparse.ArgumentParser):
        raise DocsError("mcp_compact.cli.parser.build_parser() must give an argparse.ArgumentParser")
    return parser


def settings_table() -> str:
    """Every setting: its variable and historic names, what it takes, its default, what it decides."""
    from mcp_compact.config import SETTINGS

    rows = (
        (
            ", ".join(f"`{name}`" for name in (setting.name, *setting.historic)),
            setting.kind,
            setting.default or "not set",
            setting.text,
        )
        for setting in SETTINGS
    )
    return table(("Variable", "Takes", "Default", "What it decides"), rows)


def presets_table() -> str:
    """Every preset: its name, where it compacts, whose figures these are."""
    from mcp_compact.presets import PRESETS

    rows = ((f"`{preset.name}`", preset.compact_at or "as by default", preset.source) for preset in PRESETS)
    return table(("Preset", "Compacts at", "Where the figures come from"), rows)


def tools_table() -> str:
    """Every tool: its name, the smallest profile that has it, what it does."""
    rows = rows_from_code("mcp_compact.server", "tool_rows", 3)
    return table(("Tool", "From profile", "What it does"), ((f"`{name}`", which, text) for name, which, text in rows))


def commands_table() -> str:
    """Every subcommand of `mcp-compact`."""
    known = subcommands(command_parser())
    return table(("Command", "What it does"), ((f"`mcp-compact {name}`", text) for name, text in known.items()))


def clients_table() -> str:
    """Every client that `mcp-compact manifest` knows: its name there, its files."""
    rows = rows_from_code("mcp_compact.cli.manifest_clients", "client_rows", 4)
    return table(
        ("Client", "`manifest`", "File for everybody", "One folder's file (`--project`)"),
        (
            (title, f"`{key}`", f"[{file}](../manifests/{key}/{file})", f"`{project}`" if project else "-")
            for key, title, file, project in rows
        ),
    )


def rules_table() -> str:
    """Every rule that messages are validated by: whose it is, what it asks for, what a repair does."""
    rows = rows_from_code("mcp_compact.transcripts.validity.providers", "rule_rows", 4)
    shown = ((f"`{name}`", text, severity, mend) for name, text, severity, mend in rows)
    return table(("Rule", "What is asked for", "Where it is broken", "What a repair does"), shown)


GENERATORS: Mapping[str, Callable[[], str]] = {
    "settings": settings_table,
    "presets": presets_table,
    "tools": tools_table,
    "commands": commands_table,
    "clients": clients_table,
    "rules": rules_table,
}


def fill(text: str, generators: Mapping[str, Callable[[], str]]) -> str:
    """The text with every generated part written anew; raises DocsError for a marker without generator or end."""

    def write(match: re.Match[str]) -> str:
        if match["name"] not in generators:
            raise DocsError(f"no generator {match['name']!r}; there are: {', '.join(generators)}")
        return f"{match['open']}\n{generators[match['name']]()}\n\n{match['close']}"

    filled, parts = GENERATED.subn(write, text)
    if parts != len(GENERATED_OPEN.findall(text)):
        raise DocsError("a generated part has no end marker, or its opening marker is no line of its own")
    return filled


# ---------------------------------------------------------------- checks


def line_of(text: str, index: int) -> int:
    """The number of the line that holds a character."""
    return text.count("\n", 0, index) + 1


def blank(pattern: re.Pattern[str], text: str) -> str:
    """The text with every match blanked out, each character where it was."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def anchors(text: str) -> set[str]:
    """The anchors that a Markdown page's headings give."""
    titles = (re.sub(r"[`*]", "", match["title"]).lower() for match in HEADING.finditer(blank(FENCE, text)))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def broken_links(path: Path, text: str, root: Path) -> Iterator[str]:
    """Relative links of a page that lead nowhere."""
    for match in LINK.finditer(blank(INLINE_CODE, blank(FENCE, text))):
        link = match["inline"] or match["html"]
        if ABSOLUTE_LINK.match(link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        place = f"{path.relative_to(root)}:{line_of(text, match.start())}"
        if not target.is_relative_to(root) or not target.exists():
            yield f"{place}: the link {link} leads nowhere"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{place}: {link}: no heading gives that anchor"


def unknown_commands(name: str, text: str, known: Callable[[], set[str]]) -> Iterator[str]:
    """Lines of fenced blocks that call `mcp-compact` with a subcommand that does not exist."""
    for block in FENCE.finditer(text):
        for match in COMMAND.finditer(block[0]):
            if match["word"] not in known():
                place = f"{name}:{line_of(text, block.start() + match.start('word'))}"
                yield f"{place}: mcp-compact has no command {match['word']}"


def known_commands() -> set[str]:
    """What may follow `mcp-compact`: its subcommands and its own options."""
    parser = command_parser()
    return {*subcommands(parser), *parser._option_string_actions}  # noqa: SLF001


def forbidden_words(name: str, text: str) -> Iterator[str]:
    """Paths of one machine, registry hosts, and documents that are not part of the project."""
    patterns = [(REGISTRY_HOST, "a registry's host"), (OUTSIDE_DOCUMENT, "a document outside the project")]
    if not name.startswith(MAY_NAME_OUTSIDE_FOLDER):
        patterns.append((OUTSIDE_FOLDER, "a folder outside the project"))
    for pattern, what in patterns:
        yield from (f"{name}:{line_of(text, match.start())}: names {what}" for match in pattern.finditer(text))
    for number, line in machine_lines(name, text):
        if MACHINE_PATH.search(line):
            yield f"{name}:{number}: names a path of one machine"


def machine_lines(name: str, text: str) -> Iterator[tuple[int, str]]:
    """The lines that may not hold a machine's path: all, but of tests only the comments of their code."""
    if not name.startswith("tests/"):
        yield from enumerate(text.splitlines(), start=1)
    elif name.endswith(".py"):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string


def project_files(root: Path) -> list[Path]:
    """Files that git tracks or would track; raises DocsError outside a git checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=root, check=True, capture_output=True)  # noqa: S603 (constant words)
    except (OSError, subprocess.CalledProcessError) as error:
        raise DocsError(f"the check needs git and a git checkout: {error}") from error
    paths = (root / name for name in listed.stdout.decode().split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def text_of(path: Path) -> str | None:
    """A file's text, or None for one that is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def check(root: Path) -> Iterator[str]:
    """Everything that is wrong, a line each: file, line, what."""
    for path in project_files(root):
        text = text_of(path)
        if text is None:
            continue
        name = path.relative_to(root).as_posix()
        yield from forbidden_words(name, text)
        if path.suffix == ".md":
            yield from broken_links(path, text, root)
            yield from unknown_commands(name, text, known_commands)
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        if fill(text, GENERATORS) != text:
            yield f"{path.relative_to(root)}: a generated table is out of date; run python tools/docs.py"


def pages(root: Path) -> list[Path]:
    """The pages that may hold generated tables."""
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def write(root: Path) -> Iterator[str]:
    """Write the generated tables; the pages that changed."""
    for path in pages(root):
        text = path.read_text(encoding="utf-8")
        filled = fill(text, GENERATORS)
        if filled != text:
            path.write_text(filled, encoding="utf-8")
            yield f"{path.relative_to(root)}: written"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if all is well, 1 if the check found something, 2 if it could not run."""
    parser = argparse.ArgumentParser(description="Write or check the generated parts of the docs.")
    parser.add_argument("--check", action="store_true", help="write nothing, report what is wrong")
    checking = parser.parse_args(arguments).check
    lines = 0
    try:
        for line in check(ROOT) if checking else write(ROOT):
            print(line)
            lines += 1
    except DocsError as error:
        print(f"tools/docs.py: {error}", file=sys.stderr)
        return 2
    if checking:
        print(f"docs: {lines} problems" if lines else "docs: tables, links, commands and words are right")
    return 1 if checking and lines else 0


if __name__ == "__main__":
    # The package beside this script, installed or not.
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
