"""A rule that its user took back is in no new context, on the way that a real compaction takes."""

from __future__ import annotations

from mcp_compact import compact

RULE = "Never edit the file vendor/tide_tables.py by hand."
KEPT = "Always run make verify-gauges before a commit."
REVOKED = "Forget the rule about vendor/tide_tables.py."


def conversation(*said: str) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    for at, words in enumerate(said):
        messages.append({"role": "user", "content": words})
        for step in range(12):
            text = f"Step {step} of part {at}: gauge_reading_{at}_{step} is now in src/gauges/part_{at}_{step}.py. " * 8
            messages.append({"role": "assistant", "content": text})
            messages.append({"role": "user", "content": f"go on with number {at * 100 + step}"})
    return messages


def written(messages: list[dict[str, object]]) -> str:
    out, report = compact(messages, target_tokens=3_000)
    assert report.status == "compacted"
    return "\n".join(str(message["content"]) for message in out)


def test_a_rule_that_holds_is_in_the_new_context_and_a_revoked_one_is_not():
    assert RULE in written(conversation(f"{RULE} {KEPT}", "go on with the gauges", "and now the tables"))
    text = written(conversation(f"{RULE} {KEPT}", REVOKED, "and now the tables"))
    assert KEPT in text
    assert RULE not in text


def test_a_revoked_rule_is_not_put_back_word_for_word():
    text = written(conversation(KEPT, RULE, "You may edit vendor/tide_tables.py now.", "and now the tables"))
    assert KEPT in text
    assert RULE not in text
    assert "You may edit vendor/tide_tables.py now." in text
