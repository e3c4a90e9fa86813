"""Where Claude Code keeps a project's transcripts. Apart from its format, which a server does not load at its start."""

from __future__ import annotations

import re


def project_slug(cwd: object) -> str:
    """The name that Claude Code gives the folder of a project's transcripts (it shortens one above 200 characters)."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(cwd))
