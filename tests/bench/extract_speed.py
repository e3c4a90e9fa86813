"""What the extractor costs: all of a long session at once, and an update after 5,000 new tokens.

    python tests/bench/extract_speed.py

CPU time, the best of three. Beside it, one pass of the recall benchmark's own patterns for identifiers over the same
text, which is what any judge of identifiers must spend at least. The sessions are looked for where the tests look
for their data (see CONTRIBUTING.md).
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mcp_compact.compaction import extract_lines, extract_requests, identifiers
from mcp_compact.compaction.extract import Material, extract
from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.memory_document import parse
from mcp_compact.messages.message import Record

STORED_TOKENS, NEW_TOKENS = 70_000, 5_000
MEMORY_TOKENS, SECTION_TOKENS = 12_000, 2_000
TIMES = 3


def main() -> int:
    """0, or 2 where the test data is not at hand."""
    shared = Path(os.environ.get("MCP_COMPACT_SHARED") or ROOT.parent / "shared")
    if not (shared / "bench" / "recall.py").is_file():
        print(f"there is no recall benchmark in {shared}; see CONTRIBUTING.md, test data", file=sys.stderr)
        return 2
    judge = benchmark(shared / "bench" / "recall.py")
    rows = []
    for path in sorted(shared.glob("transcripts/recall/*.jsonl")):
        messages = [m for m in judge.load(str(path)) if not judge.is_boundary(m) and not m.get("isCompactSummary")]
        stored = upto(messages, judge.mtok, STORED_TOKENS)
        if stored is not None:
            rows.append((path.stem, *measured(judge, stored)))
    print(
        "| session | extractor, 70,000 tokens | one pass of patterns | times | update, 5,000 tokens |\n|---|---|---|---|---|"
    )
    for name, whole, one_pass, update in rows:
        print(
            f"| {name} | {whole * 1000:.0f} ms | {one_pass * 1000:.0f} ms | {whole / one_pass:.2f} | {update * 1000:.0f} ms |"
        )
    return 0


def measured(judge: ModuleType, messages: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """Seconds of CPU: the whole session, one pass of the patterns, the update after its last 5,000 tokens."""
    texts = [judge.render(message) for message in messages]
    records = [record_of(message) for message in messages]
    whole = best(lambda: made(Material(tuple(records))))
    one_pass = best(lambda: [judge.idents(text) for text in texts])
    first, tokens = len(messages), 0
    while first and tokens < NEW_TOKENS:
        first -= 1
        tokens += judge.mtok(messages[first])
    update = min(update_time(records[:first], records[first:]) for _ in range(TIMES))
    return whole, one_pass, update


def update_time(old: Sequence[Record], new: Sequence[Record]) -> float:
    """Of an update in a process that has read the session so far, and nothing of what is new."""
    forget()
    before = parse(made(Material(tuple(old))))
    start = time.process_time()
    made(Material(tuple(new), previous=before))
    return time.process_time() - start


def made(material: Material) -> str:
    """The memory with the limits of one that lasts."""
    return extract(material, MEMORY_TOKENS * 1000, SECTION_TOKENS * 1000, count).render()


def best(run: Callable[[], object]) -> float:
    """The shortest of some runs, nothing remembered from one to the next."""
    times = []
    for _ in range(TIMES):
        forget()
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def forget() -> None:
    """As in a process that starts: no token is known, no line, no user's words."""
    identifiers._known.clear()
    extract_lines.known_lines.cache_clear()
    extract_requests._not_in_force.cache_clear()


def upto(messages: Sequence[dict[str, Any]], tokens: Callable[[dict[str, Any]], int], most: int) -> list[Any] | None:
    """The first messages that make up so many tokens; None where there are fewer."""
    total = 0
    for at, message in enumerate(messages):
        total += tokens(message)
        if total >= most:
            return list(messages[: at + 1])
    return None


def count(texts: Sequence[str]) -> list[int]:
    """Four characters a token, in thousandths."""
    return [len(text) * 250 for text in texts]


def record_of(raw: dict[str, Any]) -> Record:
    """A message as the algorithms see it."""
    body, message = json.dumps(raw).encode(), decode_message(raw["message"], raw["type"])
    return Record(
        MessageUuid(str(raw.get("uuid", ""))), raw["type"], body, raw, message, is_meta=bool(raw.get("isMeta"))
    )


def benchmark(path: Path) -> ModuleType:
    """The recall benchmark as a module."""
    spec = importlib.util.spec_from_file_location("recall", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} cannot be read as a module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    raise SystemExit(main())
