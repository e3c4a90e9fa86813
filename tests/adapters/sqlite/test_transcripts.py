"""Real sessions, stored piece by piece as hooks bring them, equal the pure model over the whole."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from mcp_compact.adapters.sqlite import operations
from mcp_compact.messages.message import Record
from mcp_compact.ports.store import Batch, NativeBoundary
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.native import expand_preserved, native_boundary, native_clearing, summary_of
from tests.adapters.sqlite.builders import KEY, prepared
from tests.adapters.sqlite.model import Model

PIECES = (1, 2, 5, 40, 400)


def main_records(path: Path) -> list[Record]:
    """The records of the session itself, its sub-agents left out."""
    reader = ClaudeCodeReader("test")
    found: list[Record] = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            raw = json.loads(line)
        except ValueError:
            continue
        found += [item.record for item in reader.feed(raw, line, number)]
    return [record for record in found if record.agent_id is None]


def pieces(records: Sequence[Record], chance: random.Random) -> Iterator[tuple[int, Sequence[Record]]]:
    at = 0
    while at < len(records):
        size = chance.choice(PIECES)
        yield at, records[at : at + size]
        at += size


def boundaries(records: Sequence[Record], start: int, piece: Sequence[Record]) -> Iterator[NativeBoundary]:
    """The client's own compactions in a piece; what they kept is looked up in all that came before."""
    for at, record in enumerate(piece, start):
        summary = summary_of(record, records[at + 1 :]) if record.subtype else None
        if (boundary := native_boundary(record, summary)) is not None:
            service = (boundary.service,) if boundary.service else ()
            yield NativeBoundary(boundary.uuid, service, expand_preserved(boundary, records[:at]))
        elif (clearing := native_clearing(record)) is not None:
            yield NativeBoundary(clearing.uuid, (), (), {}, clearing.tool_use_ids, micro=True)


def test_a_session_in_pieces_equals_the_model_of_the_whole(claude_code_files):
    chance = random.Random(20)
    compactions = 0
    for path in claude_code_files:
        conn, model = operations.connect(":memory:"), Model()
        records = main_records(path)
        for start, piece in pieces(records, chance):
            items = [prepared(record) for record in piece]
            natives = tuple(boundaries(records, start, piece))
            operations.append(conn, KEY, Batch(tuple(items), boundaries=natives), 1)
            known = set(model.uuids)
            for item in items:
                if item.record.uuid not in known:
                    model.add(item)
                    known.add(item.record.uuid)
            for native in natives:
                model.add_native(native)
        model.check(conn)
        if records:
            model.check_archive(conn)
        compactions += len(model.markers)
        conn.close()
    assert compactions > 2
