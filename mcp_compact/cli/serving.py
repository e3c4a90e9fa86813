"""`mcp-compact serve`: the server that clients start, over stdin and stdout; or one for many, on a network."""

from __future__ import annotations

import argparse
import gc
from dataclasses import replace


def run(arguments: argparse.Namespace) -> int:
    """Serve until stdin closes; on a network until told to stop."""
    # What modules are made of is no garbage: looking for some in it takes an eighth of the start.
    gc.disable()
    from mcp_compact.config import load_settings
    from mcp_compact.errors import CallerError
    from mcp_compact.server.transports import serve

    gc.freeze()
    gc.enable()
    given = {"host": arguments.host, "port": arguments.port}
    if arguments.transport == "stdio" and any(value is not None for value in given.values()):
        raise CallerError(
            "needs_network",
            "--host and --port are for a network; this is stdio.",
            "Add --transport http, or leave them out.",
        )
    settings = load_settings()
    http = replace(settings.http, **{name: value for name, value in given.items() if value is not None})
    code = serve(
        arguments.transport,
        profile=arguments.profile,
        settings=replace(settings, http=http),
        is_stateless=arguments.stateless,
    )
    # Everything is closed. Collecting the garbage of so many modules takes longer than clients wait.
    gc.freeze()
    return code
