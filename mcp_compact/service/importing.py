"""Importing transcripts: streamed in batches, each one transaction; a stopped import goes on where it was."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from anyio import to_thread

from mcp_compact.errors import CallerError, ServerError
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Appended, Batch, NativeBoundary, Prepared, SessionFacts, SessionKey, SourcePosition
from mcp_compact.service.deps import Deps, session_key
from mcp_compact.service.prepare import Progress, prepare
from mcp_compact.service.results import ImportResult
from mcp_compact.service.status import status_of
from mcp_compact.transcripts.lines import Line, read_lines
from mcp_compact.transcripts.native import expand_preserved, native_boundary, native_clearing, summary_of
from mcp_compact.transcripts.parsed import Parsed, Reader
from mcp_compact.transcripts.registry import CLAUDE_CODE, detect_format, reader_for

CHUNK_BYTES = 1 << 20
HEAD_BYTES = 1 << 16
BATCH_LINES = 1000
BATCH_BYTES = 4 << 20
SUMMARY_WITHIN = 50
"""A batch does not end between a client's boundary and its summary, which follows within so many records."""
SHOWN_PROBLEMS = 20


@dataclass(slots=True)
class _Import:
    """One import under way."""

    reader: Reader
    format: str
    source: str
    asked_id: str
    head_hash: str
    total_bytes: int
    offset: int = 0
    line: int = 1
    key: SessionKey | None = None
    stored: int = 0
    known: int = 0
    conflicts: int = 0
    missing_parents: list[str] = field(default_factory=list)
    children: dict[str, None] = field(default_factory=dict)
    waiting: list[_Read] = field(default_factory=list)
    """Batches that are read but not stored: no message was met yet."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A batch as read, and where the file stands after it. `final` holds what may still be written on."""

    parsed: tuple[Parsed, ...]
    offset: int
    line: int
    state: str


async def import_file(
    deps: Deps, namespace: str, path: Path, *, format_name: str, session_id: str, progress: Progress | None
) -> ImportResult:
    """Import a file, or what was appended to it since the last import.

    Raises CallerError where the path or the content is no transcript; nothing is stored then.
    """
    head, size, place = await to_thread.run_sync(_head, path, deps.settings.max_file_bytes)
    name = format_name or detect_format(head)
    head_hash = blake2b(head[:4096].split(b"\n", 1)[0], digest_size=16).hexdigest()
    source = f"{session_id}|{place}"
    position = await deps.store.position(namespace, source)
    if position is not None and (position.head_hash != head_hash or position.offset > size):
        position = None
    state = json.loads(position.state) if position and position.state else None
    reader = reader_for(name, session_id or path.stem, state, _always if state else _never)
    work = _Import(reader, name, source, session_id, head_hash, size)
    if position is not None and state is not None:
        work.offset, work.line = position.offset, position.line
    with await to_thread.run_sync(partial(_open, path)) as stream:
        stream.seek(work.offset)
        await _run(deps, namespace, work, _chunks(stream), path.stem, progress)
    return await _result(deps, work)


async def import_content(
    deps: Deps, namespace: str, content: str, *, format_name: str, session_id: str
) -> ImportResult:
    """Import a transcript given as text; without a session id one is made from the text."""
    data = content.encode("utf-8", "surrogatepass")
    name = format_name or detect_format(data)
    stem = session_id or f"import-{blake2b(data, digest_size=6).hexdigest()}"
    work = _Import(reader_for(name, stem), name, "", session_id, "", len(data))
    await _run(deps, namespace, work, iter([data]), stem, None)
    return await _result(deps, work)


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
    with _open(path) as stream:
        return stream.read(HEAD_BYTES), size, path.resolve()


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise CallerError(
            "unreadable", f"{str(path)!r} cannot be read: {error.strerror}.", "Check its permissions."
        ) from error


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


