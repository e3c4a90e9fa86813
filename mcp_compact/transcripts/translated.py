"""What the readers of translated formats share: those whose entries are no messages of a known API as they stand.

A format says what each of its entries means; here that becomes records, counted and reported. Every entry stays in
the archive as it was, whatever it means. A file is one JSON value (its list of entries under a key, or the list
itself), which is read whole each time; or one entry a line, and then another reader may go on where one stopped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import canonical
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import MESSAGE_TYPES, Message, Record
from mcp_compact.transcripts.entries import Entry
from mcp_compact.transcripts.facts import FactsGatherer, SessionFacts
from mcp_compact.transcripts.fields import UUID_CHARS, time_of
from mcp_compact.transcripts.kinds import HEADER, UNKNOWN
from mcp_compact.transcripts.lines import Json, Line, Problem, excerpt
from mcp_compact.transcripts.objects import (
    FirstLine,
    begins_value,
    cleaned,
    document,
    objects_of,
    several_conversations,
)
from mcp_compact.transcripts.parsed import Known, Parsed, derived_uuid, nothing_known, parsed_of
from mcp_compact.transcripts.quick_document import Document, Write
from mcp_compact.transcripts.report import ImportReport, PairCheck


class TranslatedReader:
    """Turns the entries of one file into records, in one go or batch by batch.

    Records without an id are named by the session's own id, where the file tells one, their place and their bytes:
    so they are the same under any name of the file.
    """

    lists: ClassVar[tuple[str, ...]] = ()
    """The keys of a file's one value under which its entries may stand."""
    is_whole: ClassVar[bool] = False
    """A file is always one value."""

    def __init__(
        self,
        source: str,
        state: Mapping[str, Any] | None = None,
        known: Known = nothing_known,  # noqa: ARG002 - no entry is looked up by its name
    ) -> None:
        self._source = source
        self._report = ImportReport()
        self._pairs = PairCheck(self._report)
        self._is_resumed = self._by_line = bool(state)
        self._ordinal: int = state["ordinal"] if state else 0
        self._parent_session: str | None = state["parent_session"] if state else None
        self._facts: dict[str | None, FactsGatherer] = defaultdict(FactsGatherer)
        for agent_id, facts in state["facts"] if state else ():
            self._facts[agent_id] = FactsGatherer.from_state(facts)
        self._session = self._facts[None]
        self.last_uuid: str = state["last"] if state else ""
        """The uuid of the last record, empty before the first."""
        self._first: FirstLine | None = None
        self._write: Write = canonical
        self._at: object = None
        self._at_ms: int | None = None
        self.begin(state["own"] if state else {})

    # ------------------------------------------------------------ what a format says

    def begin(self, own: Mapping[str, Any]) -> None:
        """Set up what the format keeps in mind: what `memory` gave at an earlier reading, else nothing."""

    def memory(self) -> dict[str, Any]:
        """What the format keeps in mind, as a small JSON value."""
        return {}

    def entries(self, raw: Json, body: bytes | None) -> Iterable[Entry]:
        """What one entry of the file means. `body` are its bytes where it is a line."""
        raise NotImplementedError

    def usual(self, raw: Json, body: bytes | None, place: int) -> Parsed | None:  # noqa: ARG002 - a format's own look
        """The record of an entry of a usual kind, by `_record_of`; None where `entries` is to tell what it means."""
        return None

    def closing(self) -> Iterable[Entry]:
        """What is known only at the end of a file that is read whole."""
        return ()

    def header(self, value: Json) -> Iterable[Entry]:
        """What stands beside the entries; to be kept, and looked at for facts of the session."""
        return (Entry(HEADER, value),) if value else ()

    # ------------------------------------------------------------ Reader

    @property
    def report(self) -> ImportReport:
        """What was read so far."""
        return self._report

    @property
    def agents(self) -> tuple[str, ...]:
        """The sub-agents met so far."""
        return tuple(agent for agent in self._facts if agent is not None)

    @property
    def sole_agent(self) -> str | None:
        """A file is a session of its own."""
        return None

    @property
    def session(self) -> FactsGatherer:
        """The facts of the session itself, to be filled in by the format."""
        return self._session

    def facts(self, agent_id: str | None = None) -> SessionFacts:
        """What is known of the session, or of one of its sub-agents."""
        own = self._session.facts()
        if agent_id is None:
            return replace(own, parent_session_id=self._parent_session)
        child = self._facts[agent_id].facts(agent_id)
        return replace(
            child, parent_session_id=own.session_id, cwd=child.cwd or own.cwd, model=child.model or own.model
        )

    def goes_on(self, first: Line) -> bool:
        """Is the file one entry a line, by its first one? Then another reader may go on behind any of them."""
        if not self._by_line and not self.is_whole:
            self._first = FirstLine(first)
            value = self._first.value
            self._by_line = value is not None and self.entries_of(value) is None
        return self._by_line

    def state(self) -> dict[str, Any]:
        """A small JSON value from which another reader of the same lines goes on; nothing for a value."""
        if not self._by_line:
            return {}
        return {
            "ordinal": self._ordinal,
            "last": self.last_uuid,
            "parent_session": self._parent_session,
            "facts": [[agent_id, facts.state()] for agent_id, facts in self._facts.items()],
            "own": self.memory(),
        }

    def read(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        """The records of these lines, in their order."""
        rest = iter(lines)
        first = next(rest, None)
        if first is None:
            return
        if self._by_line:
            yield from self._read_lines(chain([first], rest))
            return
        looked, self._first = self._first, None
        found = (looked if looked is not None and looked.line is first else FirstLine(first)).document
        if found.value is None:
            if begins_value(first):
                lines = [first, *rest]
                yield from self._read_value(cleaned(document(lines), lines))
            else:
                yield from self._read_lines(chain([first], rest))
        else:
            second = next(rest, None)
            if second is None and self.entries_of(found.value) is not None:
                yield from self._read_value(cleaned(found, [first]))
            else:
                yield from self._read_lines(chain([first], [second] if second else [], rest))
        for entry in self.closing():
            yield self._record(entry, self._ordinal)

    def entries_of(self, value: Json) -> list[Any] | None:
        """The entries in a file's one value; None for an object that is an entry itself."""
        found = (value.get(key) for key in self.lists)
        return next((entries for entries in found if isinstance(entries, list)), None)

    def feed(self, raw: Json, body: bytes, place: int) -> list[Parsed]:
        """The records of one entry by itself; `place` names it in the report."""
        return [self._record(entry, place) for entry in self.entries(raw, body)]

    # ------------------------------------------------------------ the file

    def _read_lines(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        for raw, body, number in objects_of(lines, self._report):
            if self.lists and self.entries_of(raw) is not None:
                raise several_conversations()
            if (usual := self.usual(raw, body, number)) is not None:
                yield usual
                continue
            for entry in self.entries(raw, body):
                yield self._record(entry, number)

    def _read_value(self, found: Document) -> Iterator[Parsed]:
        entries: object = found.value
        value, self._write = found.value, found.write
        if isinstance(value, dict):
            entries = self.entries_of(value)
            beside = {key: item for key, item in value.items() if item is not entries}
            for entry in self.header(beside):
                yield self._record(entry, 0)
        if not isinstance(entries, list):
            raise CallerError(
                "not_a_transcript", "The JSON holds no list of entries.", "Check that it is a session's own file."
            )
        for place, item in enumerate(entries, 1):
            if not isinstance(item, dict):
                self._report.add_problem(Problem(place, "not a JSON object", excerpt(canonical(item))))
                continue
            if (usual := self.usual(item, None, place)) is not None:
                yield usual
                continue
            for entry in self.entries(item, None):
                yield self._record(entry, place)

    # ------------------------------------------------------------ records

    def _record(self, entry: Entry, place: int) -> Parsed:
        self._ordinal += 1
        agent_id, report = entry.agent_id, self._report
        for name in entry.unknown:
            report.note_unknown(name, place)
        # The facts of an envelope are told by each format itself.
        facts = self._session
        if agent_id is not None:
            report.sub_agents[agent_id] += 1
            facts = self._facts[agent_id]
        return self._noted(self._make(entry), entry.kind or UNKNOWN, facts, place)

    def _record_of(  # noqa: PLR0913 - by place: nearly every entry of a long session comes here
        self, raw: Json, body: bytes | None, kind: str, message: Message | None, place: int, *,
        uuid: MessageUuid | None = None, at: object = None, subtype: str = "", is_meta: bool = False,
    ) -> Parsed:  # fmt: skip
        """What `_record` gives for an entry of the session's own that names no other one: without an `Entry`."""
        self._ordinal += 1
        if body is None:
            body = self._write(raw)
        if at is not self._at and (type(at) is not str or at != self._at):
            self._at, self._at_ms = at, time_of(at)
        if uuid is None:
            uuid = derived_uuid(self._session.session_id or self._source, self._ordinal, body)
        type_ = kind if message is None else message.role
        record = Record(uuid, type_, body, raw, message, None, False, self._at_ms, 0, subtype, is_meta)  # noqa: FBT003
        return self._noted(record, kind, self._session, place)

    def _noted(self, record: Record, kind: str, facts: FactsGatherer, place: int) -> Parsed:
        """The record, counted, and looked at for what it says of its session."""
        self.last_uuid = record.uuid
        report, message = self._report, record.message
        report.count(kind)
        if record.at_ms != facts.last_ms:
            facts.look_at_time(record.at_ms)
        if message is not None:
            if record.type in MESSAGE_TYPES and message.role in MESSAGE_TYPES:
                report.messages += 1
                self._pairs.look(record, place, known_call=self._is_resumed)
            facts.look_at_message(record, message)
        return parsed_of(record, record.agent_id, place)

    def _make(self, entry: Entry) -> Record:
        """The record of an entry. Its values by place, for every entry of every import comes here."""
        raw, message, named, at = entry.raw, entry.message, entry.uuid, entry.at
        body = self._write(raw) if entry.body is None else entry.body
        if not named or len(named) > UUID_CHARS:
            uuid = derived_uuid(self._session.session_id or self._source, self._ordinal, body)
        else:
            uuid = MessageUuid(named)
        kind = entry.kind or UNKNOWN if message is None else message.role
        if entry.compaction is not None:
            kind, raw = "system", {**raw, "compactMetadata": entry.compaction}
        if at is not self._at and (type(at) is not str or at != self._at):
            # The records of one entry have one time, and what is written together has one text of it.
            self._at, self._at_ms = at, time_of(at)
        return Record(
            uuid,
            kind,
            body,
            raw,
            message,
            MessageUuid(entry.parent) if entry.parent else None,
            entry.is_root,
            self._at_ms,
            0,
            entry.subtype,
            entry.is_meta,
            entry.is_summary,
            entry.agent_id,
        )
