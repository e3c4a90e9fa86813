"""`mcp-compact export`: sessions out of the archive."""

from __future__ import annotations

import argparse

from mcp_compact.errors import CallerError


def run(arguments: argparse.Namespace) -> int:
    """Write what is asked for."""
    if arguments.all and arguments.session:
        raise CallerError("session_and_all", "A session is named, and --all is given.", "Leave one of them out.")
    if arguments.json and not arguments.output:
        raise CallerError("output_needed", "--json tells of the file that was written.", "Name it with -o FILE.")
    from mcp_compact.cli.raw_export import export

    return export(arguments)
