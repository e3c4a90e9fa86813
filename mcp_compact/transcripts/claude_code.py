"""Reads the session files of Claude Code.

Every line is kept, whatever its type. Records of sub-agents go to the sub-agent, never into the
session's own line; a progress record that carries a sub-agent's message stays where it is, and
the message becomes the sub-agent's record.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.codec import canonical, clean
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import MESSAGE_TYPES, Record
from mcp_compact.transcripts.facts import FactsGatherer, SessionFacts
from mcp_compact.transcripts.fields import time_of, uuid_of
from mcp_compact.transcripts.kinds import BOUNDARY, KNOWN_TYPES, kind_of, parent_of, usual_message
from mcp_compact.transcripts.lines import Line, parse_line, whole_object
from mcp_compact.transcripts.native import native_boundary
from mcp_compact.transcripts.parsed import Known, Parsed, derived_uuid, nothing_known, parsed_of
from mcp_compact.transcripts.report import ImportReport, PairCheck
from mcp_compact.transcripts.sidechains import Sidechains, embedded_of

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class ClaudeCodeReader:
    """Turns the lines of one file into records, in one go or batch by batch.

    `source` names the file for records that have no uuid: the same name gives the same uuids.
    `state` is another reader's `state()`, to go on where it stopped; `known` then tells which
    uuids that one met.
    """

    def __init__(self, source: str, state: Mapping[str, Any] | None = None, known: Known = nothing_known) -> None:
        self._source = source
        self._known = known
        self._report = ImportReport()
        self._pairs = PairCheck(self._report)
        self._seen: dict[str | None, set[MessageUuid]] = defaultdict(set)
        self._seen_own = self._seen[None]
        self._ordinal: int = state["ordinal"] if state else 0
        self._resumed = self._ordinal > 0
        self._sidechains = Sidechains(self._is_elsewhere, state["sidechains"] if state else None)
        self._anchor: MessageUuid | None = state["anchor"] if state else None
        self._kept: frozenset[str] = frozenset(state["kept"] if state else ())
        self._has_main: bool = state["has_main"] if state else False
        self._facts: dict[str | None, FactsGatherer] = defaultdict(FactsGatherer)
        for agent_id, facts in state["facts"] if state else ():
            self._facts[agent_id] = FactsGatherer.from_state(facts)

    @property
    def report(self) -> ImportReport:
        """What was read so far."""
        self._report.copied = sum(facts.copied for facts in self._facts.values())
        return self._report

    @property
    def agents(self) -> tuple[str, ...]:
        """The sub-agents met so far, in their order."""
        return tuple(agent for agent in self._facts if agent is not None)

    @property
    def sole_agent(self) -> str | None:
        """The sub-agent that the whole file is about: it has no record of the session itself."""
        agents = self.agents
        return agents[0] if len(agents) == 1 and not self._has_main else None

    def facts(self, agent_id: str | None = None) -> SessionFacts:
        """What is known of the session, or of one of its sub-agents."""
        own = self._facts[None].facts()
        if agent_id is None:
            return own
        child = self._facts[agent_id].facts(agent_id) if agent_id in self._facts else SessionFacts(agent_id=agent_id)
        # Records that progress records carry have no envelope of their own.
        return replace(
            child,
            parent_session_id=child.parent_session_id or own.session_id,
            cwd=child.cwd or own.cwd,
            git_branch=child.git_branch or own.git_branch,
            version=child.version or own.version,
        )

    def state(self) -> dict[str, Any]:
        """A small JSON value from which another reader of this file goes on."""
        return {
            "ordinal": self._ordinal,
            "sidechains": self._sidechains.state(),
            "anchor": self._anchor,
            "kept": sorted(self._kept),
            "has_main": self._has_main,
            "facts": [[agent_id, facts.state()] for agent_id, facts in self._facts.items()],
        }

    def goes_on(self, first: Line) -> bool:  # noqa: ARG002 - of every reader
        """Every file is one record a line."""
        return True

    def read(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        """The records of these lines; what cannot be read is reported."""
        for line in lines:
            data = line.data
            sound = whole_object.quickly(data)
            if sound is None:
                yield from self._read_slowly(line)
            elif (usual := self._usual(sound, data, line.number)) is not None:
                yield usual
            else:
                yield from self._feed(sound, data, line.number)

    def _read_slowly(self, line: Line) -> Iterator[Parsed]:
        raw = whole_object(line.data)
        if raw is not None:
            yield from self.feed(raw, line.data, line.number)
            return
        parsed = parse_line(line)
        for problem in parsed.problems:
            self._report.add_problem(problem)
        if len(parsed.objects) > 1:
            self._report.glued += 1
        for raw, body in parsed.objects:
            yield from self.feed(raw, body, line.number)

    def feed(self, raw: Mapping[str, Any], body: bytes, line: int) -> tuple[Parsed, ...]:
        """The record of one object (its own bytes in `body`), and the sub-agent's record that it carries."""
        if b"\\" in body and _SURROGATE.search(body):
            # The bytes keep an escaped half of a pair; no value that is used further may hold it.
            raw = clean(raw)
        usual = self._usual(raw, body, line) if type(raw) is dict else None
        return (usual,) if usual is not None else self._feed(raw, body, line)

    def _usual(self, raw: dict[str, Any], body: bytes, line: int) -> Parsed | None:
        """What `_feed` gives for a message of the session's own that follows a record of the file, as nearly all do.

        Quicker, for it asks for nothing twice. None for anything else, of which nothing is noted then.
        """
        uuid, seen = uuid_of(raw.get("uuid")), self._seen_own
        parent: MessageUuid | None = raw.get("parentUuid")
        if not isinstance(parent, str) or parent not in seen or parent in self._kept or uuid is None or uuid in seen:
            return None
        message = usual_message(raw)
        if message is None:
            return None
        type_, at_ms, is_meta = message.role, time_of(raw.get("timestamp")), raw.get("isMeta") is True
        record = Record(uuid, type_, body, raw, message, parent, False, at_ms, 0, "", is_meta)  # noqa: FBT003 - by place
        self._ordinal += 1
        self._has_main = True
        seen.add(uuid)
        self._report.count(type_)
        self._report.messages += 1
        if type(message.content) is list:
            self._pairs.look(record, line, known_call=self._resumed)
        self._facts[None].look(raw, record)
        return parsed_of(record, None, line)

    def _feed(self, raw: Mapping[str, Any], body: bytes, line: int) -> tuple[Parsed, ...]:
        self._ordinal += 1
        uuid = uuid_of(raw.get("uuid")) or derived_uuid(self._source, self._ordinal, body)
        agent_id = None
        # Hardly any record has one of these, and asking costs.
        if raw.get("isSidechain") or "parent_tool_use_id" in raw:
            agent_id = self._sidechains.agent_of(raw, uuid)
        if agent_id is None and not (self._has_main and "uuid" in raw):
            agent_id = self._place_of_own(raw)
        own = self._record(raw, body, uuid, agent_id, line)
        if raw.get("type") != "progress" or (carried := embedded_of(raw)) is None:
            return (own,)
        child, embedded = carried
        body = canonical(embedded)
        uuid = uuid_of(embedded.get("uuid")) or derived_uuid(self._source, self._ordinal, body)
        return own, self._record(embedded, body, uuid, child, line)

    def _place_of_own(self, raw: Mapping[str, Any]) -> str | None:
        """A file that is one sub-agent's keeps its lines without envelope (titles, snapshots) too."""
        if "uuid" in raw or "message" in raw or "role" in raw:
            self._has_main = True
            return None
        return self.sole_agent

    def _record(
        self, raw: Mapping[str, Any], body: bytes, uuid: MessageUuid, agent_id: str | None, line: int
    ) -> Parsed:
        kind = kind_of(raw)
        type_, subtype, is_summary = kind.type, kind.subtype, kind.is_summary
        is_boundary = subtype == BOUNDARY and type_ == "system"
        parent, is_root = parent_of(raw, is_boundary=is_boundary)
        record = Record(
            uuid,
            type_,
            body,
            raw,
            kind.message,
            self._linked(parent) if agent_id is None and self._kept else parent,
            is_root,
            time_of(raw.get("timestamp")),
            0,
            subtype,
            kind.is_meta,
            is_summary,
            agent_id,
        )
        self._note(record, parent, line)
        facts = self._facts[agent_id]
        facts.look(raw, record)
        if type_ == "summary" and (leaf := uuid_of(raw.get("leafUuid"))) and self._is_elsewhere(leaf):
            facts.met(leaf)
        if agent_id is None and (is_boundary or is_summary):
            self._note_compaction(record)
        return parsed_of(record, agent_id, line)

    def _linked(self, parent: MessageUuid | None) -> MessageUuid | None:
        """After a compaction the kept messages stand behind the summary: what follows them follows it."""
        return self._anchor if parent in self._kept else parent

    def _note_compaction(self, record: Record) -> None:
        boundary = native_boundary(record)
        if boundary is not None:
            self._kept = frozenset(filter(None, (boundary.tail, *boundary.preserved)))
        self._anchor = record.uuid

    def _note(self, record: Record, parent: MessageUuid | None, line: int) -> None:
        report, agent_id, uuid = self._report, record.agent_id, record.uuid
        type_ = record.raw.get("type")
        report.count(type_ if isinstance(type_, str) else record.type)
        if agent_id is not None:
            report.sub_agents[agent_id] += 1
        if record.type not in KNOWN_TYPES:
            report.note_unknown(record.type, line)
        seen = self._seen[agent_id]
        if parent is not None and parent not in seen and not self._is_elsewhere(parent):
            report.warn("missing_parent", line, uuid, parent)
        if uuid in seen:
            report.warn("repeated_uuid", line, uuid)
        seen.add(uuid)
        if record.message is not None or record.type in MESSAGE_TYPES:
            self._note_message(record, line)

    def _note_message(self, record: Record, line: int) -> None:
        message = record.message
        if message is None or not isinstance(message.content, (str, list)):
            self._report.warn("no_content", line, record.uuid)
        if message is not None and not _has_role(record.raw):
            self._report.warn("no_role", line, record.uuid, message.role)
        if record.is_message:
            self._report.messages += 1
            # A plain text holds nothing to pair.
            if message is not None and type(message.content) is not str:
                self._pairs.look(record, line, known_call=self._resumed)

    def _is_elsewhere(self, uuid: str) -> bool:
        """Is it a record of the session itself, or one of an earlier reading?"""
        return uuid in self._seen[None] or self._known(uuid)


def _has_role(raw: Mapping[str, Any]) -> bool:
    inner = raw.get("message", raw)
    return isinstance(inner, OBJECT) and isinstance(inner.get("role"), str)
