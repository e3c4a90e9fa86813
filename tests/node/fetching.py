"""The tools of others that check the server, by exact version, from npm. `python tests/node/fetching.py` fetches them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.e2e import clients

SECONDS = 170
"""A guard against hanging."""
TOOLS = {
    "inspector": clients.Package(
        "@modelcontextprotocol/inspector",
        "2.12.0",
        "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
        node=True,
    ),
    "mcpb": clients.Package("@anthropic-ai/mcpb", "2.1.2", "@anthropic-ai/mcpb/dist/cli/cli.js", node=True),
    "conformance-0.1.16": clients.Package(
        "@modelcontextprotocol/conformance", "0.1.16", "@modelcontextprotocol/conformance/dist/index.js", node=True
    ),
    "conformance-0.2.0-alpha.12": clients.Package(
        "@modelcontextprotocol/conformance",
        "0.2.0-alpha.12",
        "@modelcontextprotocol/conformance/dist/index.js",
        node=True,
    ),
    "gemini": clients.Package("@google/gemini-cli", "0.61.0", "@google/gemini-cli/bundle/gemini.js", node=True),
}


def tool(name: str) -> list[str]:
    """The words that start a tool; the test is skipped with the reason where it cannot be had."""
    import pytest

    try:
        clients._fetched(clients.NODE)
        program = clients._fetched(TOOLS[name])
    except LookupError as error:
        pytest.skip(str(error))
    return [str(clients.node_folder() / "node"), str(program)]


def run(name: str, *words: str, folder: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end, in a folder that is its home too."""
    path = f"{clients.node_folder()}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [*tool(name), *words],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "NO_COLOR": "1", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


if __name__ == "__main__":
    for wanted in sys.argv[1:] or TOOLS:
        try:
            clients._fetched(clients.NODE)
            sys.stdout.write(f"{wanted}: {clients._fetched(TOOLS[wanted])}\n")
        except LookupError as error:
            raise SystemExit(str(error)) from None
