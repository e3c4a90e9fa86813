from __future__ import annotations

import pytest

from mcp_compact.compaction.extract import Material
from mcp_compact.compaction.injection import injection_facts, injection_text
from mcp_compact.compaction.short_results import SHORT_CHARS, not_told, used_short_results
from mcp_compact.messages.message import Record
from mcp_compact.testing import Talk


def talk(result: str, later: str, call: str = "systemctl show gauge", into: Talk | None = None) -> list[Record]:
    """A call, its short result, a longer one, and what the model did then."""
    made = into or Talk()
    first, second = f"c{len(made.records)}", f"d{len(made.records)}"
    made.user("Look at the gauge.")
    for own, command, text in ((first, call, result), (second, "cat log.txt", "nothing to be seen here\n" * 60)):
        made.add("assistant", [{"type": "tool_use", "id": own, "name": "Bash", "input": {"command": command}}])
        made.results(own, text=text)
    made.assistant(later)
    return made.records


def test_a_figure_of_a_short_result_that_was_used_is_told_with_its_call():
    (found,) = used_short_results(talk("pressure=47.3125 bar", "I set the limit to 47.3125."), "", 1000)
    assert found.used == {"47.3125"}
    assert found.line == "- `Bash systemctl show gauge`\n  > pressure=47.3125 bar"


@pytest.mark.parametrize(
    ("result", "later"),
    [("pressure=47.3125 bar", "I looked at it."), ("ok", "It is ok."), ("", "Nothing."),
     ("pressure=47.3125 bar" + "x" * SHORT_CHARS, "I set it to 47.3125."), ("systemctl_show_gauge", "I ran it.")],
)  # fmt: skip
def test_what_was_not_used_or_is_not_short_is_not_told(result, later):
    assert used_short_results(talk(result, later), "", 1000) == ()


def test_a_name_that_was_asked_with_is_no_news():
    assert used_short_results(talk("/etc/gauge.conf", "I read /etc/gauge.conf.", "ls /etc/gauge.conf"), "", 1000) == ()


def test_what_is_known_is_not_told_again():
    records = talk("pressure=47.3125 bar", "I set the limit to 47.3125.")
    assert used_short_results(records, "The limit is 47.3125 now.", 1000) == ()
    assert used_short_results(records, "The limit is 147.3125 now.", 1000) != ()
    assert not_told(used_short_results(records, "", 1000), "> 47.3125") == ()


def test_of_too_many_the_newest_fit_and_stand_in_their_order():
    whole = Talk()
    for at in range(9):
        talk(f"port_{at}=80{at}42", f"I take 80{at}42.", f"get {at}", whole)
    found = used_short_results(whole.records, "", 150)
    assert [item.text for item in found] == [f"port_{at}=80{at}42" for at in range(9)][-len(found) :]
    assert 1 < len(found) < 9
    assert sum(len(item.line) + 1 for item in found) <= 150


def test_the_text_after_a_compaction_holds_it_where_the_summary_lacks_it():
    whole = Talk()
    talk("pressure=47.3125 bar", "I set the limit to 47.3125.", into=whole)
    for at in range(12):
        talk(f"line {at}", f"Then I changed module_{at} so that function_{at} returns early.", into=whole)
    material = Material(tuple(whole.records))
    facts = injection_facts([], material, session_id="s", native_summary="The gauge was looked at.", limit_chars=1200)
    assert "47.3125" in injection_text(facts, 1200)
