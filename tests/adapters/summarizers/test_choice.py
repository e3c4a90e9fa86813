from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.adapters.summarizers import ProviderSummarizer, provider_of
from mcp_compact.adapters.summarizers.choice import ADDRESSES, KINDS, NO_KEY, Choice, choose
from mcp_compact.config import load_settings
from mcp_compact.ports.summarizer import WriterFailed


@pytest.mark.parametrize("kind", ["anthropic", "google", "openai"])
def test_a_provider_is_asked_at_its_own_address_unless_another_one_is_set(kind: str):
    own = choose(f"{kind}:m", "", "k")
    assert isinstance(own, Choice)
    assert own.base_url == next(address for known, address in ADDRESSES.items() if known == kind)
    assert own.base_url.startswith("https://")
    other = choose(f"{kind}:m", " http://127.0.0.1:1/v1 ", "k")
    assert isinstance(other, Choice)
    assert other.base_url == "http://127.0.0.1:1/v1"


def test_the_name_of_a_model_may_hold_colons_and_slashes():
    assert choose("openai-compatible:org/qwen3:8b", "http://h/v1", "") == Choice(
        "openai-compatible", "org/qwen3:8b", "http://h/v1", NO_KEY
    )


@pytest.mark.parametrize(
    ("model", "base_url", "key", "reason"),
    [
        ("", "", "k", "bad_model"),
        ("gpt-5-mini", "", "k", "bad_model"),
        ("openai:", "", "k", "bad_model"),
        ("oracle:m", "", "k", "bad_model"),
        ("OpenAI:m", "", "k", "bad_model"),
        ("openai-compatible:m", "", "k", "bad_address"),
        ("openai:m", "ftp://h/v1", "k", "bad_address"),
        ("openai:m", "127.0.0.1:8080", "k", "bad_address"),
        ("openai:m", "http://", "k", "bad_address"),
        ("openai:m", "http://h:99999/v1", "k", "bad_address"),
        ("openai:m", "http://[::1/v1", "k", "bad_address"),
        ("openai:m", "http://h/a b", "k", "bad_address"),
        ("openai:m", "http://me:hush@h/v1", "k", "bad_address"),
        ("openai:m", "", "", "no_key"),
        ("anthropic:m", "", "  ", "no_key"),
        ("openai:m", "", "k\nx: y", "bad_key"),
        ("openai:m", "", "schlüssel", "bad_key"),
        ("openai:m", "", "two keys", "bad_key"),
    ],
)
async def test_settings_that_cannot_work_are_told_before_anything_is_loaded_or_sent(
    model: str, base_url: str, key: str, reason: str
):
    writer = ProviderSummarizer(model, base_url=base_url, api_key=key)
    problem = writer.problem()
    assert isinstance(problem, WriterFailed)
    assert problem.reason == reason
    assert problem == await writer.write(None)  # type: ignore[arg-type]  # it is not looked at
    assert "hush" not in problem.detail
    if key.strip():
        assert key not in problem.detail.split()


def test_the_settings_describe_a_writer():
    environ = {
        "MCP_COMPACT_LLM_MODEL": "anthropic:claude-haiku-4-5",
        "ANTHROPIC_API_KEY": "sk-1",
        "MCP_COMPACT_LLM_TIMEOUT_S": "7",
        "MCP_COMPACT_LLM_MAX_TOKENS": "900",
    }
    writer = provider_of(load_settings(environ).llm)
    assert writer == ProviderSummarizer("anthropic:claude-haiku-4-5", api_key="sk-1", timeout_s=7, max_tokens=900)
    assert writer.name == "anthropic:claude-haiku-4-5"


def test_the_key_is_in_no_repr():
    assert "sk-secret" not in repr(ProviderSummarizer("openai:m", api_key="sk-secret"))
    assert "sk-secret" not in repr(choose("openai:m", "", "sk-secret"))


@given(
    st.one_of(st.text(max_size=20), st.sampled_from(KINDS).map(lambda kind: f"{kind}:m")),
    st.one_of(st.text(max_size=20), st.text(max_size=20).map(lambda text: f"http://{text}")),
    st.text(max_size=20),
)
def test_no_setting_is_too_odd_to_be_judged(model: str, base_url: str, key: str):
    chosen = choose(model, base_url, key)
    if isinstance(chosen, Choice):
        chosen.api_key.encode("ascii")
        assert chosen.base_url.startswith(("http://", "https://", "HTTP://"))
    else:
        assert chosen.detail
