from __future__ import annotations

from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_memory import memory_passages, summary_passages, user_words_of
from mcp_compact.messages.memory_document import FILES, REQUESTS, STATE, SYSTEM, WORKLOG, parse

SPLITTER = Splitter("")
TEXT = """# Shop

_Lines after > quote files._

## User requests and instructions
- Never push.
> not the user's
- Port it.

## Current state
- I am porting now.

## Files and functions
- `src/a.py`
  - x = new_value
  > 12→y = old_value / 13→z = y
- a line of its own

## Task
- [pending] port it
- think about refunds

## Own heading
A paragraph about things.
"""


def test_the_users_words_are_the_bullets_of_the_first_section_that_no_tool_said():
    assert user_words_of(parse(TEXT)) == ("Never push.", "Port it.")
    assert user_words_of(None) == ()


def test_lines_come_back_under_their_heads_with_who_said_them():
    made = memory_passages(parse(TEXT), SPLITTER)
    files = [(p.head, p.lines[0].text, p.from_tool) for p in made if p.section == FILES]
    assert files == [
        ("src/a.py", "x = new_value", False),
        ("src/a.py", "y = old_value", True),
        ("", "a line of its own", False),
    ]
    assert [(line.number, line.text) for line in next(p for p in made if p.from_tool).lines] == [
        ("12", "y = old_value"),
        ("13", "z = y"),
    ]


def test_the_last_state_becomes_part_of_the_log_and_tasks_are_read_elsewhere():
    made = memory_passages(parse(TEXT), SPLITTER)
    assert [p.lines[0].text for p in made if p.section == WORKLOG] == ["I am porting now."]
    assert STATE not in {p.section for p in made}
    assert REQUESTS not in {p.section for p in made}
    assert [p.lines[0].text for p in made if p.section == "Task"] == ["think about refunds"]


def test_unknown_headings_keep_their_own_section_in_a_memory_but_not_in_a_summary():
    assert [p.lines[0].text for p in memory_passages(parse(TEXT), SPLITTER) if p.section == "Own heading"] == [
        "A paragraph about things."
    ]
    made = summary_passages(["## System knowledge\n- it runs on port 8080\n## Other\nmore text"], SPLITTER)
    assert [(p.section, p.lines[0].text) for p in made] == [(SYSTEM, "it runs on port 8080"), (WORKLOG, "more text")]


def test_a_long_paragraph_is_split_into_its_sentences():
    long = "This is one sentence about the parser and what it does. " * 30
    (passage,) = memory_passages(parse(f"## Learnings\n{long}"), SPLITTER)
    assert len(passage.lines) == 30
