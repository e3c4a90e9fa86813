"""What names a session."""

from __future__ import annotations

from mcp_compact.errors import CallerError
from mcp_compact.ports.store import SessionKey

MAX_SESSION_ID = 200


def session_key(namespace: str, session_id: str) -> SessionKey:
    """A checked key. Ids are opaque: never a path, never part of SQL text."""
    clean = session_id.strip()
    if not clean or len(clean) > MAX_SESSION_ID or not clean.isprintable():
        raise CallerError(
            "bad_session_id",
            f"A session id is 1 to {MAX_SESSION_ID} printable characters.",
            "Pass the session_id that append_messages or import_transcript answered.",
        )
    return SessionKey(namespace, clean)


def child_id(session_id: str, agent_id: str) -> str:
    """The session id of a sub-agent's conversation."""
    return f"{session_id}/agent-{agent_id}"
