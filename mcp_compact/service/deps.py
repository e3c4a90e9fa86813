"""What every use case is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from anyio import to_thread

from mcp_compact.compaction.policy import Levels, Policy, levels
from mcp_compact.compaction.request import Surroundings
from mcp_compact.errors import CallerError
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.weights import Family, family_of
from mcp_compact.ports.clock import Clock
from mcp_compact.ports.hooks import Hooks
from mcp_compact.ports.store import SessionKey, SessionRow, Store
from mcp_compact.ports.summarizer import Summarizer
from mcp_compact.ports.tokenizer import Tokenizer
from mcp_compact.service.keys import MAX_SESSION_ID
from mcp_compact.service.keys import session_key as session_key  # noqa: PLC0414 - of the use cases too
from mcp_compact.service.page_cache import PageCache
from mcp_compact.service.prepare import best_counter

if TYPE_CHECKING:
    from mcp_compact.service.extraction import Extractions


class Settings(Protocol):
    """What the use cases need of the settings."""

    @property
    def policy(self) -> Policy: ...

    @property
    def context_window(self) -> int | None: ...

    @property
    def page_tokens(self) -> int: ...

    @property
    def max_file_bytes(self) -> int: ...

    @property
    def request_bytes(self) -> int: ...

    @property
    def request_media(self) -> int: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...

    @property
    def summarizers(self) -> tuple[str, ...]: ...

    @property
    def extract(self) -> bool: ...

    @property
    def auto(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Deps:
    store: Store
    tokenizer: Tokenizer
    clock: Clock
    settings: Settings
    hooks: Hooks | None = None
    writers: Mapping[str, Summarizer] = field(default_factory=dict)
    """Who can be asked for a summary, by the names of the setting (the calling agent aside)."""
    extractions: Extractions | None = None
    """Session memory in the background; None where nobody hosts it."""
    pages: PageCache = field(default_factory=PageCache)

    async def row(self, key: SessionKey) -> SessionRow:
        """The session's row. Raises CallerError `unknown_session`."""
        row = await self.store.session(key)
        if row is None:
            raise unknown_session(key.session_id)
        return row

    def ladder(self, row: SessionRow) -> Levels:
        return levels(row.context_window or self.settings.context_window, self.settings.policy.compact_at)

    async def surroundings(self, session_id: str) -> Surroundings:
        """How text is counted here; loads the tokenizer in a thread the first time."""
        is_there = self.tokenizer.state != "cold"
        count = best_counter(self.tokenizer) if is_there else await to_thread.run_sync(best_counter, self.tokenizer)
        return Surroundings(count, ClearedText(), session_id)


def family(row: SessionRow) -> Family:
    """How the session's model counts."""
    return family_of(row.model)


def unknown_session(session_id: str) -> CallerError:
    """The error for a session that there is not."""
    return CallerError(
        "unknown_session",
        f"There is no session {session_id[:MAX_SESSION_ID]!r}.",
        "append_messages or import_transcript makes one; `mcp-compact sessions` lists those that exist.",
    )
