"""Writes the files in manifests/ from the one description of the server, and checks them against it.

    python tools/manifests.py                  write them
    python tools/manifests.py --check          write nothing; every file must be as it would be written
    python tools/manifests.py --bundle FOLDER  lay out what `mcpb pack FOLDER` makes into an .mcpb

The description is `mcp_compact/cli/manifest_server.py`, the clients' forms are in `manifest_clients.py` beside it.
manifests/claude-code and the files that opencode and pi load are written by hand; the plugin's entry of the server is
checked like the others.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    # The package beside this script, installed or not.
    sys.path.insert(0, str(ROOT))

from mcp_compact.cli.manifest import as_text  # noqa: E402 (see above)
from mcp_compact.cli.manifest_clients import CLIENTS, client_named  # noqa: E402
from mcp_compact.cli.manifest_server import OFFERED, PROFILE, Server, server  # noqa: E402
from mcp_compact.cli.manifest_text import as_json  # noqa: E402
from mcp_compact.config import SETTINGS  # noqa: E402
from mcp_compact.settings_table import HttpSettings  # noqa: E402

MANIFESTS = "manifests"
ICON = Path(MANIFESTS, "claude-desktop", "mcpb", "icon.png")
"""Drawn by `tools/icon.py`."""
BY_HAND = "claude-code"
WRITTEN = (BY_HAND, "opencode/plugins", "pi/extensions")
"""What no description makes."""
AUTHOR = "mcp-compact contributors"
LICENCE = "MIT"
OWNER = "OWNER"
"""Of the repository, in the registry's name of the server. Whoever publishes puts theirs here."""
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
BUNDLED = ("pyproject.toml", "README.md", "LICENSE", "mcp_compact", MANIFESTS)
"""What an installation from source needs."""
PYTHON = "3.13"
USER_ID = 10001
EVERYWHERE = "0.0.0.0"  # noqa: S104 (inside of a container, whose ports are published one by one)


def files() -> dict[str, str]:
    """Every generated file: its path in the repository, and its text."""
    found = {
        f"{MANIFESTS}/{client.key}/{client.file}": as_text(
            client.kind, client.document(client.entry(server(client.profile)))
        )
        for client in CLIENTS
        if client.key != BY_HAND
    }
    found[f"{MANIFESTS}/claude-desktop/mcpb/manifest.json"] = as_json(mcpb())
    found[f"{MANIFESTS}/gemini-cli/extension/gemini-extension.json"] = as_json(gemini_extension())
    found[f"{MANIFESTS}/registry/server.json"] = as_json(registry())
    found[f"{MANIFESTS}/docker/Dockerfile"] = dockerfile()
    found[f"{MANIFESTS}/docker/Dockerfile.dockerignore"] = dockerignore()
    found[f"{MANIFESTS}/docker/compose.yaml"] = compose()
    return found


# ---------------------------------------------------------------- packages


def mcpb(described: Server | None = None) -> dict[str, Any]:
    """The manifest of the bundle for Claude Desktop, which brings uv: it installs the source that lies beside it."""
    from mcp_compact.server.toolbox import PROFILES
    from mcp_compact.server.toolset import tool_rows

    about = described or server()
    reach = PROFILES.index(PROFILE)
    tools = [(name, text) for name, profile, text in tool_rows() if PROFILES.index(profile) <= reach]
    return {
        "manifest_version": "0.4",
        "name": about.name,
        "display_name": about.title,
        "version": about.version,
        "description": about.description,
        "author": {"name": AUTHOR},
        "license": LICENCE,
        "icon": ICON.name,
        "server": {
            "type": "uv",
            "entry_point": "mcp_compact/__main__.py",
            "mcp_config": {
                "command": "uv",
                # The folder is also what the server may read files of: a desktop starts programs in the root folder.
                "args": ["run", "--directory", "${__dirname}", about.name, *about.args],
                "env": dict(about.env),
            },
        },
        "tools": [{"name": name, "description": text} for name, text in tools],
        "prompts_generated": True,
        "keywords": ["context", "compaction", "memory"],
        "compatibility": {"platforms": ["darwin", "win32", "linux"], "runtimes": {"python": ">=3.11"}},
    }


def gemini_extension() -> dict[str, Any]:
    """The extension for Gemini CLI: nothing but the server."""
    about = server()
    client = client_named("gemini-cli")
    entry = client.entry(server(client.profile))
    return {
        "name": about.name,
        "version": about.version,
        "description": about.description,
        "mcpServers": {about.name: entry},
    }


def registry() -> dict[str, Any]:
    """What the MCP registry takes, once the package is published."""
    about = server()
    settings = {setting.name: setting for setting in SETTINGS}
    offered = [settings[name] for name in OFFERED]
    return {
        "$schema": SCHEMA,
        "name": f"io.github.{OWNER}/{about.name}",
        "title": about.title,
        "description": about.description,
        "version": about.version,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": about.name,
                "version": about.version,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": word} for word in about.args],
                "environmentVariables": [
                    {
                        "name": setting.name,
                        "description": setting.text,
                        "format": "filepath" if setting.kind == "path" else "string",
                        "isRequired": False,
                    }
                    for setting in offered
                ],
            }
        ],
    }


# ---------------------------------------------------------------- containers


def health_check() -> list[str]:
    """The command that fails unless the server in the same container answers."""
    url = f"http://127.0.0.1:{HttpSettings().port}/health"
    return ["python", "-c", f"import urllib.request as r; r.urlopen('{url}', timeout=5)"]


