"""`mcp-compact hook`: for clients to start. It goes its own, short way before the command line is parsed.

Here it arrives only where another option stood before it.
"""

from __future__ import annotations

import argparse


def run(arguments: argparse.Namespace) -> int:
    """Handle an event."""
    from mcp_compact import hook

    return hook.main([*([arguments.event] if arguments.event else []), "--client", arguments.client])
