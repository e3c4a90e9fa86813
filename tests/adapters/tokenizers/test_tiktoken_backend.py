"""Counting is exact, never raises, and says so when it estimates."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from functools import partial
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.adapters.tokenizers import O200kTokenizer, guard, ranks
from mcp_compact.adapters.tokenizers.tiktoken_backend import estimate_tokens
from mcp_compact.messages.weights import estimate_units
from mcp_compact.ports.tokenizer import Tokenizer

KNOWN = json.loads(Path(__file__).with_name("known_ids.json").read_text(encoding="utf-8"))
LINE = "def total(rows: list[int]) -> int:  # adds them up, skipping None\n"


@pytest.fixture(scope="module")
def tokenizer() -> O200kTokenizer:
    ready = O200kTokenizer()
    ready.warm()
    assert ready.state == "ready"
    return ready


def cpu_seconds(tokenizer: O200kTokenizer, text: str) -> float:
    started = process_time()
    tokenizer.count([text])
    return process_time() - started


def test_it_is_a_tokenizer_as_the_port_describes_one(tokenizer: O200kTokenizer):
    port: Tokenizer = tokenizer
    assert (port.name, port.state, port.reason) == ("o200k_base", "ready", "")


def test_counts_are_those_of_an_independent_encoder(tokenizer):
    assert tokenizer.count([case["text"] for case in KNOWN]) == [len(case["ids"]) for case in KNOWN]


def test_a_count_has_one_number_a_text_in_order(tokenizer):
    assert tokenizer.count([]) == []
    assert tokenizer.count(("hello world", "", "a", "hello world")) == [2, 0, 1, 2]


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=30), max_size=8))
def test_any_text_counts_as_the_encoder_itself_counts_it(texts):
    encode = ranks.load_encoding().encode_ordinary
    assert O200kTokenizer().count(texts) == [len(encode(text)) for text in texts]


def test_a_lone_surrogate_counts_as_the_replacement_mark(tokenizer):
    lone, pair = tokenizer.count(["a\ud800b", "\ud83d\ude00"])
    assert [lone, pair] == tokenizer.count(["a\ufffdb", "😀"])


def test_long_text_counts_as_the_sum_of_its_lines(tokenizer):
    # Each of these lines ends where a match of the pattern ends, so the sum is the truth by hand.
    lines = [f"{LINE.rstrip()} {number}\n" for number in range(12_000)]
    text = "".join(lines)
    assert len(text) > 12 * guard.PIECE_CHARS
    assert tokenizer.count([text]) == [sum(tokenizer.count(lines))]


def test_real_sessions_count_in_pieces_as_they_count_whole(tokenizer, recall_files):
    encode = ranks.load_encoding().encode_ordinary
    for path in recall_files[:3]:
        text = path.read_text(encoding="utf-8")[:400_000]
        (counted,) = tokenizer.count([text])
        hard_cuts = len(text) // guard.PIECE_CHARS
        assert abs(counted - len(encode(text))) <= hard_cuts


@pytest.mark.parametrize(
    "unit", [" ", "a", "_", "^", "\n", "\t", "\u3000", ".", "中", "👩\u200d👧", "e\u0301", "\r\n", "'"]
)
def test_a_million_times_the_same_costs_at_most_some_times_what_code_costs(tokenizer, unit):
    code = LINE * (1_000_000 // len(LINE))
    hostile = unit * (1_000_000 // len(unit))
    usual = min(cpu_seconds(tokenizer, code) for _ in range(2))
    assert cpu_seconds(tokenizer, hostile) < 25 * usual
    (count,) = tokenizer.count([hostile])
    assert 0 < count <= len(hostile.encode())


def test_text_over_the_limit_is_sampled_and_said_to_be(tokenizer):
    text = LINE * (guard.SAMPLE_ABOVE_CHARS // len(LINE) + 1)
    (count,) = tokenizer.count([text])
    (line,) = tokenizer.count([LINE])
    assert count == pytest.approx(line * (len(text) // len(LINE)), rel=0.01)
    assert not tokenizer.counts_in_full(text)
    assert tokenizer.counts_in_full(text[: guard.SAMPLE_ABOVE_CHARS])


def test_a_panic_of_the_native_code_ends_in_an_estimate(tokenizer, monkeypatch):
    # Without the guard this text does panic, at least in some versions; in all it must count.
    monkeypatch.setattr(guard, "PIECE_CHARS", 2_000_000)
    spaces = " " * 1_000_000 + "a"
    (count,) = tokenizer.count([spaces])
    assert count in {7_814, estimate_tokens(spaces)}
    assert tokenizer.state == "ready"


class PanicException(BaseException):
    """What a panic of native code looks like from Python; its own class cannot be imported."""


class Failing:
    """An encoding that fails on one text."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def encode_ordinary(self, text: str) -> list[int]:
        if "bad" in text:
            raise self.error
        return [0] * len(text)


@pytest.mark.parametrize("error", [PanicException("stack"), ValueError("x"), RuntimeError("x"), MemoryError()])
def test_an_error_of_the_encoder_costs_only_that_text_its_exactness(error):
    tokenizer = O200kTokenizer(lambda: Failing(error))  # type: ignore[arg-type,return-value]
    assert tokenizer.count(["good", "bad text", "good!"]) == [4, -(-estimate_units("bad text") // 1000), 5]
    assert tokenizer.state == "ready"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit(), asyncio.CancelledError()])
def test_interrupts_exits_and_cancellation_belong_to_the_caller(error):
    tokenizer = O200kTokenizer(lambda: Failing(error))  # type: ignore[arg-type,return-value]
    with pytest.raises(type(error)):
        tokenizer.count(["bad"])

    def interrupted():
        raise error

    loading = O200kTokenizer(interrupted)
    with pytest.raises(type(error)):
        loading.warm()
    assert loading.state == "cold"


def test_a_damaged_vocabulary_gives_estimates_and_the_reason(tmp_path):
    damaged = tmp_path / "o200k_base.ranks.xz"
    damaged.write_bytes(ranks.DATA_FILE.read_bytes()[:-1000])
    tokenizer = O200kTokenizer(partial(ranks.build_encoding, damaged))
    assert (tokenizer.state, tokenizer.reason) == ("cold", "")
    assert tokenizer.count(["four words of text", ""]) == [estimate_tokens("four words of text"), 0]
    assert tokenizer.state == "failed"
    assert "o200k_base.ranks.xz cannot be read" in tokenizer.reason
    assert not tokenizer.counts_in_full("text")


def test_a_failed_load_is_not_tried_again():
    tries = []

    def missing():
        tries.append(1)
        raise ModuleNotFoundError("No module named 'tiktoken'")

    tokenizer = O200kTokenizer(missing)
    tokenizer.warm()
    tokenizer.count(["a"])
    assert len(tries) == 1
    assert tokenizer.reason == "ModuleNotFoundError: No module named 'tiktoken'"


def test_loading_and_counting_use_no_network_and_change_no_environment(monkeypatch):
    def refused(*_args, **_kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refused)
    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    before = dict(os.environ)
    # A new encoding rather than the shared one, so that loading really happens here.
    tokenizer = O200kTokenizer(partial(ranks.build_encoding, ranks.DATA_FILE))
    assert tokenizer.count(["hello world"]) == [2]
    assert (tokenizer.state, tokenizer.reason) == ("ready", "")
    assert dict(os.environ) == before
