"""Exporting a session: its live context, or everything that was said, in the form that a provider or a client takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from anyio import to_thread

from mcp_compact.compaction.request import Surroundings
from mcp_compact.errors import CallerError
from mcp_compact.messages.live import LiveContext
from mcp_compact.messages.message import Record
from mcp_compact.messages.valid import valid_turns
from mcp_compact.ports.store import SessionKey, SessionRow
from mcp_compact.service.compactions import branch
from mcp_compact.service.deps import Deps
from mcp_compact.service.paging import page, pieces
from mcp_compact.service.reading import load_live, place_in
from mcp_compact.service.standing_beside import own_records, without_unled
from mcp_compact.transcripts.beside import NOTHING, Beside, beside_of, system_texts
from mcp_compact.transcripts.facts import facts_of
from mcp_compact.transcripts.masked_out import Masker
from mcp_compact.transcripts.outs import Origin, Out, finished, out_of
from mcp_compact.transcripts.whole_answers import whole_turns

EVERYTHING = "all"


@dataclass(frozen=True, slots=True)
class Exported:
    """A session in an output format: every call answered, valid for its provider, keys masked."""

    session_id: str
    format: str
    is_whole: bool
    """Everything that was said, not the live context alone."""
    messages: tuple[dict[str, Any], ...]
    system: tuple[str, ...]
    """System prompts, which have no place among the messages of this format."""
    model: str
    masked: int
    """Texts in which keys were masked."""
    warnings: tuple[str, ...]
    """What was repaired, and what could not go along."""
    version: str = ""


@dataclass(frozen=True, slots=True)
class ExportPage:
    """A part of it."""

    session_id: str
    format: str
    messages: tuple[dict[str, Any], ...]
    next_cursor: str
    total: int = 0
    """Messages in all pages."""
    masked: int = 0
    warnings: tuple[str, ...] = ()


async def export(deps: Deps, key: SessionKey, format_name: str, *, whole: bool) -> Exported:
    """A session as messages of `format_name`: its live context, or with `whole` everything that was said.

    Nothing is written, in the archive or elsewhere. Raises CallerError `unknown_format`, `nothing_to_export`.
    """
    out = out_of(format_name)
    row = await deps.row(key)
    live, version = await load_live(deps, key)
    archive: list[Record] = []
    if whole or out.provider or out.takes_beside:
        archive = await _dialogue(deps, key, row)
    if whole:
        live, version = LiveContext((), _said(archive), {}), EVERYTHING
    if not live.all:
        raise CallerError("nothing_to_export", "The session holds no message.", "Name another session.")
    # In a thread: a long session has tens of megabytes, and other calls go on meanwhile.
    work = partial(_exported, out, live, archive, row)
    return replace(await to_thread.run_sync(work), is_whole=whole, version=version)


async def export_page(deps: Deps, key: SessionKey, format_name: str, *, whole: bool, cursor: str) -> ExportPage:
    """One page of an export. Raises CallerError as `export` does, and `bad_cursor`, `context_changed`."""
    done = await export(deps, key, format_name, whole=whole)
    start = place_in(cursor, done.version)
    limit = deps.settings.page_tokens

    def work() -> tuple[list[Any], int | None]:
        return page(list(pieces(done.messages, limit)), start, limit)

    taken, following = await to_thread.run_sync(work)
    outside = f"{len(done.system)} system prompts stand outside of this format's messages" if done.system else ""
    return ExportPage(
        key.session_id,
        format_name,
        tuple(taken),
        f"{done.version}:{following}" if following is not None else "",
        len(done.messages),
        done.masked,
        (*done.warnings, *filter(None, [outside])),
    )


async def _dialogue(deps: Deps, key: SessionKey, row: SessionRow) -> list[Record]:
    """The records of the archive but our own markers and what they brought."""
    records = await deps.store.records(key, after_seq=0, up_to_seq=row.last_seq, live_only=False)
    ours = await own_records(deps, key)
    return [record for record in records if record.uuid not in ours]


def _said(archive: Sequence[Record]) -> tuple[Record, ...]:
    """What was said on the active branch. A client's summary tells it once more, and stays out but as the beginning."""
    said = [record for record in branch(archive) if record.is_message]
    return tuple(record for at, record in enumerate(said) if at == 0 or not record.is_summary)


def _exported(out: Out, live: LiveContext, archive: Sequence[Record], row: SessionRow) -> Exported:
    around = Surroundings(session_id=row.key.session_id)
    turns, repairs = valid_turns(whole_turns(live, around), close_open_calls=True)
    masker = Masker()
    turns = masker.turns(turns)
    beside = beside_of(archive, [record.uuid for record in live.all]) if archive else NOTHING
    beside = beside if row.forked_at is None else without_unled(beside, live.all)
    facts = replace(facts_of(live.all), session_id=row.key.session_id)
    facts = replace(facts, cwd=row.cwd or facts.cwd, model=row.model or facts.model, title=row.title or facts.title)
    records = {record.uuid: record for record in live.all}
    placed = masker.beside(beside) if out.takes_beside else NOTHING
    done = finished(out.name, turns, Origin(records, facts, row.key.session_id, placed))
    messages = [masker.envelope(entry) for entry in done.messages] if out.by_line else done.messages
    return Exported(
        row.key.session_id,
        out.name,
        is_whole=False,
        messages=tuple(messages),
        system=() if out.takes_beside else _system(beside, masker),
        model=facts.model or "",
        masked=masker.count,
        warnings=(*repairs, *(f"{change.path}: {change.text}" for change in done.changes)),
    )


def _system(beside: Beside, masker: Masker) -> tuple[str, ...]:
    return tuple(masker.text(text) for text in system_texts(beside.leading))
