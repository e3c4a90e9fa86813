"""Group the blocks of the story into assistant messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .story import CALLS, Block


@dataclass(slots=True)
class Step:
    """A block of an assistant message with its recorded output and a sub-agent's blocks."""

    block: Block
    out: Block | None = None
    side: list[Block] = field(default_factory=list)


def group(blocks: list[Block]) -> Iterator[list[Step] | Block]:
    """Yield messages (lists of steps) and the blocks between them in order.

    A message ends at a block that is not the assistant's, at words after a call, and at a
    call after a call unless it is marked as parallel.
    """
    steps: list[Step] = []
    for block in blocks:
        if block.side:
            steps[-1].side.append(block)
        elif block.kind == "out":
            steps[-1].out = block
        elif block.kind in CALLS or block.kind in ("think", "say"):
            called = bool(steps) and steps[-1].block.kind in CALLS
            if called and not block.parallel:
                yield steps
                steps = []
            steps.append(Step(block))
        else:
            if steps:
                yield steps
                steps = []
            yield block
    if steps:
        yield steps
