"""How a client starts this very installation: absolute paths, whatever folder and environment it starts from."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from mcp_compact.cli.product import NAME
from mcp_compact.errors import ServerError

HOOK = "mcp_compact.hook"


@dataclass(frozen=True, slots=True)
class Program:
    """The words that start this program and those that start its hook, and what their environment must hold."""

    words: tuple[str, ...]
    hook: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)

    def line(self, *more: str) -> str:
        """One line for a POSIX shell that runs a command."""
        return self._line([*self.words, *more])

    def hook_line(self, *more: str) -> str:
        """The same for the hook, past the command line's parser: it runs at every prompt."""
        return self._line([*self.hook, *more])

    def _line(self, words: list[str]) -> str:
        before = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*before, shlex.join(words)])

    def script(self) -> str:
        """A shell script that stands for the program."""
        before = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.env.items())
        return f'#!/bin/sh\n{before}exec {shlex.join(self.words)} "$@"\n'


def this_program() -> Program:
    """The command beside this Python; else this Python with the package, found without the working directory.

    No variable is needed: clients refuse some of those that a Python would read.
    """
    python = sys.executable
    if not _installed(python):
        return Program(_by_path(python, "mcp_compact.__main__"), _by_path(python, HOOK))
    beside = (Path(python).parent / name for name in (NAME, f"{NAME}.exe"))
    own = next((str(path) for path in beside if path.is_file()), None)
    start = (python, "-I", "-m")
    return Program((own,) if own else (*start, "mcp_compact"), (*start, HOOK))


def _by_path(python: str, module: str) -> tuple[str, ...]:
    """Words that run a module's `main` of the package that lies where this file does."""
    package = str(Path(__file__).resolve().parents[2])
    code = f"import sys; sys.path.insert(0, {package!r}); from {module} import main; raise SystemExit(main())"
    return (python, "-I", "-c", code)


def _installed(python: str) -> bool:
    """Whether Python finds this very package by itself, with nothing of the environment or the working directory."""
    look = "import mcp_compact; print(mcp_compact.__file__)"
    done = subprocess.run([python, "-I", "-c", look], capture_output=True, check=False)  # noqa: S603 (this Python)
    found = Path(os.fsdecode(done.stdout.strip() or b"nowhere"))
    return found.parent.resolve() == Path(__file__).resolve().parents[1]


def manifests(client: str) -> Path:
    """The folder of a client's files, as shipped in the package or as it lies in the repository. Raises ServerError."""
    package = Path(__file__).resolve().parents[1]
    for base in (package, package.parent):
        folder = base / "manifests" / client
        if folder.is_dir():
            return folder
    raise ServerError("no_manifests", f"The files for {client} are missing from this installation.",
                      "Install mcp-compact again.")  # fmt: skip
