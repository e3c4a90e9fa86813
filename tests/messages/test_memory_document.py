from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.memory_document import (
    DEFAULT_TITLE,
    HEADINGS,
    REQUESTS,
    STATE,
    TASK,
    WORKLOG,
    MemoryDocument,
    Section,
    is_empty,
    parse,
    replace_section,
)


def test_the_headings_stand_in_their_order():
    assert HEADINGS[0] == REQUESTS
    assert HEADINGS[-1] == WORKLOG
    assert len(set(HEADINGS)) == 10


def test_a_document_is_written_as_markdown_under_its_title():
    document = MemoryDocument("Port", (Section("", "note"), Section(TASK, "- a\n- b"), Section(STATE, "")))
    assert document.render() == "# Port\n\nnote\n\n## Task\n- a\n- b\n\n## Current state\n"


def test_what_was_written_is_read_back():
    document = MemoryDocument("Port", (Section("", "note"), Section(TASK, "- a\n\n- b"), Section("Own thoughts", "x")))
    assert parse(document.render()) == document


def test_any_markdown_survives_parsing():
    text = "intro\n# Title\ntext\n### Deep\nbody\n## Other ##\n```\n# no heading\n```\n~~~\n## nor this\n~~~\n# Late"
    document = parse(text)
    assert document.title == DEFAULT_TITLE
    assert [(s.heading, s.body) for s in document.sections] == [
        ("", "intro"),
        ("Title", "text\n### Deep\nbody"),
        ("Other", "```\n# no heading\n```\n~~~\n## nor this\n~~~"),
        ("Late", ""),
    ]


def test_a_heading_in_bold_or_with_a_colon_is_the_same_heading():
    assert parse("## **Task**:\nx").body("task") == "x"


def test_text_without_a_heading_is_a_section_without_one():
    assert parse("only text").sections == (Section("", "only text"),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n\t",
        "# Title\n\n## Task\n",
        "## Task\n_What is being done?_\n",
        "<!-- guidance\nover lines -->\n# T",
        "---",
        "- \n*",
        "<!-- never closed",
    ],
)
def test_headings_guidance_and_blanks_are_empty(text):
    assert is_empty(text)


@pytest.mark.parametrize("text", ["x", "## Task\n- a", "_guide_ but more", "**bold**", "<!-- a --> b"])
def test_anything_said_is_not_empty(text):
    assert not is_empty(text)


def test_a_section_is_replaced_where_it_stands():
    document = parse("# T\n## Task\nold\n## Worklog\nlog")
    assert replace_section(document, "task", "new").render() == "# T\n\n## task\nnew\n\n## Worklog\nlog\n"


def test_a_new_known_section_goes_to_its_place_and_an_unknown_one_to_the_end():
    document = parse("# T\n## Task\nx\n## Own\ny")
    headings = [s.heading for s in replace_section(document, STATE, "s").sections]
    assert headings == [STATE, TASK, "Own"]
    assert [s.heading for s in replace_section(document, WORKLOG, "w").sections] == [TASK, WORKLOG, "Own"]
    assert [s.heading for s in replace_section(document, "Zoo", "z").sections] == [TASK, "Own", "Zoo"]


def test_sections_of_one_name_become_one_when_it_is_replaced():
    document = parse("## Task\na\n## Own\nb\n## TASK\nc")
    assert document.body("task") == "a\nc"
    assert [(s.heading, s.body) for s in replace_section(document, TASK, "d").sections] == [(TASK, "d"), ("Own", "b")]


@given(st.text(max_size=300))
def test_no_word_is_lost_by_parsing(text):
    rendered = parse(text).render()
    for word in text.split():
        kept = word.strip("#*_:`")
        assert not kept or kept in rendered


@given(st.text(max_size=300))
def test_reading_again_what_was_written_changes_nothing(text):
    once = parse(text).render()
    assert parse(once).render() == once
