"""The numbers of the events that no condensation took out: small to state, however long a session is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence


class KeptEvents:
    """Numbers in the order in which they came, each once; held as runs, for events are numbered one after the other."""

    def __init__(self, stated: Iterable[int | Sequence[int]] = ()) -> None:
        # An older version stated each number by itself.
        self._runs = [[item, item] if isinstance(item, int) else list(item) for item in stated]
        """First and last number of each run."""
        self._highest = max((last for _, last in self._runs), default=-1)

    def __iter__(self) -> Iterator[int]:
        for first, last in self._runs:
            yield from range(first, last + 1)

    def add(self, number: int) -> None:
        """Take up a number, which mostly is the one after the last."""
        runs = self._runs
        if number > self._highest:
            self._highest = number
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
                return
        elif any(first <= number <= last for first, last in runs):
            return
        runs.append([number, number])

    def leave_out(self, is_gone: Callable[[int], bool]) -> None:
        """Forget the numbers that left."""
        kept = KeptEvents()
        for number in self:
            if not is_gone(number):
                kept.add(number)
        self._runs, self._highest = kept._runs, kept._highest

    def stated(self) -> list[list[int]]:
        """All of them as a JSON value."""
        return [list(run) for run in self._runs]
