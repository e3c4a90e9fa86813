"""The providers whose rules are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_compact.errors import CallerError
from mcp_compact.transcripts.validity import (
    anthropic_repair,
    anthropic_rules,
    chat_repair,
    chat_rules,
    gemini_repair,
    gemini_rules,
    responses_repair,
    responses_rules,
)
from mcp_compact.transcripts.validity.repairing import Provider, Repaired, how_mended, repair
from mcp_compact.transcripts.validity.rules import Finding

ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI = "anthropic", "openai-chat", "openai-responses", "gemini"
PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider(
            ANTHROPIC, "Anthropic Messages", anthropic_rules.RULES, anthropic_rules.check, anthropic_repair.MENDER
        ),
        Provider(OPENAI_CHAT, "OpenAI chat", chat_rules.RULES, chat_rules.check, chat_repair.MENDER),
        Provider(
            OPENAI_RESPONSES, "OpenAI Responses", responses_rules.RULES, responses_rules.check, responses_repair.MENDER
        ),
        Provider(GEMINI, "Gemini contents", gemini_rules.RULES, gemini_rules.check, gemini_repair.MENDER),
    )
}
ALIASES = {"openai": OPENAI_CHAT, "responses": OPENAI_RESPONSES, "google": GEMINI}
"""Names of formats that are meant by a provider's."""

LAST_ALONE = frozenset({"anthropic/final-space"})
"""Rules that a last message breaks, and the same message in the middle does not."""


def provider_of(name: str) -> Provider:
    """A provider by its name or its format's. Raises CallerError `unknown_provider`."""
    known = PROVIDERS.get(ALIASES.get(name, name))
    if known is None:
        raise CallerError("unknown_provider", "This provider is not known.", f"There is {', '.join(PROVIDERS)}.")
    return known


def findings(name: str, messages: Sequence[Any]) -> list[Finding]:
    """What a provider would refuse, or might, and where. Raises CallerError `unknown_provider`."""
    return provider_of(name).check(messages)


def repaired(name: str, messages: Sequence[Any], *, goes_on: bool = False) -> Repaired:
    """The list as the provider takes it, and each change. Raises CallerError `unknown_provider`.

    A list that `goes_on` is not sent before something was appended: what only a last message must not have stays.
    """
    return repair(provider_of(name), messages, LAST_ALONE if goes_on else ())


def rule_rows() -> list[tuple[str, str, str, str]]:
    """Every rule for the docs: its id, what it asks for, what becomes of a request, what a repair does."""
    return [
        (rule.id, rule.text, rule.severity, how_mended(rule) or "-")
        for provider in PROVIDERS.values()
        for rule in provider.rules
    ]
