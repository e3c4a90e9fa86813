"""`mcp-compact doctor --deep`: a look at everything that the archive holds, and what to do where something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from mcp_compact.adapters.sqlite.operations.deep_checks import Depths, deep_check
from mcp_compact.cli.archive import opened
from mcp_compact.cli.finding import BROKEN, NOTE, OK, Finding
from mcp_compact.cli.import_progress import Progress
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import count
from mcp_compact.config import Settings
from mcp_compact.errors import CompactError
from mcp_compact.ports.store import SessionKey

LISTED = 5
RESCUE = (
    "Close your clients. `mcp-compact restore FILE` puts a backup back; `mcp-compact rescue` saves what can be read "
    "into a new file and says what is lost."
)
SLIGHT = "Nothing that was said is affected. `mcp-compact rescue` makes it right in a new file."
INDEX = "Messages are not affected, but searches may miss some. `mcp-compact rescue` makes a new file with a new index."


def deep_findings(settings: Settings) -> Iterator[Finding]:
    """A whole look, with a progress bar on stderr."""
    progress = Progress(terminal("stderr"), "{:,}".format)
    try:
        with closing(opened(settings)) as conn:
            found = deep_check(conn, progress)
    except CompactError as error:
        yield Finding("deep check", BROKEN, error.message, error.hint)
        return
    finally:
        progress.end()
    yield _structure(found)
    yield _bodies(found)
    yield _sessions(found)
    yield _index(found)


def _structure(found: Depths) -> Finding:
    faults = [*found.damage, *found.lost_references]
    if faults:
        return Finding("structure", BROKEN, _some(faults), RESCUE)
    return Finding("structure", OK, "every page and every reference is sound")


def _bodies(found: Depths) -> Finding:
    if found.wrong_bodies:
        named = [f"{_named(key)}record {seq} ({uuid})" for key, seq, uuid in found.wrong_bodies]
        said = f"{count(len(named), 'message')} not as stored: {_some(named)}"
        return Finding("messages", BROKEN, said, RESCUE)
    return Finding("messages", OK, f"{count(found.bodies, 'record')}, every byte as it was stored")


def _sessions(found: Depths) -> Finding:
    if found.wrong_contexts:
        named = [f"{_named(key)}{why}" for key, why in found.wrong_contexts]
        return Finding("contexts", BROKEN, _some(named), RESCUE)
    if found.wrong_totals:
        named = [_named(key).rstrip(": ") for key in found.wrong_totals]
        return Finding("contexts", NOTE, f"counters that are not the sum of their rows: {_some(named)}", SLIGHT)
    return Finding("contexts", OK, f"the live context of {count(found.sessions, 'session')} is valid and adds up")


def _index(found: Depths) -> Finding:
    if found.index:
        return Finding("search index", BROKEN, _some(found.index), INDEX)
    return Finding("search index", OK, "sound")


def _named(key: SessionKey) -> str:
    return f"session {key.session_id}: " if key.session_id else ""


def _some(items: list[str]) -> str:
    more = f"; and {len(items) - LISTED:,} more" if len(items) > LISTED else ""
    return "; ".join(items[:LISTED]) + more
