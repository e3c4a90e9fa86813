"""`mcp-compact export`: sessions out of the archive, as a provider or a client takes them, or byte for byte."""

from __future__ import annotations

import argparse

from mcp_compact.errors import CallerError

SESSION_FILES = ("claude-code", "codex")


def run(arguments: argparse.Namespace) -> int:
    """Write what is asked for."""
    if arguments.json and arguments.output in {None, "-"}:
        raise CallerError("output_needed", "--json tells of the file that was written.", "Name it with -o FILE.")
    if arguments.raw:
        if arguments.all and arguments.session:
            raise CallerError("session_and_all", "A session is named, and --all is given.", "Leave one of them out.")
        if arguments.request:
            raise CallerError("raw_request", "--request is for messages of a provider.", "Leave out --raw.")
        from mcp_compact.cli.raw_export import export

        return export(arguments)
    if arguments.request and arguments.format in SESSION_FILES:
        raise CallerError("no_request", "A session file of a client is no request.", "Leave --request out.")
    from mcp_compact.cli.format_export import export as export_format

    return export_format(arguments)
