"""The shipped vocabulary is the published one, and a damaged one is never used."""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from mcp_compact.adapters.tokenizers import ranks
from mcp_compact.errors import ServerError

KNOWN = json.loads(Path(__file__).with_name("known_ids.json").read_text(encoding="utf-8"))
"""Texts of many kinds with their ids by an independent encoder in pure Python."""


def tiktokens_own_definition(monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The hash and the pattern that the installed tiktoken pins for o200k_base; nothing is downloaded."""
    hashes: list[str] = []

    def instead_of_download(_url: str, expected_hash: str) -> dict[bytes, int]:
        hashes.append(expected_hash)
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", instead_of_download)
    pattern: str = openai_public.o200k_base()["pat_str"]
    return hashes[0], pattern


def test_the_shipped_file_gives_back_the_published_vocabulary_byte_for_byte(monkeypatch):
    pinned_by_tiktoken, _ = tiktokens_own_definition(monkeypatch)
    tokens = ranks.read_ranks(ranks.DATA_FILE)
    published = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in tokens.items())
    assert hashlib.sha256(published).hexdigest() == ranks.PUBLISHED_SHA256 == pinned_by_tiktoken


def test_the_split_pattern_is_tiktokens_own(monkeypatch):
    _, pattern = tiktokens_own_definition(monkeypatch)
    assert pattern == ranks.PATTERN


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: repr(case["text"][:20]))
def test_ids_are_those_of_an_independent_encoder(case):
    assert ranks.load_encoding().encode_ordinary(case["text"]) == case["ids"]


def test_names_of_special_tokens_are_plain_text():
    encoding = ranks.load_encoding()
    assert encoding.special_tokens_set == set()
    # Even the call that usually refuses them, or makes one token of them, sees plain text.
    assert encoding.encode("<|endoftext|>") == [27, 91, 419, 1440, 919, 91, 29]


def test_all_threads_get_the_same_encoding():
    with ThreadPoolExecutor(4) as pool:
        encodings = list(pool.map(lambda _: ranks.load_encoding(), range(8)))
    assert len({id(encoding) for encoding in encodings}) == 1


def damaged_copies(folder: Path) -> dict[str, Path]:
    whole = ranks.DATA_FILE.read_bytes()
    layout = bytearray(lzma.decompress(whole))
    layout[500_000] ^= 1
    contents = {
        "empty": b"",
        "cut off": whole[: len(whole) // 2],
        "no xz": b"version https://git-lfs.example/spec/v1\n",
        "one bit of the vocabulary": lzma.compress(bytes(layout), preset=0),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in (*contents, "missing")}


def test_a_damaged_file_is_refused_with_what_is_wrong_and_what_to_do(tmp_path):
    for name, path in damaged_copies(tmp_path).items():
        with pytest.raises(ServerError) as caught:
            ranks.build_encoding(path)
        assert caught.value.code == "tokenizer_data_damaged"
        assert name in caught.value.message
        assert "Install mcp-compact again" in caught.value.hint


def test_importing_the_counter_imports_neither_tiktoken_nor_lzma():
    code = (
        "import sys, mcp_compact.adapters.tokenizers as t; t.O200kTokenizer();"
        "print(sorted({'tiktoken', 'lzma', 'requests', 'regex'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
