"""Fuzz the readers guided by coverage: `python tests/fuzz/guided.py -max_total_time=600` (needs `pip install atheris`).

Mutants are those of `mutations`; what reaches new code is kept and mutated further. Arguments are libFuzzer's own.
A fault ends the run with its input in a file `crash-...`; `python tests/fuzz/guided.py crash-...` shows it again.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

with atheris.instrument_imports(include=["mcp_compact.transcripts", "mcp_compact.messages"]):
    from mcp_compact.transcripts.registry import FORMATS, reader_for
    from tests.fuzz.mutations import mutant
    from tests.fuzz.reading import check_reading
    from tests.fuzz.samples import all_samples

    # Readers are loaded when they are first needed: here all of them, to be watched.
    for name in FORMATS:
        reader_for(name, "")

POOL = [data for of_one in all_samples().values() for data in of_one if len(data) < 20_000]


def change(data: bytes, max_size: int, seed: int) -> bytes:
    """The next input of one that was kept: by structure where it has one."""
    return mutant(Random(seed), data, POOL)[:max_size]


def main() -> None:
    """Begin with the samples, and go on until the time is over or a fault is found."""
    with TemporaryDirectory() as folder:
        for number, data in enumerate(POOL):
            Path(folder, str(number)).write_bytes(data)
        given = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
        corpus = [] if given else [folder]
        atheris.Setup([*sys.argv, "-max_len=30000", "-timeout=60", *corpus], check_reading, custom_mutator=change)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
