"""What our text adds to a client's own summary, at the real compactions of recorded sessions.

    python tests/bench/native_injection.py [--json] [TRANSCRIPTS; default: all of the test data]

At each compaction the client's own summary stands in the transcript. It is scored by the recall benchmark's own
functions: alone; with the text that our hook gives after the compaction, made before the summary is known; and with
what the hook adds once it is known. The benchmark and its transcripts are looked for where the tests look for their
data (see CONTRIBUTING.md).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mcp_compact.compaction.extract import Material
from mcp_compact.compaction.injection import (
    REFINED_CHARS,
    files_put_back,
    injection_facts,
    injection_text,
    recent_tokens,
    refinement_facts,
)
from mcp_compact.compaction.notes import updated_memory
from mcp_compact.compaction.policy import MemoryPolicy
from mcp_compact.compaction.rules import rules_of
from mcp_compact.messages.message import Record
from mcp_compact.messages.weights import Weight, estimate_all, family_of
from mcp_compact.service.compactions import NativeCompaction, native_compactions
from mcp_compact.service.prepare import prepare
from mcp_compact.transcripts.claude_code import ClaudeCodeReader
from mcp_compact.transcripts.lines import read_lines

FIGURES = ("frr_ctx", "frr", "frr_far", "instr", "instr_session", "novel")
SUMMARY, BEFORE, AFTER = "summary alone", "with our text", "and once it is known"
FUTURE, FAR, LEAST = 50, 10_000, 30_000
"""The benchmark's defaults: messages that tell what was needed, tokens that are far, least size of a history."""


def shared_folder() -> Path:
    return Path(os.environ.get("MCP_COMPACT_SHARED") or ROOT.parent / "shared")


def benchmark() -> ModuleType:
    """The recall benchmark as a module. Ends the program where it is not there."""
    script = shared_folder() / "bench" / "recall.py"
    if not script.is_file():
        raise SystemExit(f"there is no recall benchmark at {script}; see CONTRIBUTING.md, test data")
    spec = importlib.util.spec_from_file_location("recall", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["recall"] = module
    spec.loader.exec_module(module)
    return module


def records_of(path: Path) -> list[Record]:
    """The session's own records, as the product reads them."""
    reader = ClaudeCodeReader(path.name)
    with path.open("rb") as stream:
        return [parsed.record for parsed in reader.read(read_lines(stream)) if parsed.agent_id is None]


def texts_for(compaction: NativeCompaction, session_id: str) -> tuple[str, str]:
    """What the hook gives right after the compaction, and what it adds once it has seen the summary."""
    rules, material = rules_of(compaction.session), material_of(compaction)
    put_back = files_put_back(compaction.material.records)
    first = injection_text(injection_facts(rules, material, session_id=session_id, restored=put_back))
    left_out = refinement_facts(rules, material, session_id, compaction.summary, first)
    return first, injection_text(left_out, REFINED_CHARS)


def material_of(compaction: NativeCompaction) -> Material:
    """As the hook has it: the memory of everything, and the newest part whole."""
    everything, limits = compaction.material, MemoryPolicy()
    family = family_of("claude-sonnet-4-5")
    units, section = family.units(limits.total_tokens), family.units(limits.section_tokens)
    memory = updated_memory(None, everything, units, section, estimate_all)
    sizes = [item.weight.units for item in prepare(everything.records, None, with_content_hash=False)]
    left = family.units(recent_tokens(family.tokens(Weight(sum(sizes)))))
    at = len(sizes)
    while at and left > 0:
        at -= 1
        left -= sizes[at]
    return Material(everything.records[at:], previous=memory)


def rows_of(recall: ModuleType, path: Path, background: Any) -> list[dict[str, Any]]:
    """The scores at each compaction of one transcript."""
    messages = recall.load(str(path))
    found = {compaction.uuid: compaction for compaction in native_compactions(records_of(path))}
    rows = []
    for cut in recall.cuts(messages, "boundary", FUTURE, LEAST):
        case = recall.Cut(messages, cut, background, FAR)
        if case.weight <= 0:
            continue
        first, second = texts_for(found[messages[cut["at"]]["uuid"]], path.stem)
        given = {SUMMARY: [], BEFORE: [first], AFTER: [first, second]}
        for method, texts in given.items():
            post = [cut["summary"], *(recall.text_msg(text) for text in texts)]
            chars = sum(map(len, texts))
            score = case.score(post)
            rows.append({"file": path.stem, "at": cut["at"], "method": method, "chars": chars, **score})
        large = case.pre_tokens >= 2 * rows[-3]["tokens"]
        for row in rows[-3:]:
            row["counted"] = large
    return rows


def mean(rows: Sequence[dict[str, Any]], key: str) -> float | None:
    values = [row[key] for row in rows if row[key] is not None]
    return round(sum(values) / len(values), 4) if values else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    recall = benchmark()
    shared = shared_folder()
    everything = sorted([*shared.glob("transcripts/recall/*.jsonl"), *shared.glob("transcripts/claude-code/*.jsonl")])
    background = recall.background([str(path) for path in everything])
    rows = [row for path in arguments.files or everything for row in rows_of(recall, path, background)]
    table = {
        method: {key: mean([row for row in rows if row["method"] == method], key) for key in (*FIGURES, "chars")}
        for method in (SUMMARY, BEFORE, AFTER)
    }
    if arguments.json:
        print(json.dumps({"cuts": len(rows) // 3, "table": table, "rows": rows}, indent=1, default=list))
        return 0
    print(f"# {len(rows) // 3} compactions")
    print("| | " + " | ".join((*FIGURES, "characters")) + " |\n|" + "---|" * (len(FIGURES) + 2))
    for method, figures in table.items():
        cells = (
            "-" if value is None else f"{value:.0f}" if value > 1 else f"{value:.3f}" for value in figures.values()
        )
        print(f"| {method} | " + " | ".join(cells) + " |")
    counted = [row for row in rows if row["counted"]]
    shares = ", ".join(f"{mean([r for r in counted if r['method'] == method], 'frr_ctx')}" for method in table)
    print(f"frr_ctx of the {len(counted) // 3} that the benchmark counts (history of two summaries or more): {shares}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
