"""What git says of a folder: branch, changed files, last commits. Whatever goes wrong, there is then no state."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from mcp_compact.service.handoff import GitState

TIMEOUT_S = 3.0
"""Of each of the two calls."""
MOST_FILES = 20
MOST_COMMITS = 5
LINE_CHARS = 200
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.pager=cat", "-c", "log.showSignature=false", "-c", "color.ui=false")
"""Programs that a repository's own settings would start are not."""


def git_state(cwd: str) -> GitState:
    """The state of the repository that a folder belongs to; where there is none, why."""
    program = shutil.which("git")
    if not cwd or not Path(cwd).is_dir():
        return GitState(absent="the session's folder is not here")
    if program is None:
        return GitState(absent="git is not installed")
    before = [program, "--no-optional-locks", "-C", cwd, *_SAFE]
    status = _lines([*before, "status", "--short", "--branch", "--untracked-files=normal", "--ignore-submodules=all"])
    if isinstance(status, str):
        return GitState(absent=status)
    commits = _lines([*before, "log", f"-{MOST_COMMITS}", "--no-show-signature", "--date=short", "--format=%h %ad %s"])
    branch = next((line.removeprefix("## ") for line in status if line.startswith("## ")), "")
    changed = [line for line in status if not line.startswith("## ")]
    return GitState(
        branch=branch,
        status=tuple(changed[:MOST_FILES]),
        more_status=max(0, len(changed) - MOST_FILES),
        # A repository without a commit has a branch all the same.
        commits=() if isinstance(commits, str) else tuple(commits),
    )


def _lines(command: list[str]) -> list[str] | str:
    """The lines that a command prints; why there are none where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, check=False)  # noqa: S603 - git itself, with words of our own
    except subprocess.TimeoutExpired:
        return "git did not answer in time"
    except OSError:
        return "git could not be started"
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace")
        return "the folder is no repository" if "not a git repository" in said else "git refused"
    return [line[:LINE_CHARS] for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()]
