"""Session-memory compaction of a stored session, by the session's length.

    python tests/bench/compaction_flat.py [1000 100000]

Sessions of so many messages, their memory up to date; each is compacted and undone again and again, the
lengths in turn. Prints the median CPU milliseconds of a compaction (all threads) and the ratio of each
length to the first.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import anyio

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from mcp_compact.config import load_settings
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.service.jobs import CompactCall
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service

REPEATS = 25
BATCH = 2_000
WORDS = "read the parser and mend the offset of line {n} in src/module_{m}.py before the next release "


def message(number: int) -> dict[str, object]:
    """One message of a long conversation: a question, a call, its result, an answer."""
    text = WORDS.format(n=number, m=number % 97)
    match number % 4:
        case 0:
            return {"role": "user", "content": text}
        case 1:
            call = {
                "type": "tool_use",
                "id": f"t{number}",
                "name": "Read",
                "input": {"file_path": f"src/module_{number % 97}.py"},
            }
            return {"role": "assistant", "content": [call]}
        case 2:
            return {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": text * 12}],
            }
        case _:
            return {"role": "assistant", "content": [{"type": "text", "text": text * 2}]}


async def filled(service: Service, length: int) -> str:
    """A session of so many messages whose memory covers all but the newest 40."""
    session = f"length-{length}"
    uuids: list[str] = []
    for start in range(0, length, BATCH):
        items = [message(number) for number in range(start, min(start + BATCH, length))]
        uuids += (await service.append_messages(items, session)).uuids
    memory = "# Session memory\n\n## Task\n- " + "\n- ".join(WORDS.format(n=n, m=n) for n in range(120))
    await service.update_memory(session, memory, summarized_through=str(MessageUuid(uuids[-40])))
    return session


async def run(lengths: list[int], db: Path) -> None:
    """Fill, then measure in turn."""
    times: dict[int, list[float]] = {length: [] for length in lengths}
    async with open_service(replace(load_settings({}), db=db)) as service:
        sessions = {length: await filled(service, length) for length in lengths}
        for _ in range(REPEATS):
            for length, session in sessions.items():
                start = time.process_time()
                result = await service.compact(session, CompactCall(trigger="manual", force=True))
                times[length].append(time.process_time() - start)
                assert result.status == "compacted", result
                assert (await service.undo(session)).status == "undone"
    first = statistics.median(times[lengths[0]])
    for length in lengths:
        middle = statistics.median(times[length])
        print(f"{length:>9} messages  {middle * 1000:8.2f} ms CPU a compaction  ratio {middle / first:5.2f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, [int(n) for n in sys.argv[1:]] or [1_000, 100_000], Path(folder) / "archive.db")