def dockerfile() -> str:
    """An image that serves on HTTP; everything that has to last lies in /data."""
    about = server()
    port = HttpSettings().port
    return f"""\
# Built from the repository's folder: docker build -f manifests/docker/Dockerfile -t {about.name} .
FROM python:{PYTHON}-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY manifests ./manifests
COPY mcp_compact ./mcp_compact
RUN python -m venv /opt/{about.name} && /opt/{about.name}/bin/pip install --no-cache-dir .

FROM python:{PYTHON}-slim
RUN groupadd --gid {USER_ID} compact \\
    && useradd --uid {USER_ID} --gid {USER_ID} --no-create-home --shell /usr/sbin/nologin compact \\
    && install --directory --owner=compact --group=compact --mode=0700 /data
COPY --from=build /opt/{about.name} /opt/{about.name}
ENV PATH=/opt/{about.name}/bin:$PATH \\
    PYTHONUNBUFFERED=1 \\
    PYTHONDONTWRITEBYTECODE=1 \\
    MCP_COMPACT_DB=/data/archive.db
USER {USER_ID}:{USER_ID}
WORKDIR /data
VOLUME /data
EXPOSE {port}
HEALTHCHECK --interval=30s --timeout=10s --start-period={about.start_s}s --retries=3 \\
    CMD {json.dumps(health_check())}
ENTRYPOINT ["{about.name}"]
# It does not listen beyond the container until there is a token: docker run ... token add NAME
CMD {json.dumps([*about.args, "--transport", "http", "--host", EVERYWHERE])}
"""


def dockerignore() -> str:
    """Only what the image is built from is sent to the builder."""
    kept = "".join(f"!{name}\n" for name in BUNDLED)
    return f"*\n{kept}**/__pycache__\n**/*.pyc\n"


def compose() -> str:
    """One service with the archive in a volume, reachable from this machine only."""
    from mcp_compact.server.network import GRACE_S

    about = server()
    port = HttpSettings().port
    return f"""\
# First, once: docker compose run --rm {about.name} token add NAME
# Then: docker compose up --detach
services:
  {about.name}:
    build:
      context: ../..
      dockerfile: manifests/docker/Dockerfile
    image: {about.name}:{about.version}
    # From other machines it is reached through a reverse proxy that speaks TLS.
    ports: ["127.0.0.1:{port}:{port}"]
    volumes: ["archive:/data"]
    environment:
      # As clients call it, where a proxy stands before it: https://compact.example
      MCP_COMPACT_HTTP_PUBLIC_URL: ${{MCP_COMPACT_HTTP_PUBLIC_URL:-}}
    healthcheck:
      test: {json.dumps(["CMD", *health_check()])}
      interval: 30s
      timeout: 10s
      start_period: {about.start_s}s
      retries: 3
    restart: unless-stopped
    # Longer than the {GRACE_S} s that answers may take once it is told to stop.
    stop_grace_period: 15s
    # Temporary files go to the working folder, /data, too.
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]

volumes:
  archive:
"""


# ---------------------------------------------------------------- running


def check(root: Path) -> Iterator[str]:
    """Everything that is not as described, a line each."""
    wanted = files()
    for name, text in wanted.items():
        path = root / name
        if not path.is_file():
            yield f"{name}: is missing; run python tools/manifests.py"
        elif path.read_text(encoding="utf-8") != text:
            yield f"{name}: is out of date; run python tools/manifests.py"
    by_hand = tuple(f"{MANIFESTS}/{folder}/" for folder in WRITTEN)
    for path in sorted(path for path in (root / MANIFESTS).rglob("*") if path.is_file()):
        name = path.relative_to(root).as_posix()
        if name not in (*wanted, ICON.as_posix()) and not name.startswith(by_hand):
            yield f"{name}: is made from nothing"
    yield from _by_hand(root)


def _by_hand(root: Path) -> Iterator[str]:
    client = client_named(BY_HAND)
    name = f"{MANIFESTS}/{BY_HAND}/{client.file}"
    try:
        found = json.loads((root / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        yield f"{name}: cannot be read: {error}"
        return
    if found != client.document(client.entry(server(client.profile))):
        yield f"{name}: its server is not the one that mcp_compact/cli/manifest_server.py describes"


def write(root: Path) -> Iterator[str]:
    """Write the files; those that changed."""
    for name, text in files().items():
        path = root / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            yield f"{name}: written"


def bundle(root: Path, folder: Path) -> None:
    """Lay out the bundle for Claude Desktop in a folder that is not there yet: the tracked files and the manifest."""
    folder.mkdir(parents=True)
    command = ["git", "ls-files", "-z", "--", *BUNDLED]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True)  # noqa: S603 (constant words)
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target)
    (folder / "manifest.json").write_text(as_json(mcpb()), encoding="utf-8")
    shutil.copyfile(root / ICON, folder / ICON.name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; 0 if all is well, 1 if the check found something."""
    parser = argparse.ArgumentParser(description="Write or check the files in manifests/.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="write nothing, report what is wrong")
    what.add_argument("--bundle", type=Path, metavar="FOLDER", help="lay out the bundle for `mcpb pack`")
    given = parser.parse_args(arguments)
    if given.bundle:
        bundle(ROOT, given.bundle)
        print(f"laid out in {given.bundle}; now: mcpb pack {given.bundle} mcp-compact.mcpb")
        return 0
    lines = list(check(ROOT) if given.check else write(ROOT))
    print("\n".join(lines) if lines else "manifests: all are as described")
    return 1 if given.check and lines else 0


if __name__ == "__main__":
    raise SystemExit(main())
