"""mcp-compact: lets a coding agent work past its context window without forgetting what matters."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_compact.library import Counting as Counting
    from mcp_compact.library import Report as Report
    from mcp_compact.library import compact as compact
    from mcp_compact.library import compact_transcript as compact_transcript
    from mcp_compact.service.paging import joined as joined
    from mcp_compact.wiring import open_service as open_service

__version__ = "0.1.0"

_WHERE = {
    "Counting": "mcp_compact.library",
    "Report": "mcp_compact.library",
    "compact": "mcp_compact.library",
    "compact_transcript": "mcp_compact.library",
    "joined": "mcp_compact.service.paging",
    "open_service": "mcp_compact.wiring",
}
__all__ = ["Counting", "Report", "__version__", "compact", "compact_transcript", "joined", "open_service"]


def __getattr__(name: str) -> object:
    """The library's names, imported on first use so that `import mcp_compact` costs nothing."""
    if name not in _WHERE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_WHERE[name]), name)
