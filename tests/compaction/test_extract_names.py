from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction import identifiers as module
from mcp_compact.compaction.identifiers import CODE, FLAG, HASH, NUMBER, PATH, QUOTED, SYMBOL, URL, identifiers


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("see src/billing/invoice.py:12", "src/billing/invoice.py", PATH),
        ("in ./tools/run.sh.", "tools/run.sh", PATH),
        ("open README.md", "README.md", PATH),
        (r"at C:\Users\dev\app.config today", r"C:\Users\dev\app.config", PATH),
        ('open "/srv/my files/report 1.txt" now', "/srv/my files/report 1.txt", PATH),
        ("go to https://example.com/a?b=1.", "https://example.com/a?b=1", URL),
        ("call total_with_tax(x)", "total_with_tax", SYMBOL),
        ("class InvoiceBuilder:", "InvoiceBuilder", SYMBOL),
        ("let camelCase = 1", "camelCase", SYMBOL),
        ("MAX_RETRIES = 5", "MAX_RETRIES", SYMBOL),
        ("decimal.Decimal('1')", "decimal.Decimal", SYMBOL),
        ("std::collections::HashMap", "std::collections::HashMap", SYMBOL),
        ("org.junit.Assert#assertEquals", "org.junit.Assert#assertEquals", SYMBOL),
        ("the user-prompt-submit hook", "user-prompt-submit", SYMBOL),
        ("pytest --maxfail=2", "--maxfail", FLAG),
        ("commit 082c2c4495629bd5", "082c2c4495629bd5", HASH),
        ("error E0433 here", "E0433", CODE),
        ("fixes #123", "#123", CODE),
        ("TICKET-4411 is open", "TICKET-4411", CODE),
        ("at 0xDEADBEEF", "0xDEADBEEF", CODE),
        ("took 1534 ms", "1534", NUMBER),
        ("version v2.10.3", "v2.10.3", NUMBER),
        ("run `make all` first", "make all", QUOTED),
        ('says "not found" again', "not found", QUOTED),
        ("函数parse_header在文件src/解析/a.py里", "parse_header", SYMBOL),
        ("変数maxRetryCountを使う", "maxRetryCount", SYMBOL),
        ("SELECT order_id FROM shop_orders", "shop_orders", SYMBOL),
    ],
)
def test_names_of_many_kinds_are_found(text, name, kind):
    assert identifiers(text)[name] == kind


def test_the_symbols_inside_a_path_are_names_too():
    assert identifiers("cmd/phase_postcommit_test.go")["phase_postcommit_test"] == SYMBOL


@pytest.mark.parametrize("text", ["the cat sat on it", "a b c", "...", "12", "", "=> != ()"])
def test_plain_words_are_no_names(text):
    assert identifiers(text) == {}


def test_data_is_no_name():
    assert identifiers("x" * 500 + "_y") == {}


def test_what_is_remembered_stays_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_CACHE", 3)
    module._known.clear()
    for number in range(10):
        identifiers(f"name_{number} ok")
    assert len(module._known) <= 3


def test_a_million_characters_without_a_blank_are_read_in_one_go():
    for text in (
        "a/" * 500_000,
        "a-" * 500_000,
        '"' * 1_000_000,
        "`x" * 500_000,
        "." * 1_000_000,
        "://" * 300_000,
        "A:\\" * 300_000,
    ):
        identifiers(text)


@given(st.text(max_size=200))
def test_every_name_stands_in_the_text(text):
    assert all(name in text for name in identifiers(text))
