from __future__ import annotations

from mcp_compact.messages.words import users_words
from tests.transcripts.foreign import document, pairs, read, records, spoken

TASK = {"role": "user", "content": "Fix the typo."}


def test_a_command_that_was_written_as_text_is_a_call():
    history = [
        TASK,
        {"role": "assistant", "content": "I look.\n```\nls\n```", "thought": "I look.\n", "action": "ls\n"},
        {"role": "user", "content": "a.py"},
    ]
    found = records("swe-agent", document({"environment": "e", "trajectory": [], "history": history}))
    assert pairs(found) == [("bash", {"command": "ls"}, "a.py", False)]
    assert spoken(found) == [("user", "Fix the typo."), ("assistant", "I look.\n")]


def test_mini_swe_s_commands_stand_in_fences():
    messages = [
        TASK,
        {"role": "assistant", "content": "THOUGHT: I look.\n\n```mswea_bash_command\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>\n<output>\na.py\n</output>"},
        {"role": "assistant", "content": "No command here."},
        {"role": "user", "content": "Please give exactly one command."},
    ]
    found = records("swe-agent", document(messages))
    assert [(name, given) for name, given, _, _ in pairs(found)] == [("bash", {"command": "ls"})]
    assert [users_words(record) for record in found if record.type == "user"] == ["Fix the typo.", "", ""]


def test_ids_pair_where_functions_are_called():
    call = {"id": "c1", "type": "function", "function": {"name": "open", "arguments": '{"path": "a.py"}'}}
    history = [TASK, {"role": "assistant", "content": None, "tool_calls": [call]},
               {"role": "tool", "content": "", "tool_call_ids": ["c1"]}]  # fmt: skip
    assert pairs(records("swe-agent", document({"history": history}))) == [
        ("open", {"path": "a.py"}, "(no output)", False)
    ]


def test_the_run_is_kept_and_unknown_roles_counted():
    value = {
        "environment": "e",
        "trajectory": [{"step": 1}],
        "history": [TASK, {"role": "narrator"}],
        "info": {"model": "m"},
    }
    reader, parsed = read("swe-agent", document(value))
    assert b'"step":1' in parsed[0].record.body
    assert reader.facts().model == "m"
    assert reader.report.unknown_types == {"narrator": 1}
