"""A transcript as batches for the archive: read piece by piece, from where the last import stopped.

Nothing here awaits or knows a store: the service imports with it beside other work, a client's hook in one go.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Appended, Batch, NativeBoundary, Prepared, SessionFacts, SessionKey, SourcePosition
from mcp_compact.service.keys import child_id, session_key
from mcp_compact.transcripts.kinds import BOUNDARY
from mcp_compact.transcripts.lines import Line, read_lines
from mcp_compact.transcripts.native import expand_preserved, native_boundary, native_clearing, summary_of
from mcp_compact.transcripts.parsed import Parsed, Reader
from mcp_compact.transcripts.registry import OF_CLIENTS, detect_format, reader_for
from mcp_compact.transcripts.sniffing import HEADS_BYTES

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16
BATCH_LINES = 1000
BATCH_BYTES = 4 << 20
SUMMARY_WITHIN = 50
"""A batch does not end between a client's boundary and its summary, which follows within so many records."""


@dataclass(frozen=True, slots=True)
class ReadBatch:
    """A batch as read, and where the file stands after it. `final` holds what may still be written on."""

    parsed: tuple[Parsed, ...]
    offset: int
    line: int
    state: str


@dataclass(slots=True)
class ImportWork:
    """One import under way."""

    reader: Reader
    format: str
    source: str
    asked_id: str
    head_hash: str
    total_bytes: int
    offset: int = 0
    line: int = 1
    began: str = ""
    """The session that an earlier import of the file went to."""
    key: SessionKey | None = None
    stored: int = 0
    known: int = 0
    conflicts: int = 0
    missing_parents: list[str] = field(default_factory=list)
    children: dict[str, None] = field(default_factory=dict)
    waiting: list[ReadBatch] = field(default_factory=list)
    """Batches that are read but not stored: no message was met yet."""

    def took(self, done: Appended) -> None:
        """Count what an append did."""
        self.stored += done.new
        self.known += done.known
        self.conflicts += len(done.conflicts)
        self.missing_parents += done.missing_parents

    def session(self) -> SessionKey:
        """The session that is imported to, once a batch was read."""
        if self.key is None:
            raise ServerError("no_session", "The import has no session.", "Report this.")
        return self.key


# ---------------------------------------------------------------- the file


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a file before it is read: its format, its size, and the name of its position."""

    format: str
    size: int
    hash: str
    source: str
    """The place and the session that was asked for: how far it was read is kept under this name."""


def head_of(path: Path, limit: int, *, format_name: str, session_id: str) -> Head:
    """Look at a file's beginning. Raises CallerError where it is none, too large or no transcript."""
    data, size, place = _head(path, limit)
    name = format_name or _format_of(data, size, path)
    digest = blake2b(data[:4096].split(b"\n", 1)[0], digest_size=16).hexdigest()
    return Head(name, size, digest, f"{session_id}|{place}")


def _format_of(data: bytes, size: int, path: Path) -> str:
    """The format by the file's beginning; where that does not tell, by more of it."""
    try:
        return detect_format(data)
    except CallerError as error:
        if error.code != "not_a_transcript" or size <= len(data):
            raise
    with open_file(path) as stream:
        return detect_format(stream.read(max(HEADS_BYTES)))


def work_at(head: Head, stem: str, session_id: str, position: SourcePosition | None) -> ImportWork:
    """An import that goes on behind what was read before, or starts afresh where the file is another one."""
    if position is not None and (position.head_hash != head.hash or position.offset > head.size):
        position = None
    state = json.loads(position.state) if position and position.state else None
    reader = reader_for(head.format, session_id or stem, state, _always if state else _never)
    work = ImportWork(reader, head.format, head.source, session_id, head.hash, head.size)
    if position is not None and state is not None:
        work.offset, work.line, work.began = position.offset, position.line, position.session_id
    return work


def _never(_: str) -> bool:
    return False


def _always(_: str) -> bool:
    """A reading that goes on cannot know which names came earlier, so it reports none as missing."""
    return True


