"""A pattern that is compiled when it is used does what the pattern does, and costs nothing before."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.lazily import pattern

SOURCE = r"(?P<first>a+)|(b)\b"
COUNTS = """
import re
made = []
before = re._compile
re._compile = lambda source, flags: made.append(source) or before(source, flags)
import mcp_compact.messages.words, mcp_compact.messages.masking, mcp_compact.compaction.rules
print(sum(map(len, made)))
"""


@given(st.text("abAB ,", max_size=12), st.sampled_from((0, re.IGNORECASE)))
def test_it_finds_splits_and_replaces_like_the_pattern(text: str, flags: int) -> None:
    own, plain = pattern(SOURCE, flags), re.compile(SOURCE, flags)
    for _ in range(2):
        for name in ("search", "match", "fullmatch"):
            found, expected = getattr(own, name)(text), getattr(plain, name)(text)
            assert (found and found.span()) == (expected and expected.span())
        assert own.findall(text) == plain.findall(text)
        assert [match.groups() for match in own.finditer(text)] == [match.groups() for match in plain.finditer(text)]
        assert own.split(text) == plain.split(text)
        assert own.sub(r"<\g<0>>", text) == plain.sub(r"<\g<0>>", text)
    assert (own.pattern, own.flags, own.groups) == (plain.pattern, plain.flags, plain.groups)


def test_what_is_no_pattern_fails_where_it_is_used() -> None:
    own = pattern("(")
    with pytest.raises(re.error):
        own.search("text")


def test_the_long_patterns_of_rules_and_keys_are_not_compiled_when_they_are_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1_000
