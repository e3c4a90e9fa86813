"""Where Claude Code and Codex keep their sessions, and where a new one of theirs belongs."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

from mcp_compact.cli.environment import value_of
from mcp_compact.errors import CallerError
from mcp_compact.transcripts.project_folder import project_slug

LONGEST_SLUG = 200
"""Claude Code shortens longer names of folders by a hash of its own."""
SUFFIX = ".jsonl"


def home() -> Path:
    """The user's home directory. Raises CallerError where there is none."""
    try:
        return Path.home()
    except RuntimeError:
        raise CallerError("no_home", "This user has no home directory.", "Set HOME.") from None


def claude_projects() -> Path:
    """The folder of Claude Code's projects."""
    named = value_of("CLAUDE_CONFIG_DIR")
    return (Path(named).expanduser() if named else home() / ".claude") / "projects"


def claude_project(cwd: Path) -> Path:
    """The folder of one project's sessions. Raises CallerError where its name cannot be known."""
    slug = project_slug(cwd)
    if len(slug) <= LONGEST_SLUG:
        return claude_projects() / slug
    beginning = slug[:LONGEST_SLUG] + "-"
    found = [path for path in claude_projects().glob("-*") if path.name.startswith(beginning) and path.is_dir()]
    if len(found) == 1:
        return found[0]
    raise CallerError(
        "long_path",
        f"Claude Code shortens the name of the folder for {cwd}, and how is not known.",
        "Start claude in that folder once, or name another folder with --cwd.",
    )


def claude_transcript(cwd: str, session_id: str) -> Path | None:
    """The transcript of a session of Claude Code, where it is there."""
    if not cwd or "/" in session_id:
        return None
    try:
        path = claude_project(Path(cwd)) / f"{session_id}{SUFFIX}"
    except CallerError:
        return None
    return path if path.is_file() else None


def claude_transcripts(cwd: Path, beginning: str) -> list[Path]:
    """Transcripts of a project whose session ids begin so; sub-agents' are left out."""
    try:
        folder = claude_project(cwd)
        names = sorted(folder.iterdir()) if folder.is_dir() else []
    except (CallerError, OSError):
        return []
    return [
        path
        for path in names
        if path.suffix == SUFFIX and path.name.startswith(beginning) and not path.name.startswith("agent-")
    ]


def codex_home() -> Path:
    """The folder of Codex's settings and sessions."""
    named = value_of("CODEX_HOME")
    return Path(named).expanduser() if named else home() / ".codex"


def pi_folder() -> Path:
    """The folder of pi's settings, extensions and sessions."""
    named = value_of("PI_CODING_AGENT_DIR")
    return Path(named).expanduser() if named else home() / ".pi" / "agent"


def codex_provider() -> str:
    """The model provider that Codex is set to; empty for its own. A file that cannot be read names none."""
    try:
        found = tomllib.loads((codex_home() / "config.toml").read_text(encoding="utf-8")).get("model_provider")
    except (OSError, ValueError):
        return ""
    return found if isinstance(found, str) else ""


def codex_transcript(session_id: str) -> Path | None:
    """The rollout of a session of Codex, where it is there; of several the last one begun."""
    folder = codex_home() / "sessions"
    if not session_id.replace("-", "").isalnum() or not folder.is_dir():
        return None
    found = sorted(folder.glob(f"*/*/*/rollout-*-{session_id}{SUFFIX}"))
    return found[-1] if found else None


def codex_rollout(session_id: str, now_ms: int) -> Path:
    """Where Codex keeps a session that begins now: by year, month and day."""
    at = datetime.fromtimestamp(now_ms / 1000, UTC)
    return codex_home() / "sessions" / f"{at:%Y/%m/%d}" / f"rollout-{at:%Y-%m-%dT%H-%M-%S}-{session_id}{SUFFIX}"
