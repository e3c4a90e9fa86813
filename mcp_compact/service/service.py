"""The use cases as one object: what the server's tools, the command line and the library call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcp_compact.compaction.micro import MicroRequest
from mcp_compact.compaction.snip import SnipRequest
from mcp_compact.ports.bindings import Bound
from mcp_compact.ports.store import Batch, SessionFacts
from mcp_compact.service import (
    appending,
    auditing,
    clearing,
    compacting,
    exporting,
    extracting,
    importing,
    memory,
    pins,
    plans,
    reading,
    resume,
    searching,
    snipping,
    status,
    summaries,
    validating,
)
from mcp_compact.service import sessions as whole
from mcp_compact.service.deps import Deps, session_key
from mcp_compact.service.exporting import Exported, ExportPage
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.pins import PinResult
from mcp_compact.service.prepare import Progress
from mcp_compact.service.results import (
    AppendResult,
    CompactResult,
    ImportResult,
    MemoryResult,
    MessagesPage,
    MicroResult,
    OriginalPart,
    Picture,
    SearchResult,
    SessionLine,
    Status,
    UndoResult,
)
from mcp_compact.service.resume import NewContext
from mcp_compact.service.searching import Narrowed, SearchCall
from mcp_compact.service.session_results import (
    BoundariesPage,
    LossAudit,
    SessionDeleted,
    SessionForked,
    SessionMade,
    SessionsPage,
    SnipResult,
)
from mcp_compact.service.transcript import TranscriptTail, transcript_tail
from mcp_compact.service.validating import Validation

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Service:
    """Every verb of the product for one namespace. Expected failures are CallerError or ServerError."""

    deps: Deps
    namespace: str = LOCAL

    async def append_messages(
        self, messages: Sequence[Any], session_id: str, facts: SessionFacts | None = None
    ) -> AppendResult:
        """Store messages (plain API messages or transcript records); makes the session if it is new."""
        return await appending.append(self.deps, session_key(self.namespace, session_id), messages, facts)

    async def import_file(
        self, path: Path, *, format_name: str = "", session_id: str = "", progress: Progress | None = None
    ) -> ImportResult:
        """Import a transcript file; what is known already is skipped. The caller has checked the path."""
        return await importing.import_file(
            self.deps, self.namespace, path, format_name=format_name, session_id=session_id, progress=progress
        )

    async def note_folder(self, session_id: str, cwd: str) -> None:
        """Say where a session is at work, unless that is known: not every transcript tells its folder.

        Raises CallerError `no_such_session`.
        """
        facts = Batch((), SessionFacts(cwd=cwd), create=False)
        await self.deps.store.append(session_key(self.namespace, session_id), facts, self.deps.clock.now_ms())

    async def import_content(
        self, content: str, *, format_name: str = "", session_id: str = "", progress: Progress | None = None
    ) -> ImportResult:
        """Import a transcript given as text."""
        return await importing.import_content(
            self.deps, self.namespace, content, format_name=format_name, session_id=session_id, progress=progress
        )

    async def status(self, session_id: str, *, detail: bool = False) -> Status:
        """How full the context is; with `detail` also what could be snipped, which reads every live body."""
        key = session_key(self.namespace, session_id)
        found = await status.status_of(self.deps, key)
        if not detail:
            return found
        tokens, note = await snipping.snippable_note(self.deps, key)
        return replace(found, snippable_tokens=tokens, warnings=(*found.warnings, *filter(None, [note])))

    async def picture(self, session_id: str) -> Picture:
        """What fills the live context, by kind."""
        return await status.picture_of(self.deps, session_key(self.namespace, session_id))

    async def compact(self, session_id: str, call: CompactCall) -> CompactResult:
        """Compact the live context, or say why not."""
        return await compacting.compact(self.deps, session_key(self.namespace, session_id), call)

    async def submit_summary(self, compaction_id: str, summary: str) -> CompactResult:
        """Finish a compaction that waits for its summary."""
        return await summaries.submit_summary(self.deps, self.namespace, compaction_id, summary)

    async def sampled(self, compaction_id: str, call: CompactCall) -> CompactResult:
        """Finish a compaction with what the client's model wrote: `call` is the same again, with the answer."""
        return await summaries.sampled(self.deps, self.namespace, compaction_id, call)

    async def apply_plan(self, session_id: str, plan_id: str) -> CompactResult:
        """Carry out exactly the plan of a dry run, or say what changed since."""
        return await plans.apply_plan(self.deps, session_key(self.namespace, session_id), plan_id)

    async def material(self, session_id: str, cursor: str) -> CompactResult:
        """The next part of what a summary is to be written of."""
        return await summaries.material(self.deps, session_key(self.namespace, session_id), cursor)

    async def microcompact(self, session_id: str, request: MicroRequest) -> MicroResult:
        """Clear old tool results and large media."""
        return await clearing.microcompact(self.deps, session_key(self.namespace, session_id), request)

    async def snip(self, session_id: str, request: SnipRequest) -> SnipResult:
        """Take messages out of the live context."""
        return await snipping.snip(self.deps, session_key(self.namespace, session_id), request)

    async def messages(
        self, session_id: str, *, format_name: str = "anthropic", cursor: str = "", whole_messages: bool = True
    ) -> MessagesPage:
        """One page of the live context; a message that is larger than a page has one of its own, or comes in parts."""
        key = session_key(self.namespace, session_id)
        return await reading.messages_page(
            self.deps, key, format_name=format_name, cursor=cursor, whole_messages=whole_messages
        )

    async def new_context(self, session_id: str, *, target_tokens: int | None = None) -> NewContext:
        """What a new session of a client would begin with; nothing is written."""
        return await resume.new_context(self.deps, session_key(self.namespace, session_id), target_tokens)

    async def hand_on(self, context: NewContext, new_session_id: str) -> int:
        """Give a new session the old one's pins; the number of pins."""
        old, new = (session_key(self.namespace, name) for name in (context.session_id, new_session_id))
        return await resume.hand_on(self.deps, context, old, new)

    async def get_memory(self, session_id: str) -> MemoryResult:
        """The session memory."""
        return await memory.get_memory(self.deps, session_key(self.namespace, session_id))

    async def update_memory(
        self, session_id: str, content: str, *, section: str = "", summarized_through: str = ""
    ) -> MemoryResult:
        """Write the session memory, whole or one section."""
        key = session_key(self.namespace, session_id)
        return await memory.update_memory(
            self.deps, key, content, section=section, summarized_through=summarized_through
        )

    async def pin(self, session_id: str, text: str, *, kind: str = "instruction", name: str = "") -> PinResult:
        """Keep something word for word through every compaction."""
        return await pins.pin(self.deps, session_key(self.namespace, session_id), text, kind=kind, name=name)

    async def unpin(self, session_id: str, name: str, *, kind: str = "instruction") -> PinResult:
        """Take a pin back."""
        return await pins.unpin(self.deps, session_key(self.namespace, session_id), name, kind=kind)

    async def pins(self, session_id: str) -> PinResult:
        """The pins in force."""
        return await pins.list_pins(self.deps, session_key(self.namespace, session_id))

    async def audit_loss(self, session_id: str) -> LossAudit:
        """What left the context, by kind: how much of it still stands there, and what only the archive holds."""
        return await auditing.audit_loss(self.deps, session_key(self.namespace, session_id))

    async def extract_memory(self, session_id: str, progress: Progress | None = None) -> MemoryResult:
        """Bring the session memory up to date by the extractor, without a compaction."""
        return await extracting.extract_memory(self.deps, session_key(self.namespace, session_id), progress)

    async def search(  # noqa: PLR0913 - what may be asked for
        self,
        text: str,
        *,
        session_id: str = "",
        limit: int = 20,
        cursor: str = "",
        cwd: str | None = None,
        narrowed: Narrowed | None = None,
        progress: Progress | None = None,
    ) -> SearchResult:
        """Search everything ever stored, in one session or in all of this folder's."""
        call = SearchCall(text, session_id, limit, cwd, narrowed or Narrowed())
        return await searching.search_text(self.deps, self.namespace, call, cursor, progress)

    async def original(self, session_id: str, name: str, *, cursor: str = "") -> OriginalPart:
        """What was stored under a tool_use_id or a message uuid."""
        return await reading.original(self.deps, session_key(self.namespace, session_id), name, cursor)

    async def transcript(self, session_id: str) -> TranscriptTail:
        """The newest messages of the archive, masked."""
        return await transcript_tail(self.deps, session_key(self.namespace, session_id))

    async def export(self, session_id: str, format_name: str, *, whole: bool = False) -> Exported:
        """The live context, or everything that was said, as a provider or a client takes it; keys masked."""
        key = session_key(self.namespace, session_id)
        return await exporting.export(self.deps, key, format_name, whole=whole)

    async def export_page(
        self, session_id: str, format_name: str, *, whole: bool = False, cursor: str = ""
    ) -> ExportPage:
        """One page of an export."""
        key = session_key(self.namespace, session_id)
        return await exporting.export_page(self.deps, key, format_name, whole=whole, cursor=cursor)

    async def validate(
        self, messages: Sequence[Any] | dict[str, Any], provider: str = "", *, repair: bool = False, cursor: str = ""
    ) -> Validation:
        """What a provider would refuse in a list, and one that it takes."""
        return await validating.validate(self.deps, messages, provider, repair=repair, cursor=cursor)

    async def validate_context(
        self, session_id: str, provider: str = "", *, repair: bool = False, cursor: str = ""
    ) -> Validation:
        """The same for the live context of a session."""
        key = session_key(self.namespace, session_id)
        return await validating.validate_context(self.deps, key, provider, repair=repair, cursor=cursor)

    async def undo(self, session_id: str) -> UndoResult:
        """Take back the last compaction."""
        return await compacting.undo(self.deps, session_key(self.namespace, session_id))

    async def boundaries(self, session_id: str, *, cursor: str = "") -> BoundariesPage:
        """Compactions, clearings, snips and undos, the newest first."""
        return await whole.list_boundaries(self.deps, session_key(self.namespace, session_id), cursor)

    async def create_session(self, session_id: str = "", facts: SessionFacts | None = None) -> SessionMade:
        """A new, empty session; without an id one is made up."""
        key = session_key(self.namespace, session_id.strip() or self.deps.clock.new_uuid())
        return await whole.create_session(self.deps, key, facts or SessionFacts())

    async def delete_session(self, session_id: str) -> SessionDeleted:
        """Remove a session and everything that was made of it, for good."""
        return await whole.delete_session(self.deps, session_key(self.namespace, session_id))

    async def fork_session(self, session_id: str, *, new_session_id: str = "", up_to: str = "") -> SessionForked:
        """A new session that begins with this one's live context, up to and with a message."""
        key = session_key(self.namespace, session_id)
        new_key = session_key(self.namespace, new_session_id.strip() or self.deps.clock.new_uuid())
        return await whole.fork_session(self.deps, key, new_key, up_to.strip())

    async def sessions_page(self, *, cwd: str | None = None, limit: int = 50, cursor: str = "") -> SessionsPage:
        """Sessions, the last active first, page by page."""
        return await whole.sessions_page(self.deps, self.namespace, cwd=cwd, limit=limit, cursor=cursor)

    async def bound(self, client: str) -> Bound | None:
        """The session that a client's process is at, as its hooks noted it."""
        return await self.deps.store.bound(client)

    async def follow(self, client: str, server: str) -> None:
        """Note that this server's process follows the transcript for a client."""
        await self.deps.store.follow(client, server, self.deps.clock.now_ms())

    async def sessions(self, *, cwd: str | None = None, limit: int = 50) -> list[SessionLine]:
        """Sessions, the last active first; those of one working directory where it is given."""
        rows = await self.deps.store.sessions(self.namespace, cwd=cwd, limit=limit, before_ms=None)
        return [status.line_of(self.deps, row) for row in rows]
