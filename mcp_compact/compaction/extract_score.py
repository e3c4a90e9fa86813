"""How likely the next work is to need a name again, judged by where and when it stood."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_compact.compaction.extract_passages import CALLS, EDIT, FILE, FOUND, MEMORY, OUTPUT, USER, WRITTEN, Passage

WEIGHTS = dict(bias=0.098, k_hash=-0.752, k_number=-0.5, k_code=-0.846, k_quoted=-0.24, k_symbol=0.004, logn=0.154,
    lognN=0.286, logment=0.092, lastmsg=-0.295, lastw=0.342, written=0.363, nwritten=0.021, len=0.641, len2=-0.136,
    single=-0.42, summ=0.74, n_file=-0.275, n_found=-0.196, n_output=-0.4, n_user=1.279, l_edit=-0.55, l_file=0.69)
GAMMA = 1.0
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
    apart: bool = False
    """Did it stand anywhere but at the start of a line of a call?"""


def gather(passages: Sequence[Passage], kept_from: int) -> tuple[dict[str, Evidence], int]:
    """Evidence of every name, and the length of it all in characters.

    Passages of records from `kept_from` on stay in the context.
    """
    found: dict[str, Evidence] = {}
    at = 0
    for passage in passages:
        origin, order = passage.origin, passage.order
        written = origin in WRITTEN
        in_call = origin in CALLS
        for line in passage.lines:
            at += len(line.text) + 1
            for name, kind in line.names:
                own = found.get(name)
                if own is None:
                    own = found[name] = Evidence(kind)
                own.mentions += 1
                if not in_call or not line.text.startswith(name):
                    own.apart = True
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


def glued(evidence: dict[str, Evidence]) -> frozenset[str]:
    """Names that only ever stood at the start of a line of a call.

    In a stored call the line break before them is the letter n of an escape, so a search of the
    transcript for the name does not find it: such a line cannot be checked, and is not quoted.
    """
    return frozenset(name for name, own in evidence.items() if not own.apart)


def worth(evidence: dict[str, Evidence], records: int, total_chars: int) -> dict[str, float]:
    """Likelihood of being needed times rarity, for every name that does not stay in the context anyway."""
    total_records = max(1, records)
    w = WEIGHTS
    made: dict[str, float] = {}
    for name, own in evidence.items():
        if own.kept:
            made[name] = 0.0
            continue
        z = _score(name, own, total_records, total_chars, w)
        made[name] = math.log(1 + total_records / own.records) / (1 + math.exp(-z))**GAMMA
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
