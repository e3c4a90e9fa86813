"""The storage operations: each a synchronous function on a connection, one short transaction.

They import the standard library and the rings below alone, so that hooks and the command line can
call them directly.
"""

from __future__ import annotations

from mcp_compact.adapters.sqlite.connection import connect
from mcp_compact.adapters.sqlite.operations.append import append
from mcp_compact.adapters.sqlite.operations.checks import Health, check
from mcp_compact.adapters.sqlite.operations.clearable import clearable
from mcp_compact.adapters.sqlite.operations.commit import commit, undo
from mcp_compact.adapters.sqlite.operations.memory import memory, write_memory
from mcp_compact.adapters.sqlite.operations.originals import call, live, markers, newest_message, record, records
from mcp_compact.adapters.sqlite.operations.prefix import match_prefix
from mcp_compact.adapters.sqlite.operations.search import search
from mcp_compact.adapters.sqlite.operations.sessions import note, position, session, sessions
from mcp_compact.adapters.sqlite.operations.snapshot import snapshot

__all__ = [
    "Health",
    "append",
    "call",
    "check",
    "clearable",
    "commit",
    "connect",
    "live",
    "markers",
    "match_prefix",
    "memory",
    "newest_message",
    "note",
    "position",
    "record",
    "records",
    "search",
    "session",
    "sessions",
    "snapshot",
    "undo",
    "write_memory",
]
