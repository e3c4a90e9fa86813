"""`mcp-compact import`: a transcript into the archive, with a progress bar."""

from __future__ import annotations

import argparse

from mcp_compact.cli import import_many, raw_export
from mcp_compact.cli.account import warning_lines
from mcp_compact.cli.archive import ask
from mcp_compact.cli.files import about_file, known_format, readable_file
from mcp_compact.cli.import_progress import Progress
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import count, quoted, share, shown, tokens
from mcp_compact.errors import CallerError
from mcp_compact.service.results import ImportResult, Status
from mcp_compact.service.service import Service

LISTED = 10


def run(arguments: argparse.Namespace) -> int:
    """Import one transcript, or all that the paths name."""
    name = known_format(arguments.format)
    paths = import_many.asked_paths(arguments.paths, arguments.history)
    if len(paths) == 1 and not import_many.is_folder(paths[0]):
        path = readable_file(paths[0])
        if not name and raw_export.is_export(path):
            return raw_export.import_file(path, arguments.session, as_json=arguments.json)
        return _one(arguments, paths[0], name)
    if arguments.session:
        raise CallerError("one_session", "--session names the session of one file.", "Leave it out, or name one file.")
    return import_many.run(paths, name, as_json=arguments.json)


def _one(arguments: argparse.Namespace, named: str, name: str) -> int:
    path = readable_file(named)
    progress = Progress(terminal("stderr"))

    async def work(service: Service) -> import_many.Outcome:
        async def whole(service: Service) -> import_many.Outcome:
            return await import_many.of_file(service, path, name, arguments.session, progress)

        return await import_many.stopped_clearly(service, whole)

    try:
        found = ask(work, create=True)
    except CallerError as error:
        raise about_file(error, named) from error
    finally:
        progress.end()
    if found.refused or len(found.results) > 1:
        import_many.tell([found], as_json=arguments.json)
    elif arguments.json:
        print_json(found.results[0])
    else:
        print("\n".join(import_lines(found.results[0])))
    return 0


def import_lines(result: ImportResult) -> list[str]:
    """What an import brought, to be read."""
    new = f"{count(result.stored, 'record')} stored" + (f", {result.known:,} known already" if result.known else "")
    lines = [
        f"Imported {count(result.messages, 'message')} ({result.format}): {new}."
        if result.stored
        else f"Nothing new: the archive holds all of this file ({result.format}).",
        f"Session {shown(result.session_id)}: {fullness(result.status)}.",
    ]
    if result.children:
        lines.append(f"{count(len(result.children), 'session')} of sub-agents beside it.")
    lines += import_many.kept_lines(result.not_understood)
    if result.conflicts:
        lines.append(f"{count(result.conflicts, 'record')} differed from what is stored under the same id; that stays.")
    return [
        *lines,
        *warning_lines(problems_of(result), LISTED),
        f"Next: mcp-compact status {quoted(result.session_id)}",
    ]


def fullness(state: Status) -> str:
    """`84.2k of 200.0k tokens (42%), level ok`."""
    used = share(state.tokens, state.context_window)
    return f"{tokens(state.tokens)} of {tokens(state.context_window)} tokens ({used}), level {state.level}"


def problems_of(result: ImportResult) -> list[str]:
    """Lines that were not understood, and other warnings of the import."""
    more = result.problem_count - len(result.problems)
    return [*result.problems, *([f"and {count(more, 'more such line')}"] if more > 0 else []), *result.warnings]
