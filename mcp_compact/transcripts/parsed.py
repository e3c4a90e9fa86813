"""What a reader of any format hands out, and what it is to its callers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol, TypeAlias

from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.transcripts.facts import SessionFacts
from mcp_compact.transcripts.lines import Line
from mcp_compact.transcripts.report import ImportReport

Known: TypeAlias = Callable[[str], bool]
"""Tells whether an id is known from an earlier reading of the same session."""


def nothing_known(_: str) -> bool:
    """For a first reading."""
    return False


class Parsed(NamedTuple):
    """A record and where it belongs: to the session of the file, or to the sub-agent `agent_id`.

    `line` is the line of the file, or the place in a list, counted from 1.
    """

    record: Record
    agent_id: str | None
    line: int


def parsed_of(record: Record, agent_id: str | None, line: int) -> Parsed:
    """`Parsed` by place, in half of the time that its own call takes."""
    return _new_tuple(Parsed, (record, agent_id, line))


_new_tuple = tuple.__new__


class Reader(Protocol):
    """Reads one transcript, in one go or batch by batch."""

    @property
    def report(self) -> ImportReport:
        """What was read so far."""
        ...

    @property
    def agents(self) -> tuple[str, ...]:
        """The sub-agents met so far."""
        ...

    @property
    def sole_agent(self) -> str | None:
        """The sub-agent that the whole file is about; None for a session of its own."""
        ...

    def goes_on(self, first: Line) -> bool:
        """Is the file one entry a line, by its first one? Then `read` may be called batch by batch, and go on later."""
        ...

    def read(self, lines: Iterable[Line]) -> Iterator[Parsed]:
        """The records of these lines. May be called again with the lines that follow, if the file goes on."""
        ...

    def facts(self, agent_id: str | None = None) -> SessionFacts:
        """What is known of the session, or of one of its sub-agents."""
        ...

    def state(self) -> Mapping[str, Any]:
        """A small JSON value from which another reader of this file goes on, if it does."""
        ...


@lru_cache(maxsize=16)
def _begun(source: str) -> blake2b:
    """To copy a hash that was begun takes half of the time of making one; the records of a file begin alike."""
    return blake2b(f"{source}\0".encode("utf-8", "surrogatepass"), digest_size=16)


def derived_uuid(source: str, ordinal: int, body: bytes) -> MessageUuid:
    """A uuid for a record that has none: the same for the same source, place and bytes."""
    digest = _begun(source).copy()
    digest.update(b"%d\0" % ordinal)
    digest.update(body)
    text = digest.hexdigest()
    return MessageUuid(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")
