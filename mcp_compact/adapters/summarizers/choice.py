"""Which model is asked, where and with which key: read from the settings, checked before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from mcp_compact.ports.summarizer import WriterFailed

Kind = Literal["anthropic", "google", "openai", "openai-compatible"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ADDRESSES: dict[Kind, str] = {
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "openai": "https://api.openai.com/v1",
}
"""The providers' own addresses. Always given to the library, which would else read them from the environment."""
EXAMPLES = "anthropic:claude-haiku-4-5, openai:gpt-5-mini, google:gemini-3-flash or openai-compatible:qwen3"
NO_KEY = "not-needed"
"""Sent to a server of one's own that wants none; the wire format has a place for it."""
SHOWN = 60


@dataclass(frozen=True, slots=True)
class Choice:
    """A model of a provider."""

    kind: Kind
    model: str
    base_url: str
    api_key: str = field(repr=False)


def choose(model: str, base_url: str, api_key: str) -> Choice | WriterFailed:
    """The model that the settings mean, or what is wrong with them. Nothing is asked of anybody."""
    given, _, name = model.strip().partition(":")
    kind = next((known for known in KINDS if known == given), None)
    if kind is None or not name:
        return WriterFailed(
            "bad_model", f"MCP_COMPACT_LLM_MODEL is {model[:SHOWN]!r}; it names a provider and a model: {EXAMPLES}"
        )
    address = base_url.strip() or ADDRESSES.get(kind, "")
    if problem := _address_problem(address):
        return WriterFailed("bad_address", f"MCP_COMPACT_LLM_BASE_URL {problem}")
    key = api_key.strip() or (NO_KEY if kind == "openai-compatible" else "")
    if not key:
        return WriterFailed("no_key", f"{kind} wants a key: set MCP_COMPACT_LLM_API_KEY in the environment")
    if not (key.isascii() and key.isprintable()) or " " in key:
        return WriterFailed("bad_key", "the key holds spaces or characters that no request can carry")
    return Choice(kind, name, address, key)


def _address_problem(address: str) -> str:
    """What is wrong with an address; never the address itself, which may hold a password."""
    if not address:
        return "is not set: an openai-compatible server is reached at an address, e.g. http://127.0.0.1:8080/v1"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return "is no address that can be read"
    if "@" in parts.netloc:
        return "holds a user or password: the key belongs into MCP_COMPACT_LLM_API_KEY"
    return "" if usable and address.isprintable() and " " not in address else "is no http or https address"
