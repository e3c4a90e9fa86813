"""The clock and the source of identifiers of this machine: the one place that reads them."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

NS_IN_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The system's time, and random uuids."""

    def now_ms(self) -> int:
        """Milliseconds since 1970."""
        return time.time_ns() // NS_IN_MS

    def new_uuid(self) -> str:
        """A fresh random uuid."""
        return str(uuid.uuid4())
