"""Importing many transcripts: what the paths name, one after the other, and the sum of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from mcp_compact.cli.archive import ask
from mcp_compact.cli.files import about_file, readable_file
from mcp_compact.cli.import_failures import with_what_is_stored
from mcp_compact.cli.import_progress import Progress
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import count, cut, shown
from mcp_compact.errors import CallerError, ServerError
from mcp_compact.places import history_folders
from mcp_compact.service.results import ImportResult
from mcp_compact.service.service import Service

SUFFIXES = (".jsonl", ".json", ".traj")
"""Names of files in folders that may be transcripts; what they are is told by their content."""
LISTED = 10
SEVERAL = "several_conversations"
Imported = TypeVar("Imported")
Reporting: TypeAlias = Callable[[int, int, str], None]
"""Told how far an import is: done, total, what."""


NAMED = 3
"""So many files are named for each reason."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: its sessions (more than one where each line is a conversation), or why there are none."""

    path: str
    results: tuple[ImportResult, ...] = ()
    error: CallerError | None = None
    refused: tuple[str, ...] = ()
    """Conversations of the file that could not be imported, where others could: line and reason."""
    name: str = ""
    """As it is shown: its place in the folder that was asked for."""


def asked_paths(names: Sequence[str], client: str | None) -> list[str]:
    """The files and folders that were asked for. A client's whole history is only read when it is named.

    Raises CallerError `nothing_to_import`, `unknown_client` or `no_history`.
    """
    paths = list(names)
    if client is not None:
        known = history_folders()
        if client not in known:
            raise CallerError("unknown_client", f"{client[:40]!r} is no client whose sessions are known.",
                              f"There is {', '.join(known)}; name the folder of another's.")  # fmt: skip
        found = [folder for folder in known[client] if is_folder(folder)]
        if not found:
            raise CallerError("no_history", f"No sessions of {client} were found.", "Name their folder as PATH.")
        paths += found
    if not paths:
        raise CallerError("nothing_to_import", "No path was given.",
                          "Name transcript files or folders, or a client with --history.")  # fmt: skip
    return paths


def is_folder(name: str) -> bool:
    """Is it a folder? What cannot be looked at is none."""
    return os.path.isdir(os.path.expanduser(name))  # noqa: PTH112, PTH111 - pathlib raises for names that cannot be


def run(paths: Sequence[str], format_name: str, *, as_json: bool) -> int:
    """Import all of them and sum up. 1 where a file that was named itself, or every file, could not be imported.

    Raises CallerError `no_files`.
    """
    files = dict(pair for path in paths for pair in _files(path))
    if not files:
        raise CallerError("no_files", f"{', '.join(map(repr, paths))[:200]} holds no file of a transcript's kind.",
                          f"Folders are looked through for {', '.join(SUFFIXES)}.")  # fmt: skip
    progress = Progress(terminal("stderr"))

    async def work(service: Service) -> list[Outcome]:
        sizes = [_size(file) for file in files]
        total, done, out = sum(sizes), 0, []
        for at, ((file, name), size) in enumerate(zip(files.items(), sizes, strict=True), 1):
            what = f"importing {at} of {len(files)}"
            progress(done, total, what)
            here = partial(_within, progress, done, total, what)
            out.append(replace(await _tried(service, file, format_name, here), name=name))
            done += size
        return out

    async def guarded(service: Service) -> list[Outcome]:
        return await stopped_clearly(service, work)

    try:
        outcomes = ask(guarded, create=True)
    finally:
        progress.end()
    tell(outcomes, as_json=as_json)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    return int(len(failed) == len(outcomes) or any(outcome.path in paths for outcome in failed))


async def stopped_clearly(service: Service, work: Callable[[Service], Awaitable[Imported]]) -> Imported:
    """Do it; a failure of the store says what was stored before it."""
    since_ms = service.deps.clock.now_ms()
    try:
        return await work(service)
    except ServerError as error:
        raise await with_what_is_stored(service, error, since_ms) from error


def _within(progress: Reporting, before: int, total: int, what: str, done: int, _size: int, _what: str) -> None:
    """The progress of one file as that of all."""
    progress(before + done, total, what)


async def of_file(service: Service, path: Path, format_name: str, session: str, progress: Reporting | None) -> Outcome:
    """The sessions of a file: one, or one a line where each line is a conversation of its own.

    Raises CallerError where there is none.
    """
    try:
        result = await service.import_file(path, format_name=format_name, session_id=session, progress=progress)
    except CallerError as error:
        if error.code != SEVERAL or session:
            raise
    else:
        return Outcome(str(path), (result,))
    results: list[ImportResult] = []
    refused: list[str] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            text, own = line.decode("utf-8", "replace"), f"{path.stem}-{number}"
            try:
                results.append(await service.import_content(text, format_name=format_name, session_id=own))
            except CallerError as error:
                refused.append(f"line {number}: {error.message}")
    if not results:
        raise CallerError("no_conversations", f"No line is a conversation ({refused[0]}).", "Check the file.")
    return Outcome(str(path), tuple(results), refused=tuple(refused))


