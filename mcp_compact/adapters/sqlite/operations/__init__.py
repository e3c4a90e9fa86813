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
from mcp_compact.adapters.sqlite.operations.deleting import delete_session
from mcp_compact.adapters.sqlite.operations.forks import create_session, fork_session
from mcp_compact.adapters.sqlite.operations.memory import memory, write_memory
from mcp_compact.adapters.sqlite.operations.originals import call, live, markers, newest_message, record, records
from mcp_compact.adapters.sqlite.operations.pending import pending, put_pending, use_pending
from mcp_compact.adapters.sqlite.operations.pins import register, registered, unregister
from mcp_compact.adapters.sqlite.operations.prefix import match_prefix
from mcp_compact.adapters.sqlite.operations.search import search
from mcp_compact.adapters.sqlite.operations.sessions import note, position, session, sessions
from mcp_compact.adapters.sqlite.operations.snapshot import snapshot
from mcp_compact.adapters.sqlite.operations.spoken import spoken
from mcp_compact.adapters.sqlite.waiting import set_patience_ms

__all__ = [
    "Health",
    "append",
    "call",
    "check",
    "clearable",
    "commit",
    "connect",
    "create_session",
    "delete_session",
    "fork_session",
    "live",
    "markers",
    "match_prefix",
    "memory",
    "newest_message",
    "note",
    "pending",
    "position",
    "put_pending",
    "record",
    "records",
    "register",
    "registered",
    "search",
    "session",
    "sessions",
    "set_patience_ms",
    "snapshot",
    "spoken",
    "undo",
    "unregister",
    "use_pending",
    "write_memory",
]
