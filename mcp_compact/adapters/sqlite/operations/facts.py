"""What a caller or an import states of a session, and what of it is taken."""

from __future__ import annotations

from mcp_compact.adapters.sqlite.operations.encoding import checked
from mcp_compact.adapters.sqlite.operations.state import Session
from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.store import SessionFacts

_FIRST_COUNTS = frozenset({"title", "cwd", "owner"})
"""A server that appends in its own working directory does not move a session that was imported from another."""


def take(session: Session, facts: SessionFacts, *, is_import: bool) -> None:
    """Note in the session's row what is stated; None leaves what is there.

    Title, working directory and owner stay once they are set, but an import may bring a better title.
    """
    for name in ("title", "model", "cwd", "owner", "parent_session_id", "agent_id"):
        value = getattr(facts, name)
        is_better = is_import and name == "title" and value
        if value is None or (name in _FIRST_COUNTS and getattr(session, name) and not is_better):
            continue
        setattr(session, name, well_formed(value))
    if facts.context_window is not None:
        session.context_window = checked("context_window", facts.context_window)
    if facts.overhead_tokens is not None:
        session.overhead_tokens = max(0, checked("overhead_tokens", facts.overhead_tokens) or 0)
        session.overhead_source = "given"