def _head(path: Path, limit: int) -> tuple[bytes, int, Path]:
    """The file's beginning, its size, and where it really is."""
    if not path.exists():
        raise CallerError("no_such_file", f"There is no file {str(path)!r}.", "Check the path.")
    if path.is_dir():
        raise CallerError("is_a_folder", f"{str(path)!r} is a folder.", "Pass the transcript file itself.")
    size = path.stat().st_size
    if size > limit:
        raise CallerError(
            "too_large",
            f"The file has {size >> 20} MB; the limit is {limit >> 20} MB.",
            "Raise MCP_COMPACT_MAX_FILE_MB.",
        )
    with open_file(path) as stream:
        return stream.read(HEAD_BYTES), size, path.resolve()


def open_file(path: Path) -> BinaryIO:
    """The file, opened for reading. Raises CallerError `unreadable`."""
    try:
        return path.open("rb")
    except OSError as error:
        raise CallerError(
            "unreadable", f"{str(path)!r} cannot be read: {error.strerror}.", "Check its permissions."
        ) from error


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The rest of a file in pieces."""
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


# ---------------------------------------------------------------- reading


@contextmanager
def uncollected() -> Iterator[None]:
    """While a batch lives the collector waits: it would go over its many values again and again, and find no cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def batches(work: ImportWork, pieces: Iterable[bytes]) -> Iterator[ReadBatch]:
    """Batches of parsed records. An unfinished last line is read too, but not counted as done."""
    lines = read_lines(pieces, work.line, work.offset)
    first = next(lines, None)
    if first is None:
        return
    lines = chain((first,), lines)
    if not work.reader.goes_on(first):
        yield from _as_read(work, lines)
        return
    pending: list[Parsed] = []
    done, line_number = work.offset, work.line
    while group := _group(lines, 1 if pending else BATCH_LINES):
        torn = None if group[-1].terminated else group.pop()
        pending += work.reader.read(group)
        if group:
            done, line_number = group[-1].end, group[-1].number + 1
        if pending and (torn is not None or not _awaits_summary(pending)):
            yield _taken(work, pending, done, line_number)
        if torn is not None:
            yield from _unfinished(work, torn, done, line_number)
    if pending:
        yield _taken(work, pending, done, line_number)


def _as_read(work: ImportWork, lines: Iterable[Line]) -> Iterator[ReadBatch]:
    """Batches of a file that is read whole each time, made as its reader hands out records."""
    pending: list[Parsed] = []
    held = done = 0

    def counted() -> Iterator[Line]:
        nonlocal done
        for line in lines:
            done = line.end
            yield line

    for parsed in work.reader.read(counted()):
        pending.append(parsed)
        held += len(parsed.record.body)
        if (len(pending) >= BATCH_LINES or held >= BATCH_BYTES) and not _awaits_summary(pending):
            yield ReadBatch(tuple(pending), done, 1, "")
            pending, held = [], 0
    if pending:
        yield ReadBatch(tuple(pending), work.total_bytes, 1, "")


def ready(work: ImportWork, namespace: str, stem: str, read: ReadBatch) -> list[ReadBatch]:
    """The batches that may be stored now that this one was read, in order."""
    if work.key is None:
        work.key = key_of(namespace, work, stem, read.parsed)
    work.waiting.append(read)
    if work.offset == 0 and work.reader.report.messages == 0:
        # Nothing is stored of a file that may turn out to hold no message at all.
        return []
    found, work.waiting = work.waiting, []
    return found


def key_of(namespace: str, work: ImportWork, stem: str, first: Sequence[Parsed]) -> SessionKey:
    """The session that a file belongs to: the one that it was read into, as asked, by its own ids, or by its name.

    A file may name another session further down; what follows still belongs to what was read of it before.
    """
    if work.began:
        return session_key(namespace, work.began)
    reader = work.reader
    facts = reader.facts(reader.sole_agent)
    named = facts.session_id is None or any(item.record.raw.get("sessionId") == stem for item in first)
    own = work.asked_id or (stem if named or facts.session_id is None else facts.session_id)
    if reader.sole_agent is not None and not work.asked_id:
        own = child_id(facts.parent_session_id or stem, reader.sole_agent)
    return session_key(namespace, own)


def _taken(work: ImportWork, pending: list[Parsed], done: int, line_number: int) -> ReadBatch:
    """What is pending as a batch. The list is emptied, so that a batch that was stored is not held on to."""
    read = ReadBatch(tuple(pending), done, line_number, json.dumps(work.reader.state()))
    pending.clear()
    return read


