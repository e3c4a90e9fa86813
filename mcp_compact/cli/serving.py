"""`mcp-compact serve`: the server that clients start, over stdin and stdout."""

from __future__ import annotations

import argparse
import gc


def run(arguments: argparse.Namespace) -> int:
    """Serve until stdin closes."""
    from mcp_compact.server.transports import serve

    code = serve(profile=arguments.profile)
    # Everything is closed. Collecting the garbage of so many modules takes longer than clients wait.
    gc.freeze()
    return code
