"""The command `mcp-compact`, also as `python -m mcp_compact`. Hooks and the status line go a short way of their own."""

from __future__ import annotations

import sys


def main() -> int:
    """Run a command; the exit code. The parser of the command line would cost a hook more than its work."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv[2:]):
        from mcp_compact.hook import main as hook

        return hook(sys.argv[2:])
    if sys.argv[1:] == ["statusline"]:
        from mcp_compact.cli.statusline import run

        return run()
    from mcp_compact.cli.main import main as command

    return command()


if __name__ == "__main__":
    raise SystemExit(main())
