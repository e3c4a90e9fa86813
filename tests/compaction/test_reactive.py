"""Where the last round alone is too long: what is finished leaves last of all, what waits for an answer never does."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_compact import compact

TARGET = 2_000
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Never touch vendor/. Now write the table of all hour marks."},
    {"role": "assistant", "content": "I look at tides/marks.py first, it holds the 96 marks of harbour NRH-0417."},
    {"role": "user", "content": "Go on."},
]
LONG = "The mark at tides/marks.py:12 is the one that the hour table of the harbour begins with. " * 200


def call(name: str) -> dict[str, Any]:
    given = {"file_path": "tides/table.py", "content": LONG}
    return {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "Write", "input": given}]}


def answer(name: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "Written."}]}


def test_a_finished_last_round_that_is_longer_than_the_target_leaves_and_the_memory_tells_of_it() -> None:
    made, report = compact([*TALK, call("t1"), answer("t1")], TARGET)
    assert (report.status, report.strategy) == ("compacted", "reactive")
    assert report.tokens_after <= TARGET
    assert {message["role"] for message in made} == {"user"}
    assert "Never touch vendor/." in str(made)
    assert "tides/table.py" in str(made)


@pytest.mark.parametrize("waiting", [[call("t1")], [{"role": "user", "content": LONG}]])
def test_what_waits_for_an_answer_stays_whatever_its_size(waiting: list[dict[str, Any]]) -> None:
    given = [*TALK, *waiting]
    made, report = compact(given, TARGET)
    assert report.status != "compacted"
    assert LONG[:80] in str(made[-1])


def test_a_last_round_that_fits_stays() -> None:
    given = [*TALK, {"role": "assistant", "content": LONG}, {"role": "user", "content": "Good."}]
    given.append({"role": "assistant", "content": "The table stands in tides/table.py."})
    made, report = compact(given, TARGET)
    assert (report.status, report.strategy) == ("compacted", "session_memory")
    assert made[-1]["role"] == "assistant"
