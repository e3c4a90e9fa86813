"""Reads the session files (rollouts) of Codex.

Every line is kept. Messages come from `response_item` lines alone, for events say the same again. A `compacted`
line is the client's own boundary; what its history was replaced with stands in the line itself and follows as
records of its own. A rollout has no links: each record follows the one before, but for turns that were taken back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mcp_compact.messages.blocks import TextBlock
from mcp_compact.messages.message import Message, Record, Usage
from mcp_compact.transcripts.codex_items import is_clients_own, message_of, summary_message
from mcp_compact.transcripts.entries import Entry, boundary
from mcp_compact.transcripts.fields import count_of, object_of, text_of, uuid_of
from mcp_compact.transcripts.kinds import UNKNOWN
from mcp_compact.transcripts.lines import Json, Line, whole_object
from mcp_compact.transcripts.parsed import Parsed, parsed_of
from mcp_compact.transcripts.pieces import each_object
from mcp_compact.transcripts.translated import TranslatedReader

ITEM, COMPACTED, EVENT = "response_item", "compacted", "event_msg"
ROLLED_BACK = "thread_rolled_back"
KNOWN_LINES = frozenset((ITEM, COMPACTED, EVENT, "session_meta", "turn_context", "world_state"))
KEPT_CHARS = 80_000
"""How much of the user's newest messages older versions kept beside a summary: 20,000 tokens of four bytes."""
TURNS = 200
"""So many prompts can be taken back."""
KEPT_PROMPTS = 1000
"""So many of them at most: what is carried from reading to reading stays small, however little they say."""
CARRIED_BYTES = 1 << 16
"""An answer whose usage is not told yet is carried to the next reading up to this size."""


