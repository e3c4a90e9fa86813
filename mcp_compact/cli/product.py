"""The name under which clients know this server and its programs."""

from __future__ import annotations

NAME = "mcp-compact"
