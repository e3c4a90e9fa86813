"""`mcp-compact serve`: the server that clients start, over stdin and stdout."""

from __future__ import annotations

import argparse


def run(arguments: argparse.Namespace) -> int:
    """Serve until stdin closes."""
    from mcp_compact.server.transports import serve

    return serve(profile=arguments.profile)
