"""The storage operations: each a synchronous function on a connection, one short transaction.

They import the standard library and the rings below alone, so that hooks and the command line can
call them directly. Each is loaded when it is first asked for: a hook needs a few of them, and all
of them take as long as everything else that it does.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_compact.adapters.sqlite.connection import connect as connect
    from mcp_compact.adapters.sqlite.operations.append import append as append
    from mcp_compact.adapters.sqlite.operations.checks import Health as Health
    from mcp_compact.adapters.sqlite.operations.checks import check as check
    from mcp_compact.adapters.sqlite.operations.clearable import clearable as clearable
    from mcp_compact.adapters.sqlite.operations.commit import commit as commit
    from mcp_compact.adapters.sqlite.operations.commit import undo as undo
    from mcp_compact.adapters.sqlite.operations.deleting import delete_session as delete_session
    from mcp_compact.adapters.sqlite.operations.forks import create_session as create_session
    from mcp_compact.adapters.sqlite.operations.forks import fork_session as fork_session
    from mcp_compact.adapters.sqlite.operations.memory import memory as memory
    from mcp_compact.adapters.sqlite.operations.memory import write_memory as write_memory
    from mcp_compact.adapters.sqlite.operations.originals import call as call
    from mcp_compact.adapters.sqlite.operations.originals import live as live
    from mcp_compact.adapters.sqlite.operations.originals import markers as markers
    from mcp_compact.adapters.sqlite.operations.originals import newest_message as newest_message
    from mcp_compact.adapters.sqlite.operations.originals import record as record
    from mcp_compact.adapters.sqlite.operations.originals import records as records
    from mcp_compact.adapters.sqlite.operations.pending import pending as pending
    from mcp_compact.adapters.sqlite.operations.pending import put_pending as put_pending
    from mcp_compact.adapters.sqlite.operations.pending import use_pending as use_pending
    from mcp_compact.adapters.sqlite.operations.pins import register as register
    from mcp_compact.adapters.sqlite.operations.pins import registered as registered
    from mcp_compact.adapters.sqlite.operations.pins import unregister as unregister
    from mcp_compact.adapters.sqlite.operations.prefix import match_prefix as match_prefix
    from mcp_compact.adapters.sqlite.operations.search import search as search
    from mcp_compact.adapters.sqlite.operations.sessions import note as note
    from mcp_compact.adapters.sqlite.operations.sessions import position as position
    from mcp_compact.adapters.sqlite.operations.sessions import session as session
    from mcp_compact.adapters.sqlite.operations.sessions import sessions as sessions
    from mcp_compact.adapters.sqlite.operations.snapshot import snapshot as snapshot
    from mcp_compact.adapters.sqlite.operations.spoken import spoken as spoken
    from mcp_compact.adapters.sqlite.waiting import set_patience_ms as set_patience_ms

_NAMES = {
    "connection": ("connect",),
    "operations.append": ("append",),
    "operations.checks": ("Health", "check"),
    "operations.clearable": ("clearable",),
    "operations.commit": ("commit", "undo"),
    "operations.deleting": ("delete_session",),
    "operations.forks": ("create_session", "fork_session"),
    "operations.memory": ("memory", "write_memory"),
    "operations.originals": ("call", "live", "markers", "newest_message", "record", "records"),
    "operations.pending": ("pending", "put_pending", "use_pending"),
    "operations.pins": ("register", "registered", "unregister"),
    "operations.prefix": ("match_prefix",),
    "operations.search": ("search",),
    "operations.sessions": ("note", "position", "session", "sessions"),
    "operations.snapshot": ("snapshot",),
    "operations.spoken": ("spoken",),
    "waiting": ("set_patience_ms",),
}
"""The operations, by the modules of `adapters.sqlite` that hold them."""
_WHERE = {name: f"mcp_compact.adapters.sqlite.{module}" for module, names in _NAMES.items() for name in names}

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


class _Operations(ModuleType):
    """This package. Some operations are called like modules of it, which would stand here once they are loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and name in _WHERE):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Operations


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    found = getattr(import_module(_WHERE[name]), name)
    setattr(sys.modules[__name__], name, found)
    return found


def load() -> None:
    """Load all of them: a server's calls shall not wait for it, nor meet the modules of a release that came since."""
    for module in dict.fromkeys(_WHERE.values()):
        import_module(module)
