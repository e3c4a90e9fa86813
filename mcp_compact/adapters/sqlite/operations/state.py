"""A session's row: the counters that answer most questions, read and written as one."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import compress
from operator import attrgetter, ne

from mcp_compact.adapters.sqlite.operations.encoding import safe_id
from mcp_compact.messages.live import HASH_MODULUS
from mcp_compact.messages.values import value
from mcp_compact.messages.weights import NOTHING, Weight
from mcp_compact.ports.store import SessionKey

HASH_BYTES = 16


@value
class Totals:
    """Sums over live records; they are added and taken away as records come and go."""

    weight: Weight = NOTHING
    count: int = 0
    """Service records left out."""
    estimated: int = 0
    """Records that were never counted exactly."""
    hash: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.weight + other.weight,
            self.count + other.count,
            self.estimated + other.estimated,
            (self.hash + other.hash) % HASH_MODULUS,
        )

    def __sub__(self, other: Totals) -> Totals:
        return Totals(
            self.weight - other.weight,
            self.count - other.count,
            self.estimated - other.estimated,
            (self.hash - other.hash) % HASH_MODULUS,
        )


@dataclass(slots=True)
class Session:
    """The row as it is in the table, in the order of its columns."""

    id: int
    namespace: str
    session_id: str
    title: str
    model: str
    context_window: int | None
    cwd: str
    owner: str
    parent_session_id: str | None
    forked_at: int | None
    agent_id: str | None
    created_ms: int
    updated_ms: int
    last_seq: int
    message_count: int
    body_bytes: int
    head_seq: int
    head_uuid: str
    marker_seq: int
    boundary_seq: int
    base_seq: int
    natives: int
    awaited: int
    epoch: int
    live_units: int
    live_answers: int
    live_media: int
    live_messages: int
    live_count: int
    live_estimated: int
    live_hash: bytes
    overhead_tokens: int
    overhead_source: str
    anchor_seq: int
    compactions: int
    last_compaction_ms: int | None
    memory_version: int
    memory_mark_seq: int | None
    declines: str
    last_attempt: str
    auto_failures: int
    active_ms: int
    memory_units: int
    media_count: int | None
    media_bytes: int
    client_tokens: int | None
    stored: tuple[object, ...] = field(default=(), repr=False, compare=False)
    """The columns as the table holds them; empty where nobody knows. No column."""

    @property
    def live_weight(self) -> Weight:
        """What the live context weighs."""
        return Weight(self.live_units, self.live_answers, self.live_media, self.live_messages)

    @property
    def totals(self) -> Totals:
        """The live totals that the row holds."""
        return Totals(
            self.live_weight,
            self.live_count,
            self.live_estimated,
            int.from_bytes(self.live_hash, "big"),
        )

    @totals.setter
    def totals(self, value: Totals) -> None:
        weight = value.weight
        self.live_units, self.live_answers = weight.units, weight.results
        self.live_media, self.live_messages = weight.media, weight.messages
        self.live_count, self.live_estimated = value.count, value.estimated
        self.live_hash = value.hash.to_bytes(HASH_BYTES, "big")


_NAMES = tuple(item.name for item in fields(Session))[:-1]
COLUMNS = ", ".join(_NAMES)
_LOAD = f"SELECT {COLUMNS} FROM session WHERE namespace = ? AND session_id = ?"  # noqa: S608 - our own column names
_OWN = 3
"""Columns before this one name the session: they never change."""
_values = attrgetter(*_NAMES)


def load(conn: sqlite3.Connection, key: SessionKey) -> Session | None:
    """The session's row, None where there is none."""
    row = conn.execute(_LOAD, (safe_id(key.namespace), safe_id(key.session_id))).fetchone()
    if row is None:
        return None
    session = Session(*row)
    session.stored = row
    return session


def create(conn: sqlite3.Connection, key: SessionKey, now_ms: int) -> Session:
    """Make the session's row."""
    conn.execute(
        "INSERT INTO session (namespace, session_id, created_ms, updated_ms, active_ms, media_count) "
        "VALUES (?, ?, ?, ?, ?, 0)",
        (safe_id(key.namespace), safe_id(key.session_id), now_ms, now_ms, now_ms),
    )
    made = load(conn, key)
    assert made is not None  # noqa: S101 - it was made in this very transaction
    return made


def save(conn: sqlite3.Connection, session: Session) -> None:
    """Write back what has changed of the row: an index is not touched for a column that is as it was."""
    now = _values(session)
    before = session.stored or (object(),) * len(now)
    changed = tuple(compress(range(_OWN, len(now)), map(ne, now[_OWN:], before[_OWN:])))
    if changed:
        conn.execute(_update(changed), (*[now[at] for at in changed], session.id))
        session.stored = now


@lru_cache(maxsize=256)
def _update(columns: tuple[int, ...]) -> str:
    return f"UPDATE session SET {', '.join(f'{_NAMES[at]} = ?' for at in columns)} WHERE id = ?"  # noqa: S608 - as above
