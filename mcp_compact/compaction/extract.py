"""The extractor: what of a session its next work will need, inside a budget and without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_compact.compaction.extract_cover import cover
from mcp_compact.compaction.extract_lines import (
    ASSISTANT, CALL, CHANGED, COMMAND, EDIT, ERROR, FILE, FOUND, INJECTED, MEMORY, OUTPUT, READ, TODO, USER, Line, Passage, passages,
)  # fmt: skip
from mcp_compact.compaction.extract_score import gather, worth
from mcp_compact.messages.memory_document import (
    ERRORS, FILES, HEADINGS, REQUESTS, SYSTEM, TASK, WORKFLOW, WORKLOG, MemoryDocument, Section,
)  # fmt: skip
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import CountUnits
from mcp_compact.messages.words import standing_instructions, users_words

WEIGHTS = dict(bias=-0.5885, k_symbol=0.082, k_number=-0.393, k_hash=-0.704, k_code=-1.349, k_quoted=-0.19,
    logn=0.130, logment=0.091, lognN=0.264, lastmsg=-0.348, written=0.621, nwritten=0.087, lastw=0.270,
    n_user=1.171, l_edit=-0.447, n_output=-0.394, n_file=-0.122, l_file=0.118, n_found=-0.230, summ=0.626,
    len=0.822, len2=-0.165, single=-0.366)

SECTION_OF = {USER: REQUESTS, ASSISTANT: WORKLOG, COMMAND: WORKFLOW, OUTPUT: WORKFLOW, EDIT: FILES, READ: FILES, FILE: FILES,
    CHANGED: FILES, FOUND: SYSTEM, CALL: SYSTEM, TODO: TASK, ERROR: ERRORS, INJECTED: SYSTEM, MEMORY: WORKLOG}


@dataclass(frozen=True, slots=True)
class Material:
    """What the extractor works on; message records only, old to new."""

    records: tuple[Record, ...]
    """They leave the context."""
    kept: tuple[Record, ...] = ()
    """They stay behind them, unchanged."""
    previous: MemoryDocument | None = None
    summaries: tuple[str, ...] = ()


def extract(material: Material, budget_units: int, section_units: int | None, count: CountUnits) -> MemoryDocument:
    """The memory of this material; its rendered text costs at most `budget_units` by `count`."""
    records = (*material.records, *material.kept)
    cwd = next((r.raw["cwd"] for r in records if isinstance(r.raw.get("cwd"), str)), "")
    all_ = passages(records, cwd)
    kept_from = len(material.records)
    evidence = gather(all_, kept_from)
    chars = sum(len(line.text) + 1 for p in all_ for line in p.lines)
    value = worth(evidence, max(1, len(records)), chars, WEIGHTS)
    own = [p for p in all_ if p.order < kept_from]
    flat = [line.text for p in own for line in p.lines]
    units = list(count(flat))
    costs: list[list[int]] = []
    at = 0
    for p in own:
        costs.append(list(units[at:at + len(p.lines)]))
        at += len(p.lines)
    words = [w for r in material.records if (w := users_words(r))]
    must = [" ".join(w.split()) for w in words if len(w) <= 400]
    fixed = count(["\n".join(must)])[0] + 200 * 250
    room = budget_units - fixed
    per_line = count(["- \n"])[0]
    chosen = cover(own, value, costs, room, per_line, [1.0] * len(own), set())
    while True:
        doc = _render(own, chosen, must)
        if count([doc.render()])[0] <= budget_units or not chosen:
            return doc
        for x in sorted(chosen)[:max(1, len(chosen) // 50)]:
            chosen.discard(x)


def _render(own: Sequence[Passage], chosen: set[tuple[int, int]], must: Sequence[str]) -> MemoryDocument:
    by: dict[str, list[str]] = {}
    if must:
        by[REQUESTS] = [f"- {m}" for m in must]
    for k, p in enumerate(own):
        mine = [i for i in range(len(p.lines)) if (k, i) in chosen]
        runs: list[list[int]] = []
        for i in mine:
            if runs and runs[-1][-1] == i - 1:
                runs[-1].append(i)
            else:
                runs.append([i])
        out = by.setdefault(SECTION_OF[p.origin], [])
        for run in runs:
            text = []
            for j, i in enumerate(run):
                line = p.lines[i]
                text.append(f"{line.number}→{line.text}" if line.number else line.text)
            out.append("- " + " / ".join(text))
    return MemoryDocument(sections=tuple(Section(h, "\n".join(by[h])) for h in HEADINGS if by.get(h)))