async def _run(
    deps: Deps, namespace: str, work: _Import, chunks: Iterable[bytes], stem: str, progress: Progress | None
) -> None:
    batches = _batches(work, chunks)
    offset: int | None = 0
    while offset is not None:
        if progress is not None and offset:
            progress(min(offset, work.total_bytes), work.total_bytes, "importing")
        with _uncollected():
            offset = await _take_batch(deps, namespace, work, batches, stem)
    if work.key is None:
        work.key = _key_of(namespace, work, stem, ())
    if work.waiting or (work.reader.report.messages == 0 and await deps.store.session(work.key) is None):
        raise CallerError("no_messages", "The transcript holds no messages.", "Check that it is a session's own file.")


async def _take_batch(deps: Deps, namespace: str, work: _Import, batches: Iterator[_Read], stem: str) -> int | None:
    """Read and store a batch; where the file stands then, None at its end."""
    read = await to_thread.run_sync(next, batches, None)
    if read is None:
        return None
    if work.key is None:
        work.key = _key_of(namespace, work, stem, read.parsed)
    work.waiting.append(read)
    if work.offset == 0 and work.reader.report.messages == 0:
        # Nothing is stored of a file that may turn out to hold no message at all.
        return read.offset
    while work.waiting:
        await _store_batch(deps, work, work.waiting.pop(0))
    return read.offset


@contextmanager
def _uncollected() -> Iterator[None]:
    """While a batch lives the collector waits: it would go over its many values again and again, and find no cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _batches(work: _Import, chunks: Iterable[bytes]) -> Iterator[_Read]:
    """Batches of parsed records. An unfinished last line is read too, but not counted as done."""
    if work.format != CLAUDE_CODE:
        parsed = tuple(work.reader.read(read_lines(chunks)))
        if parsed:
            yield _Read(parsed, work.total_bytes, 1, "")
        return
    lines = read_lines(chunks, work.line, work.offset)
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


def _taken(work: _Import, pending: list[Parsed], done: int, line_number: int) -> _Read:
    """What is pending as a batch. The list is emptied, so that a batch that was stored is not held on to."""
    read = _Read(tuple(pending), done, line_number, json.dumps(work.reader.state()))
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


def _unfinished(work: _Import, line: Line, done: int, line_number: int) -> Iterator[_Read]:
    state = json.dumps(work.reader.state())
    parsed = tuple(work.reader.read([line]))
    if parsed:
        yield _Read(parsed, done, line_number, state)


def _awaits_summary(pending: Sequence[Parsed]) -> bool:
    records = [item.record for item in pending[-SUMMARY_WITHIN:] if item.agent_id is None]
    return any(
        native_boundary(record) is not None and summary_of(record, records[at + 1 :]) is None
        for at, record in enumerate(records)
    )


def _key_of(namespace: str, work: _Import, stem: str, first: Sequence[Parsed]) -> SessionKey:
    """The session that a file belongs to: as asked, else by its own ids, else by its name."""
    reader = work.reader
    facts = reader.facts(reader.sole_agent)
    named = facts.session_id is None or any(item.record.raw.get("sessionId") == stem for item in first)
    own = work.asked_id or (stem if named or facts.session_id is None else facts.session_id)
    if reader.sole_agent is not None and not work.asked_id:
        own = child_id(facts.parent_session_id or stem, reader.sole_agent)
    return session_key(namespace, own)


def child_id(session_id: str, agent_id: str) -> str:
    """The session id of a sub-agent's conversation."""
    return f"{session_id}/agent-{agent_id}"


async def _store_batch(deps: Deps, work: _Import, read: _Read) -> None:
    """A batch: the sub-agents' records first, the session's own with the file's position last."""
    if work.key is None:
        raise ServerError("no_session", "The import has no session.", "Report this.")
    make = partial(prepare, [item.record for item in read.parsed], deps.tokenizer, with_content_hash=False)
    main: list[Prepared] = []
    children: dict[str, list[Prepared]] = {}
    sole_agent = work.reader.sole_agent
    for item, prepared in zip(read.parsed, await to_thread.run_sync(make), strict=True):
        if item.agent_id is None or item.agent_id == sole_agent:
            main.append(prepared)
        else:
            children.setdefault(item.agent_id, []).append(prepared)
    for agent_id, records in children.items():
        key = session_key(work.key.namespace, child_id(work.key.session_id, agent_id))
        work.children[key.session_id] = None
        facts = _facts(work, agent_id, parent=work.key.session_id)
        await _append(deps, work, key, Batch(tuple(records), facts))
    position = SourcePosition(work.source, read.offset, read.line, 0, work.head_hash, read.state)
    batch = Batch(
        tuple(main),
        _facts(work, sole_agent, parent=None),
        tuple(await _boundaries(deps, work.key, [prepared.record for prepared in main])),
        position if work.source else None,
    )
    await _append(deps, work, work.key, batch)


