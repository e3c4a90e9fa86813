"""Write the records of a Claude Code transcript: envelopes, ids, times and usage."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from .workspace import ROOT

SEED = 417
MODEL = "claude-sonnet-4-5-20250929"
VERSION = "2.1.42"
BRANCH = "fix/dst-tables"
DAY = datetime(2026, 2, 18, 10, 36, 12, tzinfo=UTC)
SYSTEM_TOKENS = 18_000
TOKENS_PER_CHARACTER = 0.45
IMAGE_TOKENS = 1_400
CACHE_LIFE = timedelta(minutes=60)
DETAIL_CHARACTERS = 420
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"


class Transcript:
    """Collects lines; ``parent`` is the record the next one hangs off."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.parent: str | None = None
        self.now = DAY
        self.context = float(SYSTEM_TOKENS)
        self._ids = random.Random(SEED)  # noqa: S311  (must repeat, not be secret)
        self._times = random.Random(SEED + 1)  # noqa: S311
        self._cached = 0
        self._cached_at: datetime | None = None
        self.session = self.uuid()

    def uuid(self) -> str:
        """A version 4 UUID from the seeded source."""
        digits = f"{self._ids.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def code(self, prefix: str, length: int = 22) -> str:
        """An id of letters and digits, such as a message or a call has."""
        return prefix + "".join(_LETTERS[self._ids.getrandbits(16) % len(_LETTERS)] for _ in range(length))

    def signature(self, text: str) -> str:
        """A string of the shape of a thinking signature; longer for longer thoughts."""
        size = min(180, 60 + len(text) // 8)
        return base64.b64encode(self._ids.getrandbits(size * 8).to_bytes(size, "big")).decode()

    def wait(self, low: float, high: float) -> None:
        """Let between ``low`` and ``high`` seconds pass."""
        spent = low + (high - low) * self._times.random()
        self.now += timedelta(milliseconds=round(spent * 1000))

    def wait_until(self, clock: str) -> None:
        """Go on at ``clock`` (HH:MM, UTC), or now if it is already later."""
        hour, minute = (int(part) for part in clock.split(":"))
        wanted = self.now.replace(hour=hour, minute=minute, second=7, microsecond=0)
        self.now = max(self.now, wanted)
        self.wait(0.5, 20)

    def stamp(self) -> str:
        """The present moment as the records write it."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%S.") + f"{self.now.microsecond // 1000:03d}Z"

    def grow(self, text: str, images: int = 0) -> None:
        """Count text the model sees from now on."""
        self.context += len(text) * TOKENS_PER_CHARACTER + images * IMAGE_TOKENS

    def usage(self) -> dict[str, Any]:
        """Figures for a call made now; what was sent before is read from the cache."""
        fresh = self._cached_at is None or self.now - self._cached_at > CACHE_LIFE
        read = 14_823 if fresh else self._cached
        total = round(self.context)
        inputs = 3 + self._ids.getrandbits(3)
        created = max(total - read - inputs, 0)
        self._cached, self._cached_at = read + created, self.now
        return {
            "input_tokens": inputs,
            "cache_creation_input_tokens": created,
            "cache_read_input_tokens": read,
            "output_tokens": 1 + self._ids.getrandbits(5),
            "service_tier": "standard",
        }

    def rewind(self, context: float) -> None:
        """Return to an earlier size of the context, as a rewound prompt does."""
        self.context = context
        self._cached = min(self._cached, round(context))

    def bare(self, record: Mapping[str, Any]) -> None:
        """Append a record without envelope, as queue operations and snapshots are."""
        self.lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")))

    def add(
        self,
        kind: str,
        fields: Mapping[str, Any],
        parent: str | None,
        agent: str | None = None,
    ) -> str:
        """Append a record with envelope below ``parent`` and return its uuid."""
        own = self.uuid()
        record: dict[str, Any] = {
            "parentUuid": parent,
            "isSidechain": agent is not None,
            "userType": "external",
            "cwd": ROOT,
            "sessionId": self.session,
            "version": VERSION,
            "gitBranch": BRANCH,
        }
        if agent is not None:
            record["agentId"] = agent
        record |= {"type": kind, **fields, "uuid": own, "timestamp": self.stamp()}
        self.bare(record)
        return own


def fitting_detail(detail: object) -> dict[str, Any]:
    """The ``toolUseResult`` field, left out where the copy would be large."""
    if detail is None:
        return {}
    if len(json.dumps(detail, ensure_ascii=False)) > DETAIL_CHARACTERS:
        return {}
    return {"toolUseResult": detail}
