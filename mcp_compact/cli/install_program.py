"""How a client starts this very installation: absolute paths, whatever folder and environment it starts from."""

from __future__ import annotations

import shlex
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from mcp_compact.cli.clients import NAME
from mcp_compact.errors import ServerError


@dataclass(frozen=True, slots=True)
class Program:
    """The words that start this program, and what its environment must hold."""

    words: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)

    def shell(self, *more: str) -> str:
        """One line for a POSIX shell."""
        before = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        return " ".join([*before, shlex.join([*self.words, *more])])

    def script(self) -> str:
        """A shell script that stands for the program."""
        before = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in self.env.items())
        return f'#!/bin/sh\n{before}exec {shlex.join(self.words)} "$@"\n'


def this_program() -> Program:
    """The command beside this Python; else this Python with the package, found without the working directory (-P)."""
    beside = (Path(sys.executable).parent / name for name in (NAME, f"{NAME}.exe"))
    own = next((path for path in beside if path.is_file()), None)
    if own is not None:
        return Program((str(own),))
    package = Path(__file__).resolve().parents[2]
    installed = package == Path(sysconfig.get_path("purelib")).resolve()
    return Program((sys.executable, "-P", "-m", "mcp_compact"), {} if installed else {"PYTHONPATH": str(package)})


def manifests(client: str) -> Path:
    """The folder of a client's files, as shipped in the package or as it lies in the repository. Raises ServerError."""
    package = Path(__file__).resolve().parents[1]
    for base in (package, package.parent):
        folder = base / "manifests" / client
        if folder.is_dir():
            return folder
    raise ServerError("no_manifests", f"The files for {client} are missing from this installation.",
                      "Install mcp-compact again.")  # fmt: skip
