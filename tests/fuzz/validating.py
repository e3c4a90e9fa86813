"""What must hold of any list that is checked by a provider's rules: findings, and a repair that mends what it says."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from mcp_compact.errors import CallerError
from mcp_compact.service.validating import listed, validation
from mcp_compact.transcripts.validity.providers import PROVIDERS
from tests.fuzz.mutations import mutated_value


def check_validation(chance: Random, messages: Any, others: list[Any]) -> None:
    """A mutant of a list of messages, by the rules of each provider. Raises AssertionError, or what a defect raises."""
    for _ in range(chance.randint(0, 4)):
        messages = mutated_value(chance, messages, others)
    try:
        items = listed(messages)
    except CallerError:
        return
    before = json.dumps(items)
    for provider in PROVIDERS:
        done = validation(provider, items, repair=True)
        assert json.dumps(items) == before, "a check changes what it looks at"
        json.dumps([finding.text for finding in done.findings], ensure_ascii=False).encode("utf-8", "surrogatepass")
        again = validation(provider, list(done.messages), repair=True)
        left = len(done.warnings)
        assert again.refused <= left, f"{provider}: {again.findings[:1]} after a repair that said nothing of it"
        assert list(again.messages) == list(done.messages), f"{provider}: a second repair changes more"
