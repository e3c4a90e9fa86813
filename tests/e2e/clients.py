"""The real clients, by exact version, from npm into a cache folder. `python tests/e2e/clients.py [NAME...]` fetches them."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

NPM_MISSING = "npm is not here: the real clients come from it"
# `.ci/run` looks for these words among the reasons of skipped tests.
NOT_FETCHED = "a real client could not be fetched"
FETCH_SECONDS = 600
MACHINE = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine().lower(), "")
SYSTEM = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, "")

TRIPLE = ("aarch64" if MACHINE == "arm64" else "x86_64") + (
    "-apple-darwin" if SYSTEM == "darwin" else "-unknown-linux-musl"
)
"""How Rust names this machine."""


@dataclass(frozen=True)
class Package:
    """An npm package at a version, and its program below `node_modules`. Scripts need a Node of their own."""

    name: str
    version: str
    program: str
    node: bool = False


NODE = Package(f"node-{SYSTEM}-{MACHINE}", "22.23.5", f"node-{SYSTEM}-{MACHINE}/bin/node")
CLAUDE = f"@anthropic-ai/claude-code-{SYSTEM}-{MACHINE}"
OPENCODE = f"opencode-{SYSTEM}-{MACHINE}"
PI = "@mariozechner/pi-coding-agent"
CLIENTS = {
    "claude": Package(CLAUDE, "2.1.332", f"{CLAUDE}/claude"),
    "codex": Package("@openai/codex", "0.171.0", "@openai/codex/bin/codex.js", node=True),
    "gemini": Package("@google/gemini-cli", "0.61.0", "@google/gemini-cli/bundle/gemini.js", node=True),
    "opencode": Package(OPENCODE, "1.18.33", f"{OPENCODE}/bin/opencode"),
    "pi": Package(PI, "0.73.1", f"{PI}/dist/cli.js", node=True),
}


def cache_folder() -> Path:
    """Where fetched clients stay between runs."""
    named = os.environ.get("MCP_COMPACT_E2E_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "mcp-compact-e2e"


CACHE = cache_folder()
"""Read once, before tests take another home."""


def fetched(client: str) -> Path:
    """A client's program, fetched unless it is in the cache. Raises LookupError with the reason where it cannot be."""
    package = CLIENTS[client]
    if package.node:
        _fetched(NODE)
    return _fetched(package)


def node_folder() -> Path:
    """The folder of the Node that scripts of clients run with."""
    return _folder(NODE) / Path(NODE.program).parent


def _folder(package: Package) -> Path:
    return CACHE / f"{package.name.replace('/', '_')}-{package.version}" / "node_modules"


def _fetched(package: Package) -> Path:
    folder = _folder(package)
    if not (folder / package.program).exists():
        _fetch(package, folder.parent)
    return folder / package.program


def _fetch(package: Package, target: Path) -> None:
    if not (SYSTEM and MACHINE):
        raise LookupError(f"no real client is known for {sys.platform} on {platform.machine()}")
    npm = shutil.which("npm")
    if npm is None:
        raise LookupError(NPM_MISSING)
    new = target.with_name(f"{target.name}.{os.getpid()}")
    new.mkdir(parents=True)
    words = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(new)]
    done = subprocess.run(
        [*words, f"{package.name}@{package.version}"],
        capture_output=True,
        text=True,
        timeout=FETCH_SECONDS,
        check=False,
    )
    if done.returncode or not (new / "node_modules" / package.program).exists():
        shutil.rmtree(new, ignore_errors=True)
        raise LookupError(f"{NOT_FETCHED}: {package.name}@{package.version}: {done.stderr.strip()[-300:]}")
    try:
        new.rename(target)
    except OSError:
        # Another run was faster; its copy is as good.
        shutil.rmtree(new, ignore_errors=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or CLIENTS:
        try:
            sys.stdout.write(f"{name}: {fetched(name)}\n")
        except LookupError as error:
            raise SystemExit(str(error)) from None