async def _tried(service: Service, file: str, format_name: str, progress: Reporting) -> Outcome:
    try:
        return replace(await of_file(service, readable_file(file), format_name, "", progress), path=file)
    except CallerError as error:
        return Outcome(file, error=about_file(error, file))


def _files(path: str) -> Iterator[tuple[str, str]]:
    """A file itself, or the files of a folder, each with the name that it is shown by.

    Hidden folders in it are left out: they must be named themselves.
    """
    if not is_folder(path):
        yield path, path
        return
    top = Path(path).expanduser()
    for folder, below, names in os.walk(top):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                file = Path(folder, name)
                yield str(file), str(file.relative_to(top))


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except (OSError, ValueError):
        return 0


# ------------------------------------------------------------------ what it brought


def tell(outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    """Print the sum, or each result."""
    if as_json:
        files = [
            {
                "path": each.path,
                "results": each.results,
                "refused": each.refused,
                "error": each.error.message if each.error else None,
            }
            for each in outcomes
        ]
        print_json({"files": files})
    else:
        print("\n".join(sum_lines(outcomes)))


def sum_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """What many files brought, to be read."""
    read = [outcome for outcome in outcomes if outcome.results]
    results = [result for outcome in read for result in outcome.results]
    lines = [_brought(read, results)]
    formats = Counter(_formats(results).values())
    if formats:
        told = ", ".join(f"{number:,} {shown(name)}" for name, number in formats.most_common())
        lines.append(f"Sessions by format: {told}.")
    known = sum(not any(result.stored for result in outcome.results) for outcome in read)
    if 0 < known < len(read):
        lines.append(f"{count(known, 'file')} held nothing new.")
    understood: Counter[str] = Counter()
    for result in results:
        understood.update(result.not_understood)
    lines += kept_lines(understood)
    if conflicts := sum(result.conflicts for result in results):
        lines.append(f"{count(conflicts, 'record')} differed from what is stored under the same id; that stays.")
    return [*lines, *_unread_lines(read), *_left_out_lines(outcomes), "Next: mcp-compact sessions --all"]


def _formats(results: Sequence[ImportResult]) -> dict[str, str]:
    """The format that each session came in, those of sub-agents too: each session once."""
    return {own: result.format for result in results for own in (*result.children, result.session_id)}


def _brought(read: Sequence[Outcome], results: Sequence[ImportResult]) -> str:
    if not read:
        return "Imported nothing."
    children = {child for result in results for child in result.children}
    sessions = count(len(_formats(results)), "session") + (f" ({len(children)} of sub-agents)" if children else "")
    stored = sum(result.stored for result in results)
    if not stored:
        return f"Nothing new: the archive holds all of {count(len(read), 'file')}, {sessions}."
    messages = count(sum(result.messages for result in results), "message")
    return f"Imported {count(len(read), 'file')}: {messages} in {sessions}, {count(stored, 'record')} stored."


def kept_lines(not_understood: Mapping[str, int]) -> list[str]:
    """What was kept without being understood, the most frequent kinds first; nothing where there is none."""
    if not not_understood:
        return []
    kinds = sorted(not_understood.items(), key=lambda kind: (-kind[1], kind[0]))
    told = ", ".join(f"{number:,} {cut(shown(kind), 60)}" for kind, number in kinds[:LISTED])
    more = f" and {count(len(kinds) - LISTED, 'more kind')}" if len(kinds) > LISTED else ""
    return [f"Kept, but without meaning here: {told}{more}."]


def _unread_lines(read: Sequence[Outcome]) -> list[str]:
    """The lines that could not be read; a later import does not come to them again."""
    number = sum(result.problem_count for outcome in read for result in outcome.results)
    found = [f"{o.name or o.path}: {problem}" for o in read for r in o.results for problem in r.problems]
    found += [f"{o.name or o.path}: {refusal}" for o in read for refusal in o.refused]
    number += sum(len(outcome.refused) for outcome in read)
    return [f"{count(number, 'line')} could not be read:", *_listed(found, number)] if number else []


def _left_out_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """The files that were left out, by the reason."""
    names: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.error is not None:
            reason = outcome.error.message.removeprefix(f"{outcome.path}: ")
            names.setdefault(reason, []).append(outcome.name or outcome.path)
    if not names:
        return []
    number = sum(map(len, names.values()))
    told = [f"{_named(files)}: {reason}" for reason, files in names.items()]
    return [f"{count(number, 'file')} left out:", *_listed(told, len(told))]


def _named(files: Sequence[str]) -> str:
    more = f" and {len(files) - NAMED:,} more" if len(files) > NAMED else ""
    return ", ".join(files[:NAMED]) + more


def _listed(found: Sequence[str], number: int) -> list[str]:
    lines = [f"  {cut(shown(text), 150)}" for text in found[:LISTED]]
    return [*lines, f"  ... {number - LISTED:,} more; --json lists all"] if number > LISTED else lines
