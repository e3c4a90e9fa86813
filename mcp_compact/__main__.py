"""`python -m mcp_compact`: the same as the command `mcp-compact`."""

from __future__ import annotations

if __name__ == "__main__":
    from mcp_compact.cli.main import main

    raise SystemExit(main())
