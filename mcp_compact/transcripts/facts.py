"""What a transcript says about its session, gathered while it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from mcp_compact.messages.lazily import pattern
from mcp_compact.messages.message import Message, Record
from mcp_compact.transcripts.fields import text_of, uuid_of
from mcp_compact.transcripts.kinds import NO_MODEL

TITLE_CHARS = 80
WAITING_SUMMARIES = 20
_NOT_TYPED = ("<", "Caveat:", "[Request interrupted")
"""How text begins that a client wrote into the user's turn: commands, their output, reminders, notices."""
_TITLED = ("summary", "custom-title", "ai-title")
_COMMAND = pattern(r"<command-name>\s*(/[^<\s]+)\s*</command-name>(?:\s*<command-args>([^<]*))?")
_HOUSEKEEPING = ("/clear", "/compact", "/exit", "/quit", "/login", "/logout", "/model", "/resume")


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What is known of a session; None where the transcript does not say."""

    session_id: str | None = None
    parent_session_id: str | None = None
    """Of a sub-agent: the session that it worked for."""
    agent_id: str | None = None
    cwd: str | None = None
    """Where it began."""
    model: str | None = None
    """The last real one."""
    git_branch: str | None = None
    version: str | None = None
    title: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    max_context_tokens: int = 0
    """Largest context that the provider counted, in its own tokens."""


@dataclass(slots=True)
class FactsGatherer:
    """Gathers the facts of one line of conversation: the session's, or a sub-agent's."""

    session_ids: dict[str, int] = field(default_factory=dict)
    session_id: str | None = None
    cwd: str | None = None
    model: str | None = None
    git_branch: str | None = None
    version: str | None = None
    given_title: str | None = None
    generated_title: str | None = None
    first_words: str | None = None
    first_command: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    max_context_tokens: int = 0
    summaries: dict[str, str] = field(default_factory=dict)
    """Summary lines that name a record which was not met yet: by its uuid."""

    def look(self, raw: Mapping[str, Any], record: Record) -> None:
        """Take what a record says of its session."""
        named = raw.get("sessionId") or raw.get("session_id")
        # Nearly every record names the one before's, and to compare is cheaper than to check.
        if named is not None and (named == self.session_id or uuid_of(named) is not None):
            self.session_id = session_id = str(named)
            self.session_ids[session_id] = self.session_ids.get(session_id, 0) + 1
        if record.at_ms is not None:
            self.look_at_time(record.at_ms)
        if record.message is not None:
            self._look_at_envelope(raw)
            self.look_at_message(record, record.message)
        elif record.type in _TITLED and type(title := _title(raw)) is str:
            self._look_at_title(raw, title)
        if self.summaries and record.uuid in self.summaries:
            self.generated_title = self.summaries.pop(record.uuid)

    def look_at_time(self, at_ms: int | None) -> None:
        """Take the time of a record."""
        if at_ms is not None:
            if self.first_ms is None or at_ms < self.first_ms:
                self.first_ms = at_ms
            if self.last_ms is None or at_ms > self.last_ms:
                self.last_ms = at_ms

    def look_at_message(self, record: Record, message: Message) -> None:
        """Take what a record's message says of its session: model, size, the first words."""
        if message.model and message.model != NO_MODEL:
            self.model = message.model
        usage = message.usage
        if usage is not None and usage.context_tokens > self.max_context_tokens:
            self.max_context_tokens = usage.context_tokens
        if self.first_words is None and record.type == "user" and record.is_text_holding:
            self._look_at_words(record.text.strip())

    def _look_at_envelope(self, raw: Mapping[str, Any]) -> None:
        # They hardly ever change, and to compare them is cheaper than to read them.
        if self.cwd is None:
            self.cwd = text_of(raw, "cwd")
        if raw.get("gitBranch") != self.git_branch:
            self.git_branch = text_of(raw, "gitBranch") or self.git_branch
        if raw.get("version") != self.version:
            self.version = text_of(raw, "version") or self.version

    def _look_at_words(self, words: str) -> None:
        if not words.startswith(_NOT_TYPED):
            self.first_words = cut_title(words)
        elif self.first_command is None and (command := _COMMAND.search(words)) and command[1] not in _HOUSEKEEPING:
            self.first_command = cut_title(f"{command[1]} {command[2] or ''}")

    def _look_at_title(self, raw: Mapping[str, Any], title: str) -> None:
        title = cut_title(title)
        if raw.get("type") == "custom-title":
            self.given_title = title
        elif raw.get("type") == "ai-title":
            self.generated_title = title
        elif leaf := uuid_of(raw.get("leafUuid")):
            # Old files begin with the titles of other sessions: a title counts once its record is met.
            self.summaries[leaf] = title
            if len(self.summaries) > WAITING_SUMMARIES:
                del self.summaries[next(iter(self.summaries))]

    def met(self, leaf: str) -> None:
        """A record was met before the summary line that names it."""
        self.generated_title = self.summaries.pop(leaf, self.generated_title)

    @property
    def copied(self) -> int:
        """Records that carry another session's id than the last one."""
        return sum(n for session_id, n in self.session_ids.items() if session_id != self.session_id)

    def facts(self, agent_id: str | None = None) -> SessionFacts:
        """The facts so far; a sub-agent's session is named by its agent id."""
        return SessionFacts(
            session_id=agent_id or self.session_id,
            parent_session_id=self.session_id if agent_id else None,
            agent_id=agent_id,
            cwd=self.cwd,
            model=self.model,
            git_branch=self.git_branch,
            version=self.version,
            title=self.given_title or self.generated_title or self.first_words or self.first_command,
            first_ms=self.first_ms,
            last_ms=self.last_ms,
            max_context_tokens=self.max_context_tokens,
        )

    def state(self) -> dict[str, Any]:
        """All of it as a JSON value."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**values, "session_ids": dict(self.session_ids), "summaries": dict(self.summaries)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> FactsGatherer:
        """The gatherer that `state` was taken from."""
        return cls(**{**state, "session_ids": dict(state["session_ids"]), "summaries": dict(state["summaries"])})


def facts_of(records: Iterable[Record]) -> SessionFacts:
    """What records themselves say of their session."""
    gatherer = FactsGatherer()
    for record in records:
        gatherer.look(record.raw, record)
    return gatherer.facts()


def cut_title(text: str) -> str:
    """One line of at most 80 characters."""
    line = " ".join(text[: TITLE_CHARS * 8].split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "\u2026"


def _title(raw: Mapping[str, Any]) -> object:
    match raw.get("type"):
        case "summary":
            return raw.get("summary")
        case "custom-title":
            return raw.get("customTitle") or raw.get("title")
        case "ai-title":
            return raw.get("aiTitle") or raw.get("title")
        case _:
            return None
