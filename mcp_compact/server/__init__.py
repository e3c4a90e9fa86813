"""The face for MCP clients. Importing it loads the MCP package, which takes a second or two."""

from __future__ import annotations

from mcp_compact.server.app import build_server, tool_rows
from mcp_compact.server.transports import serve, serve_stdio

__all__ = ["build_server", "serve", "serve_stdio", "tool_rows"]
