"""Reads the session files (rollouts) of Codex.

Every line is kept. Messages come from `response_item` lines alone, for events say the same again. A `compacted`
line is the client's own boundary; what its history was replaced with stands in the line itself and follows as
records of its own. A rollout has no links: each record follows the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.codec import canonical, clean, parse_time
from mcp_compact.messages.message import Message, Record, Usage
from mcp_compact.messages.words import users_words
from mcp_compact.transcripts.codex_items import is_clients_own, message_of, summary_message
from mcp_compact.transcripts.facts import SessionFacts, cut_title
from mcp_compact.transcripts.fields import count_of, object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import BOUNDARY, UNKNOWN
from mcp_compact.transcripts.lines import Line, parse_line
from mcp_compact.transcripts.parsed import Known, Parsed, derived_uuid, nothing_known
from mcp_compact.transcripts.report import ImportReport, PairCheck

ITEM, COMPACTED = "response_item", "compacted"
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
KNOWN_LINES = frozenset((ITEM, COMPACTED, "session_meta", "turn_context", "event_msg", "world_state"))


class CodexReader:
    """Turns the lines of one rollout into records. The file is read whole each time; records keep their uuids."""

    def __init__(
        self,
        source: str,
        state: Mapping[str, Any] | None = None,  # noqa: ARG002 - there is nothing to go on from
        known: Known = nothing_known,  # noqa: ARG002 - no line names another one
    ) -> None:
        self._source = source
        self._ordinal = 0
        self._facts = SessionFacts()
        self._report = ImportReport()
        self._pairs = PairCheck(self._report)
        self._held: list[Parsed] = []
        """An answer and what followed it, until the usage of its request is known."""

    @property
    def report(self) -> ImportReport:
        """What was read so far."""
        return self._report

    @property
    def agents(self) -> tuple[str, ...]:
        """A rollout holds one conversation."""
        return ()

    @property
    def sole_agent(self) -> str | None:
        """A rollout is a session of its own."""
        return None

    def facts(self, agent_id: str | None = None) -> SessionFacts:  # noqa: ARG002 - there are no sub-agents
        """What is known of the session."""
        return self._facts

    def state(self) -> dict[str, Any]:
        """Nothing to go on from: the file is read whole."""
        return {}

    def read(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        """The records of these lines; what cannot be read is reported."""
        for line in lines:
            parsed = parse_line(line)
            for problem in parsed.problems:
                self._report.add_problem(problem)
            self._report.glued += len(parsed.objects) > 1
            for raw, body in parsed.objects:
                # The bytes keep an escaped half of a pair; no value that is used further may hold it.
                own = clean(raw) if SURROGATE.search(body) else raw
                yield from self._line(own, body, line.number)
        yield from self._flush()

    def _line(self, raw: Mapping[str, Any], body: bytes, number: int) -> Iterator[Parsed]:
        payload = object_of(raw, "payload")
        kind = text_of(raw, "type") or UNKNOWN
        self._look(kind, payload)
        match kind:
            case _ if kind == ITEM:
                yield from self._hold(self._record(raw, body, number, message_of(payload)))
            case _ if kind == COMPACTED:
                yield from self._flush()
                yield self._boundary(raw, body, number)
                yield from self._replacement(raw, payload, number)
            case _:
                yield from self._hold(self._record(raw, body, number, None))
                yield from self._counted(payload)

    def _record(
        self, raw: Mapping[str, Any], body: bytes, number: int, message: Message | None, *, is_summary: bool = False
    ) -> Parsed:
        self._ordinal += 1
        kind = text_of(raw, "type") or UNKNOWN
        at_ms = parse_time(raw.get("timestamp"))
        record = Record(
            # By its own id, where it tells one: so the file is the same under any name and with its session named.
            uuid=derived_uuid(self._facts.session_id or self._source, self._ordinal, body),
            type=message.role if message else kind,
            body=body,
            raw=raw,
            message=message,
            at_ms=at_ms,
            subtype="" if message else text_of(object_of(raw, "payload"), "type") or "",
            is_meta=message is not None and is_clients_own(message),
            is_summary=is_summary,
        )
        self._count(record, kind, number)
        return Parsed(record, None, number)

    def _boundary(self, raw: Mapping[str, Any], body: bytes, number: int) -> Parsed:
        parsed = self._record(raw, body, number, None)
        return parsed._replace(record=replace(parsed.record, type="system", subtype=BOUNDARY))

    def _replacement(self, raw: Mapping[str, Any], payload: Mapping[str, Any], number: int) -> Iterator[Parsed]:
        """What stands in the place of the history; older files hold a summary alone."""
        history = payload.get("replacement_history")
        items = [item for item in history if isinstance(item, OBJECT)] if isinstance(history, Sequence) else []
        for item in items:
            own = {"timestamp": raw.get("timestamp"), "type": ITEM, "payload": item}
            yield self._record(own, canonical(own), number, message_of(item))
        summary = text_of(payload, "message")
        if summary:
            own = {"timestamp": raw.get("timestamp"), "type": ITEM, "payload": {"type": "summary", "text": summary}}
            yield self._record(own, canonical(own), number, summary_message(summary), is_summary=True)

    # ------------------------------------------------------------ usage

    def _hold(self, parsed: Parsed) -> Iterator[Parsed]:
        """The figures of a request come after its answer, often behind the results of its calls."""
        if parsed.record.type == "assistant":
            yield from self._flush()
        if self._held or parsed.record.type == "assistant":
            self._held.append(parsed)
        else:
            yield parsed

    def _counted(self, payload: Mapping[str, Any]) -> Iterator[Parsed]:
        """The usage that an event tells, given to the answer that waits for it."""
        if payload.get("type") != "token_count":
            return
        last = object_of(object_of(payload, "info"), "last_token_usage")
        sent, written = count_of(last, "input_tokens"), count_of(last, "output_tokens")
        if not sent:
            return
        if sent > self._facts.max_context_tokens:
            self._facts = replace(self._facts, max_context_tokens=sent)
        if self._held and (message := self._held[0].record.message) is not None:
            told = replace(message, usage=Usage(sent, written or 0))
            self._held[0] = self._held[0]._replace(record=replace(self._held[0].record, message=told))
        yield from self._flush()

    def _flush(self) -> Iterator[Parsed]:
        held, self._held = self._held, []
        yield from held

    # ------------------------------------------------------------ facts and counts

    def _look(self, kind: str, payload: Mapping[str, Any]) -> None:
        facts = self._facts
        if kind == "session_meta":
            git = object_of(payload, "git")
            self._facts = replace(
                facts,
                session_id=facts.session_id or uuid_of(payload.get("id") or payload.get("session_id")),
                cwd=facts.cwd or text_of(payload, "cwd"),
                git_branch=facts.git_branch or text_of(git, "branch"),
                version=text_of(payload, "cli_version") or facts.version,
                model=facts.model or text_of(payload, "model"),
            )
        elif kind == "turn_context":
            self._facts = replace(
                facts, model=text_of(payload, "model") or facts.model, cwd=facts.cwd or text_of(payload, "cwd")
            )

    def _count(self, record: Record, kind: str, number: int) -> None:
        report, facts = self._report, self._facts
        report.records += 1
        report.types[kind] += 1
        if kind not in KNOWN_LINES:
            report.unknown_types[kind] += 1
        if record.is_message:
            report.messages += 1
            self._pairs.look(record, number)
        first = facts.first_ms if facts.first_ms is not None else record.at_ms
        words = users_words(record).strip() if facts.title is None else ""
        self._facts = replace(
            facts,
            first_ms=first,
            last_ms=record.at_ms or facts.last_ms,
            title=facts.title or (cut_title(words) or None),
        )
