"""Which records a search looks at, besides their words: role, tool, time, and what a boundary parts."""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.operations.encoding import MAX_INT, safe_id
from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.search import SearchQuery

# A message that brings results of tools is the tool's, whatever role it was sent in.
_ROLES = {
    "user": "r.role = 'user' AND r.results IS NULL",
    "assistant": "r.role = 'assistant'",
    "tool": "(r.results IS NOT NULL OR r.role = 'tool')",
    "system": "(r.role IS NULL OR r.role IN ('system', 'developer'))",
}
_TOOL = (
    "(r.calls IS NOT NULL OR r.results IS NOT NULL) AND EXISTS (SELECT 1 FROM call c WHERE c.session = r.session "
    "AND c.tool_use_id IN (SELECT value FROM json_each(coalesce(r.calls, '[]')) UNION ALL "
    "SELECT value FROM json_each(coalesce(r.results, '[]'))) AND c.name = :tool COLLATE NOCASE)"
)
_BOUNDARIES = {"before": "r.seq <= coalesce(:base, s.base_seq)", "after": "r.seq > coalesce(:base, s.base_seq)"}
_BASE = (
    "SELECT m.base_seq FROM session s JOIN record r ON r.session = s.id AND r.uuid = :uuid "
    "JOIN marker m ON m.session = r.session AND m.seq = r.seq "
    "WHERE s.namespace = :namespace AND s.session_id = :session_id"
)


def narrowing(query: SearchQuery) -> str:
    """The conditions on `record r` and `session s`, each with AND before it; empty where everything is asked for."""
    conditions = [
        _ROLES[query.role] if query.role else "",
        _TOOL if query.tool else "",
        "r.at_ms >= :since" if query.since_ms is not None else "",
        "r.at_ms < :until" if query.until_ms is not None else "",
        _BOUNDARIES[query.boundary] if query.boundary else "",
    ]
    return "".join(f" AND {condition}" for condition in conditions if condition)


def values(conn: sqlite3.Connection, namespace: str, query: SearchQuery) -> dict[str, object]:
    """The values that the conditions name. Raises CallerError (`unknown_boundary`)."""
    return {
        "tool": well_formed(query.tool),
        "since": _bounded(query.since_ms),
        "until": _bounded(query.until_ms),
        "base": _base(conn, namespace, query) if query.boundary_uuid else None,
    }


def _bounded(at_ms: int | None) -> int | None:
    return None if at_ms is None else max(-MAX_INT, min(at_ms, MAX_INT))


def _base(conn: sqlite3.Connection, namespace: str, query: SearchQuery) -> int:
    given = {
        "uuid": safe_id(query.boundary_uuid),
        "namespace": namespace,
        "session_id": safe_id(query.session_id or ""),
    }
    row = conn.execute(_BASE, given).fetchone()
    if row is None:
        raise CallerError(
            "unknown_boundary",
            f"The session has no boundary {query.boundary_uuid[:80]!r}.",
            "Leave it out for the last one; list_boundaries names them all.",
        )
    return int(row[0])
