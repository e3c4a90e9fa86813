from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.extract_lines import LONG_CHARS, LONGEST_WINDOW_CHARS, WINDOW_SLACK_CHARS, Splitter


def texts(text: str) -> list[str]:
    return [line.text for line in Splitter("").lines(text)]


def test_short_lines_are_whole_and_blank_ones_are_left_out():
    assert texts("one. two!\n\n   three  ") == ["one. two!", "three"]


def test_a_long_line_is_split_into_its_sentences():
    first, second = (
        "This sentence is about the parser and its tests.",
        "That one tells at last what was wrong with the old lexer.",
    )
    assert texts(f"{first} {second}") == [first, second]


def test_line_numbers_of_a_file_viewer_are_taken_off_and_kept():
    lines = Splitter("").lines("    12→def f():\n    13→\n    14\tpass")
    assert [(line.number, line.text) for line in lines] == [("12", "def f():"), ("13", ""), ("14", "pass")]


def test_a_long_sentence_is_cut_at_blanks_so_that_no_name_is_cut():
    words = [f"name_number_{n}" for n in range(200)]
    lines = Splitter("").lines(" ".join(words))
    assert all(line.clipped and len(line.text) <= LONG_CHARS + WINDOW_SLACK_CHARS for line in lines)
    assert [word for line in lines for word in line.text.split()] == words


def test_commas_part_windows_where_there_are_no_blanks_and_data_is_left_out():
    listed = ",".join(f"item_{n}" for n in range(200))
    assert "".join(texts(listed)) == listed
    assert texts("x" * (LONGEST_WINDOW_CHARS * 3)) == []


def test_names_are_read_without_the_working_directory():
    line = Splitter("/home/dev/shop").line("see /home/dev/shop/src/a_file.py")
    assert ("src/a_file.py", "path") in line.names


def test_words_are_those_of_the_last_sentence():
    splitter = Splitter("")
    assert splitter.line("one two three four. five six").words == 2
    assert splitter.line(r'print("first words\nlast ones here")').words == 3
    assert splitter.line("为什么这个测试总是失败呢").words >= 6
    assert splitter.line("what? !").words == 1


def test_a_line_of_a_memory_gives_its_number_back_and_all_its_words_count():
    line = Splitter("").quoted("12→x = new_value")
    assert (line.number, line.text) == ("12", "x = new_value")
    assert Splitter("").quoted("one two three four. five six").words == 6
    assert Splitter("").quoted("plain").number == ""


@given(st.text(alphabet="ab .!?\n\t→1。", max_size=700))
def test_lines_hold_everything_that_is_no_blank_or_number(text):
    lines = Splitter("").lines(text)
    for line in lines:
        assert line.text in text or line.text == ""
