"""What the readers of translated formats share: those whose entries are no messages of a known API as they stand.

A format says what each of its entries means; here that becomes records, counted and reported. Every entry stays in
the archive as it was, whatever it means. A file is one JSON value (its list of entries under a key, or the list
itself), or one entry a line; lines are read one by one, a value whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar

from mcp_compact.errors import CallerError
from mcp_compact.messages.codec import canonical, clean, parse_time
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import MESSAGE_TYPES, Message, Record
from mcp_compact.messages.values import value
from mcp_compact.transcripts.facts import FactsGatherer, SessionFacts
from mcp_compact.transcripts.fields import uuid_of
from mcp_compact.transcripts.kinds import BOUNDARY, HEADER, UNKNOWN
from mcp_compact.transcripts.lines import Json, Line, Problem, excerpt, loads, parse_line, whole_object
from mcp_compact.transcripts.parsed import Known, Parsed, derived_uuid, nothing_known
from mcp_compact.transcripts.report import ImportReport, PairCheck

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


@value
class Entry:
    """One record to be, as its format understood it."""

    kind: str
    """Its type, as the report counts it."""
    raw: Mapping[str, Any]
    message: Message | None = None
    uuid: str | None = None
    """Its own id; None where it has none."""
    parent: str | None = None
    """The entry that it follows; None: the one before."""
    is_root: bool = False
    """Nothing comes before it."""
    at: object = None
    subtype: str = ""
    is_meta: bool = False
    is_summary: bool = False
    agent_id: str | None = None
    body: bytes | None = None
    """Its bytes in the file; None where it was made of a part of an entry."""
    compaction: Mapping[str, Any] | None = None
    """Of a boundary: what the client told of its own compaction, in the names that `native` reads."""
    unknown: tuple[str, ...] = ()
    """What of it was not understood: counted, and kept as it is."""


def boundary(
    raw: Mapping[str, Any], *, kept: Iterable[str] = (), trigger: str | None = None,
    tokens_before: int | None = None, tokens_after: int | None = None, **more: Any,  # noqa: ANN401 - fields of an entry
) -> Entry:  # fmt: skip
    """The entry of a client's own compaction. `kept`: uuids of the earlier records that it kept."""
    told = {"trigger": trigger, "preTokens": tokens_before, "postTokens": tokens_after}
    stated: dict[str, Any] = {key: value for key, value in told.items() if value is not None}
    if uuids := list(kept):
        stated["preservedMessages"] = {"uuids": uuids}
    return Entry(str(more.pop("kind", "compaction")), raw, subtype=BOUNDARY, compaction=stated, **more)


