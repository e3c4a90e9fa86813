"""A transcript read once, and what of it goes out: whole and compacted, in every format that a provider takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_compact.compaction.request import CompactRequest
from mcp_compact.messages.live import LiveContext, live_context
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import Family, estimate_units
from mcp_compact.service.offline import Offline, compact_records, encode, native_markers
from mcp_compact.transcripts.outs import OUTS
from mcp_compact.transcripts.registry import detect_format
from tests.transcripts.foreign import records

OF_PROVIDERS = tuple(out for out in OUTS.values() if out.provider)
HOW = Offline(Family("estimate", 1000, 0, 0), lambda texts: [estimate_units(text) for text in texts], slices=False)


def files(shared: Path) -> list[Path]:
    """The transcripts of the shared folder, those of a benchmark left out, whose format others show."""
    found = sorted((shared / "transcripts").glob("*/*.json*"))
    return [file for file in found if file.parent.name != "recall"]


def conversations(file: Path) -> Iterator[bytes]:
    """The conversations of a file: one, or one a line."""
    data = file.read_bytes()
    if file.parent.name == "openai-chat":
        yield from data.splitlines()
    else:
        yield data


def dialogue(data: bytes, format_name: str = "") -> list[Record]:
    """The records of a transcript's own session; none where it holds no message."""
    found = records(format_name or detect_format(data), data)
    main = [record for record in found if record.agent_id is None] or found
    return main if any(record.is_message for record in main) else []


def context(found: list[Record], target_tokens: int | None = None) -> LiveContext:
    """The live context of a session, compacted to a target where one is given."""
    if target_tokens is not None:
        request = CompactRequest("manual", target_tokens=target_tokens, force=True)
        return compact_records(found, request, HOW)[0]
    numbered = [replace(record, seq=at) for at, record in enumerate(found, 1)]
    return live_context(numbered, native_markers(numbered))


def sent(found: list[Record], name: str, target_tokens: int | None = None) -> list[dict[str, Any]]:
    """The messages of a session in a format."""
    return encode(context(found, target_tokens), name, found)[0]


def all_sent(found: list[Record], target_tokens: int | None = None) -> dict[str, list[dict[str, Any]]]:
    """The same in the format of each provider."""
    live = context(found, target_tokens)
    return {out.provider: encode(live, out.name, found)[0] for out in OF_PROVIDERS}


def tokens_of(found: list[Record]) -> int:
    """The tokens of a session's context, by estimate."""
    return compact_records(found, CompactRequest("manual", target_tokens=10**9, force=True), HOW)[1].tokens_before
