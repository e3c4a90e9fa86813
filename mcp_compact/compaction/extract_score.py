"""How likely the next work is to need a name again, judged by where and when it stood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_compact.compaction.extract_passages import EDIT, FILE, FOUND, MEMORY, OUTPUT, USER, WRITTEN, Passage
from mcp_compact.compaction.identifiers import CODE, HASH, NUMBER, QUOTED, SYMBOL

WEIGHTS = dict(bias=-0.5885, k_symbol=0.082, k_number=-0.393, k_hash=-0.704, k_code=-1.349, k_quoted=-0.19,
    logn=0.130, logment=0.091, lognN=0.264, lastmsg=-0.348, written=0.621, nwritten=0.087, lastw=0.270,
    n_user=1.171, l_edit=-0.447, n_output=-0.394, n_file=-0.122, l_file=0.118, n_found=-0.230, summ=0.626,
    len=0.822, len2=-0.165, single=-0.366)
NEVER_WRITTEN = 6.0
AGE_CHARS = 2000
FADE_CHARS = 16_000


@dataclass(slots=True)
class Evidence:
    """What is known of one name."""

    kind: str
    mentions: int = 0
    records: int = 0
    last_record: int = -2
    last_written_at: int = -1
    written: int = 0
    last_edit_at: int = -1
    last_file_at: int = -1
    by_origin: dict[str, int] = field(default_factory=dict)
    kept: bool = False


def gather(passages: Sequence[Passage], kept_from: int) -> tuple[dict[str, Evidence], int]:
    """Evidence of every name, and the length of it all in characters.

    Passages of records from `kept_from` on stay in the context.
    """
    found: dict[str, Evidence] = {}
    at = 0
    for passage in passages:
        origin, order = passage.origin, passage.order
        written = origin in WRITTEN
        for line in passage.lines:
            at += len(line.text) + 1
            for name, kind in line.names:
                own = found.get(name)
                if own is None:
                    own = found[name] = Evidence(kind)
                own.mentions += 1
                if written:
                    own.last_written_at = at
                if origin == EDIT:
                    own.last_edit_at = at
                elif origin == FILE:
                    own.last_file_at = at
                if order != own.last_record:
                    own.records += 1
                    own.last_record = order
                    own.written += written
                    own.by_origin[origin] = own.by_origin.get(origin, 0) + 1
                    if order >= kept_from:
                        own.kept = True
    return found, at


def worth(gathered: tuple[dict[str, Evidence], int], records: int) -> dict[str, float]:
    """Likelihood of being needed times rarity, for every name that does not stay in the context anyway."""
    evidence, total_chars = gathered
    total_records = max(1, records)
    w = WEIGHTS
    made: dict[str, float] = {}
    for name, own in evidence.items():
        if own.kept:
            made[name] = 0.0
            continue
        z = _score(name, own, total_records, total_chars, w)
        made[name] = math.log(1 + total_records / own.records) / (1 + math.exp(-z))
    return made


def _score(name: str, own: Evidence, total_records: int, total_chars: int, w: dict[str, float]) -> float:
    length = math.log(len(name))
    z = w["bias"] + w.get("k_" + own.kind, 0.0)
    z += w["logn"] * math.log(own.records) + w["lognN"] * math.log(own.records / total_records)
    z += w["logment"] * math.log(own.mentions) + w["single"] * (own.mentions == 1)
    z += w["lastmsg"] * math.log1p(max(0, total_records - 1 - own.last_record))
    if own.written:
        z += w["written"] + w["nwritten"] * math.log1p(own.written)
        z -= w["lastw"] * math.log1p((total_chars - own.last_written_at) / AGE_CHARS)
    else:
        z -= w["lastw"] * NEVER_WRITTEN
    z += w["len"] * length + w["len2"] * length * length
    for origin in (FILE, FOUND, OUTPUT, USER):
        number = own.by_origin.get(origin)
        if number:
            z += w["n_" + origin] * math.log1p(number)
    if own.last_edit_at >= 0:
        z += w["l_edit"] * math.exp((own.last_edit_at - total_chars) / FADE_CHARS)
    if own.last_file_at >= 0:
        z += w["l_file"] * math.exp((own.last_file_at - total_chars) / FADE_CHARS)
    if MEMORY in own.by_origin:
        z += w["summ"]
    return z
