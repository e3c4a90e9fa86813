"""What counting costs: loading, ordinary text with and without the guard, and the worst texts.

`python tests/bench/tokenizer_speed.py` prints CPU seconds (not wall seconds: other programs
may run). The ordinary text is the source of Python's own library, in texts of 4,000 characters.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp_compact.adapters.tokenizers import O200kTokenizer, ranks

TEXT_CHARS = 4_000
TOTAL_CHARS = 3_000_000
REPEATS = 9
MILLION = 1_000_000


def cpu(action: Callable[[], object]) -> float:
    """CPU seconds of this process that an action takes."""
    started = process_time()
    action()
    return process_time() - started


def ordinary_texts() -> list[str]:
    """Source text of the standard library, the same on each run of one Python."""
    whole = ""
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        whole += path.read_text(encoding="utf-8")
        if len(whole) >= TOTAL_CHARS:
            break
    return [whole[start : start + TEXT_CHARS] for start in range(0, min(len(whole), TOTAL_CHARS), TEXT_CHARS)]


def worst_texts() -> dict[str, str]:
    """Texts of a million characters that are hard on an encoder, and some larger ones."""
    letters = random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=MILLION)
    same = {"spaces": " ", "a": "a", "_": "_", "^": "^", "newlines": "\n", "tabs": "\t", "CJK": "中", "dots": "."}
    texts = {f"1 M {name}": unit * MILLION for name, unit in same.items()}
    texts["1 M emoji joined"] = "👩\u200d👧\u200d" * (MILLION // 4)
    texts["1 M random letters"] = "".join(letters)
    texts["4 M spaces"] = " " * 4 * MILLION
    texts["20 M code (sampled)"] = "for row in rows: total += row.size\n" * (20 * MILLION // 35)
    return texts


def memory_mb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_load() -> O200kTokenizer:
    """Loads once in this process, for the memory, and prints what each step costs."""
    code = (
        "import time; t = time.process_time(); import mcp_compact.adapters.tokenizers; print(time.process_time() - t)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    before = memory_mb()
    tokenizer = O200kTokenizer()
    whole = cpu(tokenizer.warm)
    after = memory_mb()
    parse = statistics.median(cpu(lambda: ranks.read_ranks(ranks.DATA_FILE)) for _ in range(5))
    print(f"import      {float(done.stdout):6.3f} s CPU, without tiktoken")
    print(
        f"load        {whole:6.3f} s CPU, +{after - before:.0f} MB peak ({tokenizer.state}, {tokenizer.reason or 'no error'})"
    )
    print(f"  of it     {parse:6.3f} s to unpack, check and parse the vocabulary")
    return tokenizer


def print_throughput(tokenizer: O200kTokenizer) -> None:
    """Guarded against raw counting, alternating so that a slow moment hits both."""
    texts = ordinary_texts()
    encode = ranks.load_encoding().encode_ordinary
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    raw, guarded = [], []
    for _ in range(REPEATS):
        raw.append(cpu(lambda: [len(encode(text)) for text in texts]))
        guarded.append(cpu(lambda: tokenizer.count(texts)))
    ratio = statistics.median(one / other for one, other in zip(raw, guarded, strict=True))
    print(
        f"raw         {megabytes / statistics.median(raw):6.2f} MB per CPU second, {len(texts)} texts of {TEXT_CHARS} characters"
    )
    print(f"guarded     {megabytes / statistics.median(guarded):6.2f} MB per CPU second")
    print(f"throughput  {ratio:6.3f} of raw (median of {REPEATS} alternated repeats; the goal is 0.9)")


def main() -> None:
    """Prints all figures."""
    tokenizer = print_load()
    print_throughput(tokenizer)
    for name, text in worst_texts().items():
        seconds = cpu(lambda text=text: tokenizer.count([text]))  # type: ignore[misc]
        print(f"{name:22} {seconds:6.3f} s CPU, {tokenizer.count([text])[0]:,} tokens")


if __name__ == "__main__":
    main()