class CodexReader(TranslatedReader):
    """Turns the lines of one rollout into records."""

    def begin(self, own: Mapping[str, Any]) -> None:
        """Usage is told behind an answer, often behind the results of its calls, sometimes in the next reading."""
        self._held: list[Parsed] = []
        """An answer and what followed it, until the usage of its request is known."""
        self._answer: tuple[str, bytes] | None = (own["answer"][0], own["answer"][1].encode()) if own else None
        """The last answer that was handed out without its usage: its uuid and its line."""
        self._context_tokens: int | None = own.get("context_tokens")
        self._turns: list[str] = own.get("turns", [])
        """The record before each prompt, for those that are taken back."""
        self._typed: deque[tuple[str, int]] = deque()
        """The newest prompts and their sizes: a summary of an older version stands beside them."""
        self._typed_chars = 0
        for uuid, size in own.get("typed", ()):
            self._note_typed(uuid, size)
        self._before = self.last_uuid

    def memory(self) -> dict[str, Any]:
        """What a later line may refer to."""
        answer = self._answer if self._answer is not None and len(self._answer[1]) <= CARRIED_BYTES else ("", b"")
        return {
            "answer": [answer[0], answer[1].decode("utf-8", "replace")],
            "context_tokens": self._context_tokens,
            "turns": self._turns,
            "typed": list(self._typed),
        }

    def read(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        """The records of these lines; what cannot be read is reported."""
        for parsed in self._read_lines(lines):
            record = parsed.record
            if record.type == "user":
                self._note_prompt(record)
            self._before = record.uuid
            if record.type == "assistant":
                yield from self._flush()
                self._held.append(parsed)
                continue
            if self._held:
                self._held.append(parsed)
            else:
                yield parsed
            if record.subtype == "token_count" and (usage := self._usage(record)) is not None:
                yield from self._counted(usage)
        yield from self._flush()

    def usual(self, raw: Json, body: bytes | None, place: int) -> Parsed | None:
        """An item or an event, but for the one event that has a place of its own. None has an id of its own."""
        kind, payload, at = raw.get("type"), raw.get("payload"), raw.get("timestamp")
        if type(payload) is not dict:
            return None
        if kind == ITEM:
            message = message_of(payload)
            if message is not None:
                is_meta = message.role == "user" and is_clients_own(message)
                return self._record_of(raw, body, ITEM, message, place, at=at, is_meta=is_meta)
        elif kind != EVENT or payload.get("type") == ROLLED_BACK:
            return None
        return self._record_of(raw, body, kind, None, place, at=at, subtype=text_of(payload, "type") or "")

    def entries(self, raw: Mapping[str, Any], body: bytes | None) -> Iterator[Entry]:
        """The record of a line, and what a compaction put in the place of the history."""
        kind, payload, at = text_of(raw, "type") or UNKNOWN, object_of(raw, "payload"), raw.get("timestamp")
        if kind == ITEM:
            yield self._item(raw, payload, at, body)
        elif kind == COMPACTED:
            yield from self._compaction(raw, payload, at, body)
        else:
            subtype = text_of(payload, "type") or ""
            self._look(kind, payload)
            unknown = () if kind in KNOWN_LINES else (kind,)
            parent = self._taken_back(payload) if subtype == ROLLED_BACK else None
            yield Entry(kind, raw, at=at, subtype=subtype, body=body, parent=parent, unknown=unknown)

    def _item(self, raw: Mapping[str, Any], payload: Mapping[str, Any], at: object, body: bytes | None) -> Entry:
        message = message_of(payload)
        if message is None:
            return Entry(ITEM, raw, at=at, subtype=text_of(payload, "type") or "", body=body)
        return Entry(ITEM, raw, message, at=at, is_meta=is_clients_own(message), body=body)

    def _note_prompt(self, record: Record) -> None:
        """Keep in mind what somebody typed, and where it stands."""
        if record.is_meta or record.is_summary or object_of(record.raw, "payload").get("type") != "message":
            return
        self._turns.append(self._before)
        del self._turns[:-TURNS]
        self._note_typed(record.uuid, len(record.text))

    def _note_typed(self, uuid: str, size: int) -> None:
        """Keep the newest prompts in mind that an older version would keep beside a summary, and no others."""
        self._typed.append((uuid, size))
        self._typed_chars += size
        while self._typed_chars > KEPT_CHARS or len(self._typed) > KEPT_PROMPTS:
            self._typed_chars -= self._typed.popleft()[1]

    def _taken_back(self, payload: Mapping[str, Any]) -> str | None:
        """The record that the conversation goes on from where its user took the last prompts back."""
        number = count_of(payload, "num_turns")
        if not number or number > len(self._turns):
            return None
        before = self._turns[-number]
        del self._turns[-number:]
        return before

    # ------------------------------------------------------------ its own compactions

    def _compaction(
        self, raw: Mapping[str, Any], payload: Mapping[str, Any], at: object, body: bytes | None
    ) -> Iterator[Entry]:
        history, summary = payload.get("replacement_history"), text_of(payload, "message")
        self._turns = []
        if isinstance(history, list):
            self._typed.clear()
            self._typed_chars = 0
        # Without a history in the line the newest prompts stay beside the summary.
        kept = [uuid for uuid, _ in self._typed]
        yield boundary(raw, kind=COMPACTED, at=at, body=body, tokens_before=self._context_tokens, kept=kept)
        if isinstance(history, list):
            # The summary, where it is no secret of the provider's, is the last of the items.
            for item in each_object(history):
                own, message = {"timestamp": at, "type": ITEM, "payload": item}, message_of(item)
                is_summary = message is not None and summary is not None and _text(message) == summary
                yield Entry(ITEM, own, message, at=at, is_summary=is_summary,
                            is_meta=message is not None and is_clients_own(message),
                            subtype="" if message else text_of(item, "type") or "")  # fmt: skip
        elif summary:
            own = {"timestamp": at, "type": ITEM, "payload": {"type": "summary", "text": summary}}
            yield Entry(ITEM, own, summary_message(summary), at=at, is_summary=True)

    # ------------------------------------------------------------ usage

    def _usage(self, record: Record) -> Usage | None:
        """What an event tells of the last request."""
        last = object_of(object_of(object_of(record.raw, "payload"), "info"), "last_token_usage")
        sent, written = count_of(last, "input_tokens"), count_of(last, "output_tokens")
        if not sent:
            return None
        self._context_tokens = sent
        self.session.max_context_tokens = max(self.session.max_context_tokens, sent)
        return Usage(sent, written or 0)

    def _counted(self, usage: Usage) -> Iterator[Parsed]:
        """Hand out the answer that waits for its usage; again, where it was handed out without."""
        if self._held:
            first = self._held[0]
            if first.record.message is not None:
                self._held[0] = parsed_of(_with_usage(first.record, usage), first.agent_id, first.line)
            yield from self._flush()
        elif self._answer is not None:
            uuid, body = self._answer
            raw = whole_object(body)
            message = message_of(object_of(raw, "payload")) if raw is not None else None
            if raw is not None and message is not None:
                record = self._make(Entry(ITEM, raw, message, uuid, at=raw.get("timestamp"), body=body))
                yield Parsed(_with_usage(record, usage), None, 0)
        self._answer = None

    def _flush(self) -> list[Parsed]:
        """What was held back, to be handed out."""
        held = self._held
        if held:
            self._held = []
            if (answer := held[0].record).message is not None:
                self._answer = (answer.uuid, answer.body)
        return held

    # ------------------------------------------------------------ facts

    def _look(self, kind: str, payload: Mapping[str, Any]) -> None:
        session = self.session
        if kind == "session_meta":
            session.session_id = session.session_id or uuid_of(payload.get("id") or payload.get("session_id"))
            session.cwd = session.cwd or text_of(payload, "cwd")
            session.git_branch = session.git_branch or text_of(object_of(payload, "git"), "branch")
            session.version = text_of(payload, "cli_version") or session.version
            session.model = session.model or text_of(payload, "model")
            self._parent_session = self._parent_session or _parent(payload)
        elif kind == "turn_context":
            session.model = text_of(payload, "model") or session.model
            session.cwd = session.cwd or text_of(payload, "cwd")


def _parent(payload: Mapping[str, Any]) -> str | None:
    """The session that this one works for, where it is a sub-agent's."""
    agent = object_of(object_of(payload, "source"), "subagent")
    return uuid_of(object_of(agent, "thread_spawn").get("parent_thread_id") or payload.get("parent_thread_id"))


def _with_usage(record: Record, usage: Usage) -> Record:
    told = record.message
    if told is None:
        return record
    # By place: it is done for every request, and `replace` asks for each field twice.
    message = Message(told.role, told.content, told.blocks, told.id, told.model, usage, told.stop_reason)
    return Record(
        record.uuid,
        record.type,
        record.body,
        record.raw,
        message,
        record.parent_uuid,
        record.is_root,
        record.at_ms,
        record.seq,
        record.subtype,
        record.is_meta,
        record.is_summary,
        record.agent_id,
    )


def _text(message: Message) -> str:
    return "\n".join([block.text for block in message.blocks if isinstance(block, TextBlock)])
