"""Importing transcripts: streamed in batches, each one transaction; a stopped import goes on where it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path

from anyio import to_thread

from mcp_compact.errors import CallerError
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import SessionKey
from mcp_compact.service import import_batches
from mcp_compact.service.deps import Deps
from mcp_compact.service.import_batches import ImportWork, ReadBatch, head_of, key_of, open_file, work_at
from mcp_compact.service.prepare import Progress, prepare
from mcp_compact.service.results import ImportResult
from mcp_compact.service.status import status_of
from mcp_compact.transcripts.registry import detect_format, reader_for
from mcp_compact.transcripts.report import FINDINGS
from mcp_compact.transcripts.sniffing import HEADS_BYTES

SHOWN_PROBLEMS = 20
UNCOLLECTED_BATCHES = 16
"""So many are read before the collector may run: each time it goes over all of a document that is read as a whole."""


async def import_file(
    deps: Deps, namespace: str, path: Path, *, format_name: str, session_id: str, progress: Progress | None
) -> ImportResult:
    """Import a file, or what was appended to it since the last import.

    Raises CallerError where the path or the content is no transcript; nothing is stored then.
    """
    look = partial(head_of, path, deps.settings.max_file_bytes, format_name=format_name, session_id=session_id)
    head = await to_thread.run_sync(look)
    work = work_at(head, path.stem, session_id, await deps.store.position(namespace, head.source))
    with await to_thread.run_sync(partial(open_file, path)) as stream:
        stream.seek(work.offset)
        await _run(deps, namespace, work, import_batches.chunks(stream), path.stem, progress)
    return await _result(deps, work)


async def import_content(
    deps: Deps, namespace: str, content: str, *, format_name: str, session_id: str, progress: Progress | None = None
) -> ImportResult:
    """Import a transcript given as text; without a session id one is made from the text."""
    data = content.encode("utf-8", "surrogatepass")
    # In a thread and of the beginning alone: what is no transcript would keep everybody else waiting.
    name = format_name or await to_thread.run_sync(_format_of, data)
    stem = session_id or f"import-{blake2b(data, digest_size=6).hexdigest()}"
    work = ImportWork(reader_for(name, stem), name, "", session_id, "", len(data))
    await _run(deps, namespace, work, iter([data]), stem, progress)
    return await _result(deps, work)


def _format_of(data: bytes) -> str:
    """The format of a text by its beginning; where that does not tell, by more of it."""
    for size in sorted(HEADS_BYTES):
        try:
            return detect_format(data[:size])
        except CallerError as error:
            if error.code != "not_a_transcript" or size >= len(data):
                raise
            unknown = error
    raise unknown


async def _run(
    deps: Deps, namespace: str, work: ImportWork, chunks: Iterable[bytes], stem: str, progress: Progress | None
) -> None:
    batches = import_batches.batches(work, chunks)
    offset: int | None = 0
    while offset is not None:
        with import_batches.uncollected():
            for _ in range(UNCOLLECTED_BATCHES):
                if progress is not None and offset:
                    progress(min(offset, work.total_bytes), work.total_bytes, "importing")
                offset = await _take_batch(deps, namespace, work, batches, stem)
                if offset is None:
                    break
    if work.key is None:
        work.key = key_of(namespace, work, stem, ())
    if work.waiting or (work.reader.report.messages == 0 and await deps.store.session(work.key) is None):
        raise CallerError("no_messages", "The transcript holds no messages.", "Check that it is a session's own file.")


async def _take_batch(
    deps: Deps, namespace: str, work: ImportWork, batches: Iterator[ReadBatch], stem: str
) -> int | None:
    """Read and store a batch; where the file stands then, None at its end."""
    read = await to_thread.run_sync(next, batches, None)
    if read is None:
        return None
    for item in import_batches.ready(work, namespace, stem, read):
        await _store_batch(deps, work, item)
    return read.offset


async def _store_batch(deps: Deps, work: ImportWork, read: ReadBatch) -> None:
    make = partial(prepare, [item.record for item in read.parsed], deps.tokenizer, with_content_hash=False)
    prepared = await to_thread.run_sync(make)
    stored = await _stored(deps, work.session()) if import_batches.needs_stored(read) else []
    for key, batch in import_batches.parted(work, read, prepared, stored):
        work.took(await deps.store.append(key, batch, deps.clock.now_ms()))


async def _stored(deps: Deps, key: SessionKey) -> list[Record]:
    row = await deps.store.session(key)
    return await deps.store.records(key, after_seq=0, up_to_seq=row.last_seq, live_only=True) if row else []


async def _result(deps: Deps, work: ImportWork) -> ImportResult:
    session = work.session()
    report = work.reader.report
    problems = [f"line {p.line}: {p.reason}" for p in report.problems[:SHOWN_PROBLEMS]]
    warnings = [f"{count} x {FINDINGS.get(code, code)}" for code, count in sorted(report.warning_counts.items())]
    warnings += [f"line {w.line}: {FINDINGS.get(w.code, w.code)} ({w.uuid})" for w in report.warnings[:SHOWN_PROBLEMS]]
    warnings += [f"line {p.line}: not understood: {p.kind}" for p in report.unknown_places[:SHOWN_PROBLEMS]]
    if report.copied:
        warnings.append(f"{report.copied} records were copied from an earlier session")
    if report.glued:
        warnings.append(f"{report.glued} lines held several records: all were read")
    status = await status_of(deps, session)
    if deps.extractions is not None:
        deps.extractions.consider(session, status)
    return ImportResult(
        session_id=session.session_id,
        format=work.format,
        records=report.records,
        messages=report.messages,
        stored=work.stored,
        known=work.known,
        children=tuple(work.children),
        conflicts=work.conflicts,
        problems=tuple(problems),
        problem_count=report.problem_count,
        not_understood=report.not_understood,
        warnings=tuple(warnings),
        status=status,
    )