def _group(lines: Iterator[Line], number: int) -> list[Line]:
    """The next lines, so many or until they are large enough for a batch."""
    group: list[Line] = []
    held = 0
    for line in lines:
        group.append(line)
        held += len(line.data)
        if len(group) >= number or held >= BATCH_BYTES:
            break
    return group


def _unfinished(work: ImportWork, line: Line, done: int, line_number: int) -> Iterator[ReadBatch]:
    state = json.dumps(work.reader.state())
    parsed = tuple(work.reader.read([line]))
    if parsed:
        yield ReadBatch(parsed, done, line_number, state)


def _awaits_summary(pending: Sequence[Parsed]) -> bool:
    records = [item.record for item in pending[-SUMMARY_WITHIN:] if item.agent_id is None]
    return any(
        native_boundary(record) is not None and summary_of(record, records[at + 1 :]) is None
        for at, record in enumerate(records)
    )


# ---------------------------------------------------------------- storing


def needs_stored(read: ReadBatch) -> bool:
    """Does a boundary of the batch name what it kept by its ends only? Then what is stored already must be known."""
    found = (native_boundary(item.record) for item in read.parsed if item.record.subtype)
    return any(boundary is not None and boundary.head and not boundary.preserved for boundary in found)


def parted(
    work: ImportWork, read: ReadBatch, prepared: Sequence[Prepared], stored: Sequence[Record]
) -> list[tuple[SessionKey, Batch]]:
    """What is to be appended: the sub-agents' records first, the session's own with the file's position last.

    `prepared` are the records of the batch in their order; `stored` those of the session, if `needs_stored`.
    """
    session = work.session()
    main: list[Prepared] = []
    children: dict[str, list[Prepared]] = {}
    sole_agent = work.reader.sole_agent
    for item, own in zip(read.parsed, prepared, strict=True):
        if item.agent_id is None or item.agent_id == sole_agent:
            main.append(own)
        else:
            children.setdefault(item.agent_id, []).append(own)
    found: list[tuple[SessionKey, Batch]] = []
    for agent_id, records in children.items():
        key = session_key(session.namespace, child_id(session.session_id, agent_id))
        work.children[key.session_id] = None
        found.append((key, Batch(tuple(records), _facts(work, agent_id, parent=session.session_id))))
    position = SourcePosition(work.source, read.offset, read.line, 0, work.head_hash, read.state)
    batch = Batch(
        tuple(main),
        _facts(work, sole_agent, parent=None),
        tuple(_boundaries([own.record for own in main], stored)),
        position if work.source else None,
    )
    return [*found, (session, batch)]


def _facts(work: ImportWork, agent_id: str | None, *, parent: str | None) -> SessionFacts:
    facts = work.reader.facts(agent_id)
    return SessionFacts(
        title=facts.title,
        model=facts.model,
        cwd=facts.cwd,
        owner="client" if work.format in OF_CLIENTS else "loop",
        parent_session_id=parent or facts.parent_session_id,
        agent_id=agent_id,
    )


def _boundaries(records: Sequence[Record], stored: Sequence[Record]) -> Iterator[NativeBoundary]:
    """The client's own compactions among some records."""
    for at, record in enumerate(records):
        if not record.subtype:
            continue
        summary = summary_of(record, records[at + 1 :]) if record.subtype == BOUNDARY else None
        if (boundary := native_boundary(record, summary)) is not None:
            kept = expand_preserved(boundary, [*stored, *records[:at]])
            service = (boundary.service,) if boundary.service else ()
            metadata = {
                "trigger": boundary.trigger,
                "preTokens": boundary.pre_tokens,
                "postTokens": boundary.post_tokens,
                "preCompactDiscoveredTools": list(boundary.discovered_tools),
            }
            yield NativeBoundary(boundary.uuid, service, kept, _stated(metadata))
        elif (clearing := native_clearing(record)) is not None:
            metadata = {
                "trigger": clearing.trigger,
                "preTokens": clearing.pre_tokens,
                "tokensSaved": clearing.tokens_saved,
            }
            yield NativeBoundary(clearing.uuid, (), (), _stated(metadata), clearing.tool_use_ids, micro=True)


def _stated(metadata: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in metadata.items() if value}
