"""What must hold of any list that is checked by a provider's rules: findings, and a repair that mends what it says."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from mcp_compact.errors import CallerError
from mcp_compact.service.validating import listed, validation
from mcp_compact.transcripts.validity.providers import PROVIDERS
from tests.fuzz.mutations import mutated_value
from tests.fuzz.samples import TURNS, anthropic, openai
from tests.server.talk import conversation
from tests.transcripts.foreign import gemini, responses


def mutant(chance: Random) -> Any:
    """A list of messages of some provider with up to four changes."""
    lists = [json.loads(openai()), json.loads(anthropic())["messages"], conversation(1)]
    lists += [json.loads(write(TURNS)) for write in (responses, gemini)]
    messages = chance.choice(lists)
    for _ in range(chance.randint(0, 4)):
        messages = mutated_value(chance, messages, lists)
    return messages


def check_validation(messages: Any) -> None:
    """By the rules of each provider. Raises AssertionError for what must not be, or what a defect raises."""
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
