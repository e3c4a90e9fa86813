from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_compact.compaction.extract_cover import Cover, Prices, candidates
from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_passages import ASSISTANT, EDIT, FILE, Passage

SPLITTER = Splitter("")
FILES = "Files and functions"


def passage(text: str, origin: str = ASSISTANT, head: str = "", **more) -> Passage:
    return Passage(0, origin, FILES if head else "Worklog", head, SPLITTER.lines(text), **more)


def cover(passages: list[Passage], worth: dict[str, float], covered: tuple[str, ...] = ()) -> Cover:
    prices = Prices(
        [[len(line.text) for line in p.lines] for p in passages],
        2,
        {(p.section, p.head): len(p.head) for p in passages if p.head},
    )
    made = Cover(passages, worth, prices, covered)
    heads = {(p.section, p.head): tuple(n for n, _ in SPLITTER.line(p.head).names) for p in passages if p.head}
    made.offer([1.0] * len(passages), heads)
    return made


ALPHA = "the function alpha_one reads all lines of input"
BETA = "the function beta_two writes all lines of output"


def test_the_line_with_the_best_gain_for_its_price_comes_first():
    made = cover([passage(f"{ALPHA}\n{BETA}")], {"alpha_one": 1.0, "beta_two": 2.0})
    made.spend(1000)
    assert list(made.chosen) == [(0, 1), (0, 0)]


def test_what_is_covered_brings_nothing_until_units_are_left_over():
    made = cover([passage(f"{ALPHA}\n{BETA}")], {"alpha_one": 9.0, "beta_two": 1.0}, covered=("alpha_one",))
    made.spend(60)
    assert list(made.chosen) == [(0, 1)]
    made.spend(60)
    assert list(made.chosen) == [(0, 1), (0, 0)]


def test_no_more_is_spent_than_there_is():
    made = cover([passage(f"{ALPHA}\n{BETA}")], {"alpha_one": 1.0, "beta_two": 2.0})
    assert made.spend(10) == 10
    assert not made.chosen


def test_short_lines_are_read_on_until_they_say_something():
    found = candidates(
        0, passage("alpha_one\nis read\nby the new parser\nand by nothing else here"), {"alpha_one": 1.0}
    )
    assert [(c.first, c.last) for c in found] == [(0, 2)]


def test_a_line_at_the_end_with_too_few_words_is_no_candidate_but_a_small_edit_is():
    worth = {"alpha_one": 1.0}
    assert candidates(0, passage("return alpha_one now"), worth) == []
    assert len(candidates(0, passage("return alpha_one now", EDIT, "src/a.py"), worth)) == 1


def test_stale_lines_and_lines_that_start_with_a_glued_name_are_left_out():
    worth = {"alpha_one": 1.0, "beta_two": 1.0}
    text = f"{ALPHA}\nbeta_two writes all lines of output now"
    assert [c.first for c in candidates(0, passage(text, stale=frozenset({0})), worth)] == [1]
    assert [c.first for c in candidates(0, passage(text, EDIT, "a.py"), worth, frozenset({"beta_two"}))] == [0]
    assert [c.first for c in candidates(0, passage(text, ASSISTANT), worth, frozenset({"beta_two"}))] == [0, 1]


def test_a_head_is_paid_once_and_makes_the_other_lines_under_it_cheaper():
    head = "src/billing/very/long/path/of/a/module_of_invoices.py"
    under, alone = passage(f"{ALPHA}\n{BETA}", FILE, head), passage(f"{BETA} or_gamma")
    made = cover([under, alone], {"alpha_one": 5.0, "beta_two": 0.5, "or_gamma": 0.01})
    left = made.spend(1000)
    assert list(made.chosen)[:2] == [(0, 0), (0, 1)]
    assert 1000 - left == sum(2 + len(t) for t in (ALPHA, BETA, f"{BETA} or_gamma")) + len(head)


def test_a_full_section_leaves_its_room_to_others():
    made = cover(
        [passage(f"{ALPHA}\n{ALPHA} and x_one", FILE, "src/a.py"), passage(BETA)],
        {"alpha_one": 5.0, "x_one": 0.1, "beta_two": 0.1},
    )
    made.spend(1000, 70)
    assert list(made.chosen) == [(0, 0), (1, 0)]


def test_a_line_can_be_taken_whatever_it_is_worth():
    made = cover([passage("no name in here at all")], {})
    assert made.take(0, 0) == 2 + len("no name in here at all")
    assert list(made.chosen) == [(0, 0)]


@settings(max_examples=60)
@given(
    st.lists(
        st.lists(st.sampled_from(["a_a", "b_b", "c_c", "d_d", "plain"]), min_size=6, max_size=9), min_size=1, max_size=8
    ),
    st.integers(0, 400),
)
def test_the_budget_is_kept_and_no_line_is_chosen_without_a_name(lines, units):
    text = "\n".join(" ".join(words) for words in lines)
    own = passage(text)
    made = cover([own], {"a_a": 1.0, "b_b": 0.5, "c_c": 0.2, "d_d": 0.1})
    left = made.spend(units)
    assert sum(len(own.lines[i].text) for _, i in made.chosen) <= units - left
    assert all(own.lines[i].names for _, i in made.chosen)
