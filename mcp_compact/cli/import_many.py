"""Importing many transcripts: what the paths name, one after the other, and the sum of it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mcp_compact.cli.archive import ask
from mcp_compact.cli.files import about_file, readable_file
from mcp_compact.cli.import_progress import Progress
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import count, cut, shown
from mcp_compact.errors import CallerError
from mcp_compact.places import history_folders
from mcp_compact.service.results import ImportResult
from mcp_compact.service.service import Service

SUFFIXES = (".jsonl", ".json", ".traj")
"""Names of files in folders that may be transcripts; what they are is told by their content."""
LISTED = 10
SEVERAL = "several_conversations"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: its sessions (more than one where each line is a conversation), or why there are none."""

    path: str
    results: tuple[ImportResult, ...] = ()
    error: CallerError | None = None


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
    files = list(dict.fromkeys(file for path in paths for file in _files(path)))
    if not files:
        raise CallerError("no_files", f"{', '.join(map(repr, paths))[:200]} holds no file of a transcript's kind.",
                          f"Folders are looked through for {', '.join(SUFFIXES)}.")  # fmt: skip
    progress = Progress(terminal("stderr"))

    async def work(service: Service) -> list[Outcome]:
        sizes = [_size(file) for file in files]
        done, out = 0, []
        for at, (file, size) in enumerate(zip(files, sizes, strict=True), 1):
            progress(done, sum(sizes), f"importing {at} of {len(files)}")
            out.append(await _tried(service, file, format_name))
            done += size
        return out

    try:
        outcomes = ask(work, create=True)
    finally:
        progress.end()
    tell(outcomes, as_json=as_json)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    return int(len(failed) == len(outcomes) or any(outcome.path in paths for outcome in failed))


async def of_file(
    service: Service, path: Path, format_name: str, session: str, progress: Progress | None
) -> list[ImportResult]:
    """The sessions of a file: one, or one a line where each line is a conversation of its own."""
    try:
        return [await service.import_file(path, format_name=format_name, session_id=session, progress=progress)]
    except CallerError as error:
        if error.code != SEVERAL or session:
            raise
    results = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                text = line.decode("utf-8", "replace")
                own = f"{path.stem}-{number}"
                results.append(await service.import_content(text, format_name=format_name, session_id=own))
    return results


async def _tried(service: Service, file: str, format_name: str) -> Outcome:
    try:
        path = readable_file(file)
        return Outcome(file, tuple(await of_file(service, path, format_name, "", None)))
    except CallerError as error:
        return Outcome(file, error=about_file(error, file))


def _files(path: str) -> Iterator[str]:
    """A file itself, or the files of a folder. Hidden folders in it are left out: they must be named themselves."""
    if not is_folder(path):
        yield path
        return
    for folder, below, names in os.walk(Path(path).expanduser()):
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield from (str(Path(folder, name)) for name in sorted(names) if name.endswith(SUFFIXES))


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
            {"path": each.path, "results": each.results, "error": each.error.message if each.error else None}
            for each in outcomes
        ]
        print_json({"files": files})
    else:
        print("\n".join(sum_lines(outcomes)))


def sum_lines(outcomes: Sequence[Outcome]) -> list[str]:
    """What many files brought, to be read."""
    results = [result for outcome in outcomes for result in outcome.results]
    sessions = {result.session_id for result in results} | {child for result in results for child in result.children}
    new = sum(result.stored for result in results)
    known = sum(1 for outcome in outcomes if outcome.results and not any(r.stored for r in outcome.results))
    formats = Counter(result.format for result in results)
    lines = [
        (
            f"Imported {count(len([o for o in outcomes if o.results]), 'file')}: "
            f"{count(sum(r.messages for r in results), 'message')} in {count(len(sessions), 'session')}, "
            f"{count(new, 'record')} stored."
        ),
    ]
    if formats:
        lines.append("Formats: " + ", ".join(f"{shown(name)} {number}" for name, number in formats.most_common()) + ".")
    if known:
        lines.append(f"{count(known, 'file')} held nothing new.")
    understood: Counter[str] = Counter()
    for result in results:
        understood.update(result.not_understood)
    if understood:
        kinds = ", ".join(f"{number} {shown(kind)}" for kind, number in understood.most_common())
        lines.append(f"Kept, but without meaning here: {kinds}.")
    problems = sum(result.problem_count for result in results)
    if problems:
        lines.append(f"{count(problems, 'line')} could not be read; `mcp-compact import FILE` lists a file's.")
    refused = [outcome.error.message for outcome in outcomes if outcome.error is not None]
    if refused:
        lines.append(f"{count(len(refused), 'file')} left out:")
        lines += [f"  {cut(shown(message), 150)}" for message in refused[:LISTED]]
        lines += [f"  ... {len(refused) - LISTED} more; --json lists all"] if len(refused) > LISTED else []
    return [*lines, "Next: mcp-compact sessions --all"]
