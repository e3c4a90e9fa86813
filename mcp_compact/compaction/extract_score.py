"""How likely the next work is to need a name again, judged by where and when it stood.

A logistic model over a few features of a name. Its weights were fitted offline to real coding
sessions: every name of the history at 144 cuts, labelled by whether the assistant or the user
wrote it in the 50 messages after the cut. Average precision is 0.26 on the sessions it was fitted
to and 0.24 on sessions it was not (seven folds). Fitted to either half of the sessions, the
memories of the other half hold as much of what was needed as with the weights below.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp_compact.compaction.extract_passages import (
    ASSISTANT,
    CALL,
    CALLS,
    COMMAND,
    EDIT,
    FILE,
    FOUND,
    MEMORY,
    OUTPUT,
    PASTED,
    READ,
    TODO,
    USER,
    WRITTEN,
    Passage,
)
from mcp_compact.compaction.identifiers import CODE, HASH, NUMBER, QUOTED, SYMBOL

BIAS = -0.251
OF_KIND = {HASH: -0.768, NUMBER: -0.543, CODE: -0.825, QUOTED: -0.225, SYMBOL: 0.013}
OF_ORIGIN = {
    USER: 1.257, ASSISTANT: 0.127, EDIT: 0.031, COMMAND: 0.118, READ: 0.357, TODO: 0.46, CALL: 0.147,
    FILE: -0.162, PASTED: 0.8, FOUND: -0.209, OUTPUT: -0.458, MEMORY: 0.2,
}  # fmt: skip
"""For ln(1 + records of this origin that hold the name)."""
RECORDS, RECORDS_SHARE, MENTIONS, SINGLE = -0.029, 0.334, 0.08, -0.408
"""For ln(records), ln(records / all records), ln(mentions), and a single mention."""
LAST_RECORD, FIRST_RECORD, LAST_PLACE = -0.245, 0.065, -0.245
"""For ln(1 + records since the last, the first mention), ln(1 + characters since the last / `AGE_CHARS`)."""
WRITTEN_EVER, WRITTEN_RECORDS, WRITTEN_LAST = 0.839, -0.105, -0.182
"""For being written by a person or the model, ln(1 + such records), ln(1 + characters since then / `AGE_CHARS`)."""
NEVER_WRITTEN_AGE = 6.0
LENGTH, LENGTH_SQUARED = 0.633, -0.136
"""For ln(characters) and its square: names of about ten characters come back most."""
EDIT_FADE, FILE_FADE = -0.371, 0.303
"""For exp(-characters since the last edit, the last file text / `FADE_CHARS`)."""
AGE_CHARS = 2000
FADE_CHARS = 16_000


@dataclass(slots=True)
class Evidence:
    """What is known of one name."""

    kind: str
    first_record: int
    mentions: int = 0
    records: int = 0
    last_record: int = -2
    last_at: int = 0
    """Characters before the end of the line of the last mention."""
    written: int = 0
    """Records in which a person or the model wrote it."""
    last_at_of: dict[str, int] = field(default_factory=dict)
    """By origin, as `last_at`."""
    records_of: dict[str, int] = field(default_factory=dict)
    kept: bool = False
    """Does it stand in a record that stays in the context?"""
    apart: bool = False
    """Did it stand anywhere but at the start of a line of a call?"""


def gather(passages: Sequence[Passage]) -> tuple[dict[str, Evidence], int]:
    """Evidence of every name, and the length of it all in characters."""
    found: dict[str, Evidence] = {}
    at = 0
    for passage in passages:
        in_call = passage.origin in CALLS
        for line in passage.lines:
            at += len(line.text) + 1
            for name, kind in line.names:
                own = found.get(name)
                if own is None:
                    own = found[name] = Evidence(kind, passage.order)
                own.mentions += 1
                own.last_at = own.last_at_of[passage.origin] = at
                if not in_call or not line.text.startswith(name):
                    own.apart = True
                own.kept = own.kept or passage.stays
                if passage.order != own.last_record:
                    _note_record(own, passage)
    return found, at


def _note_record(own: Evidence, passage: Passage) -> None:
    own.records += 1
    own.last_record = passage.order
    own.written += passage.origin in WRITTEN
    own.records_of[passage.origin] = own.records_of.get(passage.origin, 0) + 1


def glued(evidence: Mapping[str, Evidence]) -> frozenset[str]:
    """Names that only ever stood at the start of a line of a call.

    In a stored call the line break before them is the letter n of an escape, so a search of the
    transcript for the name does not find it: such a line cannot be checked, and is not quoted.
    """
    return frozenset(name for name, own in evidence.items() if not own.apart)


def worth(evidence: Mapping[str, Evidence], records: int, chars: int) -> dict[str, float]:
    """Likelihood of being needed times rarity; nothing for a name that stays in the context anyway."""
    total = max(1, records)
    return {
        name: 0.0 if own.kept else math.log(1 + total / own.records) / (1 + math.exp(-_score(name, own, total, chars)))
        for name, own in evidence.items()
    }


def _score(name: str, own: Evidence, total: int, chars: int) -> float:
    length = math.log(len(name))
    return (
        BIAS
        + OF_KIND.get(own.kind, 0.0)
        + LENGTH * length
        + LENGTH_SQUARED * length * length
        + SINGLE * (own.mentions == 1)
        + MENTIONS * math.log(own.mentions)
        + RECORDS * math.log(own.records)
        + RECORDS_SHARE * math.log(own.records / total)
        + sum(OF_ORIGIN.get(origin, 0.0) * math.log1p(number) for origin, number in own.records_of.items())
        + _recency(own, total, chars)
    )


def _recency(own: Evidence, total: int, chars: int) -> float:
    score = LAST_RECORD * math.log1p(max(0, total - 1 - own.last_record))
    score += FIRST_RECORD * math.log1p(max(0, total - 1 - own.first_record))
    score += LAST_PLACE * math.log1p((chars - own.last_at) / AGE_CHARS)
    if own.written:
        last = max(at for origin, at in own.last_at_of.items() if origin in WRITTEN)
        score += WRITTEN_EVER + WRITTEN_RECORDS * math.log1p(own.written)
        score += WRITTEN_LAST * math.log1p((chars - last) / AGE_CHARS)
    else:
        score += WRITTEN_LAST * NEVER_WRITTEN_AGE
    for origin, weight in ((EDIT, EDIT_FADE), (FILE, FILE_FADE)):
        if origin in own.last_at_of:
            score += weight * math.exp((own.last_at_of[origin] - chars) / FADE_CHARS)
    return score
