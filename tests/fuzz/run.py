"""Fuzz for a while: `python tests/fuzz/run.py --seconds 600`. Keeps one of each kind of fault."""

from __future__ import annotations

import argparse
import faulthandler
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import anyio

from mcp_compact.transcripts.registry import FORMATS
from tests.fuzz import growing, importing, raw, tools, validating
from tests.fuzz.mutations import mutant
from tests.fuzz.samples import all_samples

MEMORY_BYTES = 4 << 30
"""Nothing that is tried takes a tenth of it; a call that needs more fails with MemoryError."""
SMALL = 20_000
"""Bytes of what may be spliced into a mutant."""
CALLS = 25
"""Tool calls on one archive."""
GROWTH_MB = 600
"""By how much the process may have grown at the end of a run: vocabulary, caches, the largest mutant."""


class Account:
    """What a run has seen: outcomes, and the faults, one of each kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outcomes: Counter[str] = Counter()
        self.faults: dict[str, str] = {}

    def fault(self, error: BaseException, case: str, data: bytes) -> None:
        """Keep a fault: its place, how to see it again, and what was given."""
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
        frames = [frame for frame in frames if "/tests/" not in frame.filename] or frames
        name = f"{type(error).__name__} at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
        if isinstance(error, AssertionError):
            name = f"{name} {str(error)[:60]!r}"
        self.outcomes["faults"] += 1
        if name not in self.faults:
            self.faults[name] = case
            path = self.folder / f"fault-{len(self.faults)}"
            path.write_bytes(data)
            sys.stdout.write(f"FAULT {name}: {case}; {path}\n")
            sys.stdout.flush()
            path.with_suffix(".txt").write_text("".join(traceback.format_exception(error)), encoding="utf-8")


async def imports(account: Account, seconds: float, seed: int, only: str) -> None:
    """Mutants of every format, one after the other; a fault begins a new archive."""
    found = {name: data for name, data in all_samples().items() if not only or name == only}
    pool = [data for of_one in all_samples().values() for data in of_one if len(data) < SMALL]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        async with importing.opened() as service:
            while time.monotonic() < end:
                seed += 1
                chance = Random(seed)
                name = chance.choice(sorted(found))
                data = mutant(chance, chance.choice(found[name]), pool)
                told = name if name in FORMATS and chance.random() < 0.3 else ""
                faulthandler.dump_traceback_later(importing.LONGEST_S * 2, exit=True)
                try:
                    outcome = await importing.check_import(service, data, chance, format_name=told)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
                    account.fault(error, f"--target imports --seed {seed - 1} ({name}, told {told!r})", data)
                    break
                account.outcomes[outcome.code or "stored"] += 1
                account.outcomes["records"] += outcome.records


async def calls(account: Account, seconds: float, seed: int, folder: Path) -> None:
    """Rows of tool calls; a fault begins a new server."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        async with tools.opened(folder) as bench:
            while time.monotonic() < end:
                seed += 1
                faulthandler.dump_traceback_later(importing.LONGEST_S * 2, exit=True)
                try:
                    counted = await tools.check_calls(bench, Random(seed), CALLS)
                except Exception as error:  # noqa: BLE001 - see above
                    account.fault(error, f"--target tools --seed {seed - 1}", bench.last.encode())
                    break
                account.outcomes.update(counted)


async def rules(account: Account, seconds: float, seed: int) -> None:
    """Lists of messages by the rules of every provider."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seed += 1
        messages = validating.mutant(Random(seed))
        try:
            validating.check_validation(messages)
        except Exception as error:  # noqa: BLE001 - see above
            account.fault(error, f"--target rules --seed {seed - 1}", repr(messages).encode("utf-8", "replace"))
        account.outcomes["lists"] += 1


async def exports(account: Account, seconds: float, seed: int, folder: Path) -> None:
    """Whole sessions in files."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        seed += 1
        data = raw.mutant(Random(seed))
        try:
            account.outcomes[raw.check_raw(data, folder) or "taken"] += 1
        except Exception as error:  # noqa: BLE001 - see above
            account.fault(error, f"--target exports --seed {seed - 1}", data)


async def growing_files(account: Account, seconds: float, seed: int, folder: Path) -> None:
    """Transcripts as they are, imported while they grow."""
    found = all_samples()
    end = time.monotonic() + seconds
    async with importing.opened() as service:
        while time.monotonic() < end:
            seed += 1
            chance = Random(seed)
            data = chance.choice(found[chance.choice(sorted(found))])
            try:
                await growing.check_growing(service, data, growing.cuts(chance, data), folder)
            except Exception as error:  # noqa: BLE001 - see above
                account.fault(error, f"--target growing --seed {seed - 1}", data)
                await importing.emptied(service)
            account.outcomes["grown"] += 1


def main() -> int:
    """Fuzz the targets, each for its share of the time; 1 where a fault was found, or memory was not given back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="where the row of seeds begins")
    parser.add_argument("--target", choices=(*SHARES, "all"), default="all")
    parser.add_argument("--format", default="", help="of the importers, only this one")
    parser.add_argument("--faults", type=Path, default=Path(), help="folder for what made a fault (default: here)")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    account = Account(args.faults)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        given: dict[str, tuple[Any, ...]] = {"imports": (args.format,), "rules": ()}
        for name, share in SHARES.items():
            if args.target in (name, "all"):
                seconds = args.seconds * (share if args.target == "all" else 1)
                anyio.run(TARGETS[name], account, seconds, args.seed, *given.get(name, (place,)))
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.write(f"{dict(account.outcomes)}\n")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    sys.stdout.write(f"memory: {grown} MB more than at the start; faults: {len(account.faults)} kinds\n")
    return int(grown > GROWTH_MB or bool(account.faults))


TARGETS: dict[str, Callable[..., Awaitable[None]]] = {
    "imports": imports,
    "tools": calls,
    "rules": rules,
    "exports": exports,
    "growing": growing_files,
}
SHARES = {"imports": 0.4, "tools": 0.3, "rules": 0.1, "exports": 0.1, "growing": 0.1}
"""Of the time, where everything is tried."""


if __name__ == "__main__":
    sys.exit(main())
