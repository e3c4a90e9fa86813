"""The examples run as a reader runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def example(name, *words):
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / name), *words],
        capture_output=True, text=True, env=env, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(out):
    """The sum that was told, and requests, compactions, refused requests."""
    found = re.search(r"The sum is (\d+)\. (\d+) requests, (\d+) compactions, .* (\d+) refused\.", out)
    assert found, out
    return tuple(int(number) for number in found.groups())


def summed(parts):
    return sum(number * 7 % 101 for number in range(1, parts + 1))


def test_a_loop_that_compacts_its_own_list_reads_far_more_than_its_window_holds():
    told, requests, compactions, refused = figures(example("anthropic_loop.py", "--parts", "60", "--window", "12000"))
    assert (told, requests, refused) == (summed(60), 61, 0)
    assert compactions >= 2


@pytest.mark.e2e
def test_a_loop_whose_list_the_server_keeps_does_too_and_finds_what_left_it():
    out = example("openai_server_loop.py", "--parts", "30", "--window", "12000")
    told, requests, compactions, refused = figures(out)
    assert (told, requests, refused) == (summed(30), 31, 0)
    assert compactions >= 2
    assert "Found in the archive: Part 1. Its figure is 7, its mark tide-0001." in out


def test_the_stand_in_refuses_what_a_provider_refuses():
    sys.path.insert(0, str(REPOSITORY / "examples"))
    try:
        from stand_in import RULE, StandIn, chat_problems, problems
    finally:
        sys.path.pop(0)
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "x", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "y"}]}
    user = {"role": "user", "content": "go"}
    assert problems([user, call, result]) == []
    assert problems([user, call, user]) == ["tool_use ids were found without tool_result blocks: t1"]
    assert problems([user, result]) == ["unexpected tool_use_id found in tool_result blocks: t1"]
    assert problems([call, result]) == ["messages: first message must use the user role"]
    asked = {"role": "assistant", "tool_calls": [{"id": "c1"}]}
    answered = {"role": "tool", "tool_call_id": "c1", "content": "y"}
    assert chat_problems([user, asked, answered]) == []
    assert chat_problems([user, asked, user]) == ["tool_call_ids did not have response messages: c1"]
    assert len(chat_problems([user, answered])) == 1
    small = StandIn(parts=1, window=20)
    assert small.answer({"messages": [{"content": "x" * 400}]}, [])[0] == 400
    assert StandIn(parts=1, window=1000).answer({"messages": []}, [])[0] == 400
    assert StandIn(parts=1, window=1000).answer({"messages": [{"content": RULE}]}, []) == (200, 1)
