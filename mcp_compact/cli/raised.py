"""What was really raised: tasks wrap errors into groups."""

from __future__ import annotations


def cause_of(raised: BaseException) -> BaseException:
    """What was raised, taken out of the groups of one that tasks wrap around it."""
    while isinstance(raised, BaseExceptionGroup) and len(raised.exceptions) == 1:
        raised = raised.exceptions[0]
    return raised
