"""What the server's owner runs around a compaction: commands of a hooks file, and callables of installed packages."""

from __future__ import annotations

from mcp_compact.adapters.hooks.commands import CommandHooks
from mcp_compact.adapters.hooks.entry_points import EntryPointHooks
from mcp_compact.adapters.hooks.file import Command, read_hooks_file
from mcp_compact.adapters.hooks.loading import AllHooks, NoHooks, load_hooks

__all__ = ["AllHooks", "Command", "CommandHooks", "EntryPointHooks", "NoHooks", "load_hooks", "read_hooks_file"]