async def _append(deps: Deps, work: _Import, key: SessionKey, batch: Batch) -> None:
    done: Appended = await deps.store.append(key, batch, deps.clock.now_ms())
    work.stored += done.new
    work.known += done.known
    work.conflicts += len(done.conflicts)
    work.missing_parents += done.missing_parents


def _facts(work: _Import, agent_id: str | None, *, parent: str | None) -> SessionFacts:
    facts = work.reader.facts(agent_id)
    return SessionFacts(
        title=facts.title,
        model=facts.model,
        cwd=facts.cwd,
        owner="client" if work.format == CLAUDE_CODE else "loop",
        parent_session_id=parent or facts.parent_session_id,
        agent_id=agent_id,
    )


async def _boundaries(deps: Deps, key: SessionKey, records: Sequence[Record]) -> list[NativeBoundary]:
    """The client's own compactions among some records."""
    found: list[NativeBoundary] = []
    for at, record in enumerate(records):
        summary = summary_of(record, records[at + 1 :]) if record.subtype else None
        if (boundary := native_boundary(record, summary)) is not None:
            earlier = list(records[:at])
            if boundary.head and not boundary.preserved:
                earlier = await _stored(deps, key) + earlier
            kept = expand_preserved(boundary, earlier)
            service = (boundary.service,) if boundary.service else ()
            metadata = {
                "trigger": boundary.trigger,
                "preTokens": boundary.pre_tokens,
                "postTokens": boundary.post_tokens,
                "preCompactDiscoveredTools": list(boundary.discovered_tools),
            }
            found.append(NativeBoundary(boundary.uuid, service, kept, _stated(metadata)))
        elif (clearing := native_clearing(record)) is not None:
            metadata = {
                "trigger": clearing.trigger,
                "preTokens": clearing.pre_tokens,
                "tokensSaved": clearing.tokens_saved,
            }
            found.append(NativeBoundary(clearing.uuid, (), (), _stated(metadata), clearing.tool_use_ids, micro=True))
    return found


def _stated(metadata: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in metadata.items() if value}


async def _stored(deps: Deps, key: SessionKey) -> list[Record]:
    row = await deps.store.session(key)
    return await deps.store.records(key, after_seq=0, up_to_seq=row.last_seq, live_only=True) if row else []


async def _result(deps: Deps, work: _Import) -> ImportResult:
    if work.key is None:
        raise ServerError("no_session", "The import has no session.", "Report this.")
    report = work.reader.report
    problems = [f"line {p.line}: {p.reason}" for p in report.problems[:SHOWN_PROBLEMS]]
    warnings = [f"{count} x {code.replace('_', ' ')}" for code, count in sorted(report.warning_counts.items())]
    warnings += [f"line {w.line}: {w.code.replace('_', ' ')} ({w.uuid})" for w in report.warnings[:SHOWN_PROBLEMS]]
    if report.copied:
        warnings.append(f"{report.copied} records were copied from an earlier session")
    if report.glued:
        warnings.append(f"{report.glued} lines held several records: all were read")
    status = await status_of(deps, work.key)
    if deps.extractions is not None:
        deps.extractions.consider(work.key, status)
    return ImportResult(
        session_id=work.key.session_id,
        format=work.format,
        records=report.records,
        messages=report.messages,
        stored=work.stored,
        known=work.known,
        children=tuple(work.children),
        conflicts=work.conflicts,
        problems=tuple(problems),
        problem_count=report.problem_count,
        not_understood=dict(report.unknown_types),
        warnings=tuple(warnings),
        status=status,
    )