class TranslatedReader:
    """Turns the entries of one file into records. It is read whole each time; records keep their uuids."""

    lists: ClassVar[tuple[str, ...]] = ()
    """The keys of a file's one value under which its entries may stand."""

    def __init__(
        self,
        source: str,
        state: Mapping[str, Any] | None = None,  # noqa: ARG002 - there is nothing to go on from
        known: Known = nothing_known,  # noqa: ARG002 - each reading meets the whole file
    ) -> None:
        self._source = source
        self._ordinal = 0
        self._report = ImportReport()
        self._pairs = PairCheck(self._report)
        self._facts: dict[str | None, FactsGatherer] = defaultdict(FactsGatherer)
        self._parent_session: str | None = None

    # ------------------------------------------------------------ what a format says

    def entries(self, raw: Json, body: bytes | None) -> Iterable[Entry]:
        """What one entry of the file means. `body` are its bytes where it is a line."""
        raise NotImplementedError

    def header(self, value: Json) -> Iterable[Entry]:
        """What stands beside the entries; to be kept, and looked at for facts of the session."""
        return (Entry(HEADER, value),) if value else ()

    def closing(self) -> Iterable[Entry]:
        """What is known only at the end of the file."""
        return ()

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
        return self._facts[None]

    def facts(self, agent_id: str | None = None) -> SessionFacts:
        """What is known of the session, or of one of its sub-agents."""
        own = self.session.facts()
        if agent_id is None:
            return replace(own, parent_session_id=self._parent_session)
        child = self._facts[agent_id].facts(agent_id)
        return replace(
            child, parent_session_id=own.session_id, cwd=child.cwd or own.cwd, model=child.model or own.model
        )

    def state(self) -> dict[str, Any]:
        """Nothing to go on from: the file is read whole."""
        return {}

    def read(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        """The records of the file, in its order."""
        rest = iter(lines)
        first = next(rest, None)
        if first is None:
            return
        value = whole_object(first.data)
        if value is not None:
            second = next(rest, None)
            if self.entries_of(value) is None or second is not None:
                yield from self._read_lines(chain([first], [second] if second else [], rest))
            else:
                yield from self._read_value(_cleaned(value, [first]))
        elif _begins_value(first):
            lines = [first, *rest]
            yield from self._read_value(_cleaned(_document(lines), lines))
        else:
            yield from self._read_lines(chain([first], rest))
        for entry in self.closing():
            yield self._record(entry, self._ordinal)

    def entries_of(self, value: Json) -> list[Any] | None:
        """The entries in a file's one value; None for an object that is an entry itself."""
        found = (value.get(key) for key in self.lists)
        return next((entries for entries in found if isinstance(entries, list)), None)

    # ------------------------------------------------------------ the file

    def _read_lines(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        for line in lines:
            parsed = parse_line(line)
            for problem in parsed.problems:
                self._report.add_problem(problem)
            self._report.glued += len(parsed.objects) > 1
            for raw, body in parsed.objects:
                if self.entries_of(raw) is not None:
                    raise CallerError(
                        "several_conversations",
                        "Each line of this file is a conversation of its own.",
                        "Import them one by one, each as its own session.",
                    )
                # The bytes keep an escaped half of a pair; no value that is used further may hold it.
                own = clean(raw) if _SURROGATE.search(body) else raw
                for entry in self.entries(own, body):
                    yield self._record(entry, line.number)

    def _read_value(self, value: object) -> Iterator[Parsed]:
        entries: object = value
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
            for entry in self.entries(item, None):
                yield self._record(entry, place)

    # ------------------------------------------------------------ records

    def _record(self, entry: Entry, place: int) -> Parsed:
        self._ordinal += 1
        body = entry.body if entry.body is not None else canonical(entry.raw)
        message = entry.message
        is_boundary = entry.compaction is not None
        record = Record(
            uuid=uuid_of(entry.uuid) or derived_uuid(self._source, self._ordinal, body),
            type="system" if is_boundary else message.role if message else entry.kind or UNKNOWN,
            body=body,
            raw={**entry.raw, "compactMetadata": entry.compaction} if is_boundary else entry.raw,
            message=message,
            parent_uuid=MessageUuid(entry.parent) if entry.parent else None,
            is_root=entry.is_root,
            at_ms=parse_time(entry.at),
            subtype=entry.subtype,
            is_meta=entry.is_meta,
            is_summary=entry.is_summary,
            agent_id=entry.agent_id,
        )
        self._count(entry, record, place)
        return Parsed(record, entry.agent_id, place)

    def _count(self, entry: Entry, record: Record, place: int) -> None:
        report = self._report
        report.records += 1
        report.types[entry.kind or UNKNOWN] += 1
        for name in entry.unknown:
            report.unknown_types[name] += 1
        if entry.agent_id is not None:
            report.sub_agents[entry.agent_id] += 1
        if record.type in MESSAGE_TYPES and record.is_message:
            report.messages += 1
            self._pairs.look(record, place)
        # The facts of an envelope are told by each format itself.
        self._facts[entry.agent_id].look({}, record)


def _begins_value(line: Line) -> bool:
    """Does a line begin a JSON value of several lines, or hold a whole list?"""
    text = line.data.strip()
    return text[:1] == b"[" or text in (b"{", b"{}") or (text[:1] == b"{" and text[-1:] in b",{[")


def _cleaned(value: Any, lines: list[Line]) -> Any:  # noqa: ANN401 - any JSON value
    """The value without escaped halves of pairs, which hardly any file has: to look for them costs less."""
    return clean(value) if any(_SURROGATE.search(line.data) for line in lines) else value


def _document(lines: list[Line]) -> object:
    try:
        return loads(b"\n".join(line.data for line in lines).decode())
    except (ValueError, RecursionError) as error:
        at = lines[0].number - 1 + getattr(error, "lineno", 1)
        raise CallerError(
            "not_json",
            f"The file is not valid JSON (near line {at}).",
            "Check that it is complete: it may have been cut while it was written.",
        ) from None
