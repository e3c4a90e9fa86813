from __future__ import annotations

import json

import anyio
import pytest

from mcp_compact.config import load_settings
from mcp_compact.library import compact_transcript
from mcp_compact.messages.blocks import MediaBlock
from mcp_compact.messages.valid import Turn
from mcp_compact.messages.words import users_words
from mcp_compact.transcripts.codex import KEPT_CHARS, CodexReader
from mcp_compact.transcripts.codex_out import session_items
from mcp_compact.transcripts.facts import SessionFacts
from mcp_compact.transcripts.kinds import BOUNDARY
from mcp_compact.transcripts.lines import read_lines
from mcp_compact.transcripts.registry import sniff
from mcp_compact.wiring import open_service
from tests.transcripts.foreign import sent

AT = "2026-01-01T10:00:00.000Z"


def line(kind, **payload):
    return {"timestamp": AT, "type": kind, "payload": payload}


def said(role, text):
    part = "output_text" if role == "assistant" else "input_text"
    return line("response_item", type="message", role=role, content=[{"type": part, "text": text}])


def call(id_, **arguments):
    return line(
        "response_item", type="function_call", name="exec_command", call_id=id_, arguments=json.dumps(arguments)
    )


def output(id_, value):
    return line("response_item", type="function_call_output", call_id=id_, output=value)


def tokens(number):
    usage = {"input_tokens": number, "output_tokens": 7}
    return line("event_msg", type="token_count", info={"last_token_usage": usage, "model_context_window": 258_400})


META = line("session_meta", id="s-1", cwd="/home/me/app", cli_version="0.142.2", git={"branch": "main"})
SESSION = [
    META,
    line("turn_context", model="gpt-5", cwd="/home/me/app"),
    said("developer", "<permissions instructions>..."),
    said("user", "<environment_context>\n<cwd>/home/me/app</cwd></environment_context>"),
    said("user", "Rename the gauges. Never touch vendor/."),
    line("event_msg", type="user_message", message="Rename the gauges. Never touch vendor/."),
    line("response_item", type="reasoning", summary=[], encrypted_content="xyz"),
    call("c1", cmd="ls"),
    call("c2", cmd="cat a.py"),
    output("c1", "a.py"),
    tokens(5_000),
    output("c2", {"content": "x = 1", "success": False}),
    said("assistant", "Done."),
    tokens(6_000),
]


def data_of(lines):
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in lines).encode()


def read(lines):
    reader = CodexReader("test")
    return [parsed.record for parsed in reader.read(read_lines([data_of(lines)]))], reader


def test_messages_come_from_items_alone_and_every_line_is_kept():
    records, reader = read(SESSION)
    assert len(records) == len(SESSION)
    assert [record.body for record in records] == data_of(SESSION).splitlines()
    assert [(record.type, record.text) for record in records if record.is_message and record.text] == [
        ("user", "<environment_context>\n<cwd>/home/me/app</cwd></environment_context>"),
        ("user", "Rename the gauges. Never touch vendor/."),
        ("assistant", "Done."),
    ]
    assert reader.report.messages == 7
    assert not reader.report.warning_counts


def test_what_the_client_writes_in_the_user_s_place_is_nobody_s_words():
    records, reader = read(SESSION)
    assert [words for record in records if (words := users_words(record))] == [
        "Rename the gauges. Never touch vendor/."
    ]
    assert reader.facts().title == "Rename the gauges. Never touch vendor/."


def test_calls_that_were_made_together_find_their_results():
    records, _ = read(SESSION)
    assert [(c.id, c.name, c.input) for record in records for c in record.calls] == [
        ("c1", "exec_command", {"cmd": "ls"}), ("c2", "exec_command", {"cmd": "cat a.py"}),
    ]  # fmt: skip
    assert [(r.tool_use_id, r.text, r.is_error) for record in records for r in record.results] == [
        ("c1", "a.py", False), ("c2", "x = 1", True),
    ]  # fmt: skip


def test_facts_and_usage_are_the_client_s():
    records, reader = read(SESSION)
    facts = reader.facts()
    assert (facts.session_id, facts.cwd, facts.git_branch, facts.model, facts.version) == (
        "s-1", "/home/me/app", "main", "gpt-5", "0.142.2",
    )  # fmt: skip
    assert facts.max_context_tokens == 6_000
    used = {
        record.seq or at: record.message.usage.context_tokens
        for at, record in enumerate(records)
        if record.message and record.message.usage
    }
    assert list(used.values()) == [5_000, 6_000]


def test_its_own_compaction_is_a_boundary_and_what_replaced_the_history_follows():
    history = [
        said("user", "Rename the gauges. Never touch vendor/.")["payload"],
        {"type": "compaction", "encrypted_content": "x"},
    ]
    lines = [
        *SESSION,
        line("compacted", message="", replacement_history=history),
        line("event_msg", type="context_compacted"),
        said("user", "Go on."),
    ]
    result = compact_transcript([data_of(lines)], output="anthropic")
    assert [message["content"] for message in result.messages] == [
        [{"type": "text", "text": "Rename the gauges. Never touch vendor/."}], [{"type": "text", "text": "Go on."}],
    ]  # fmt: skip


def test_an_older_compaction_with_a_summary_alone_begins_with_it():
    lines = [*SESSION, line("compacted", message="Gauges are being renamed."), said("user", "Go on.")]
    records, _ = read(lines)
    summary = next(record for record in records if record.is_summary)
    assert summary.text == "Gauges are being renamed."
    result = compact_transcript([data_of(lines)], output="anthropic")
    assert json.dumps(result.messages).index("Gauges are being renamed.") < json.dumps(result.messages).index("Go on.")
    assert "Done." not in json.dumps(result.messages)


def shown(lines):
    """The texts of the live context."""
    texts = []
    for message in compact_transcript([data_of(lines)], output="anthropic").messages:
        content = message["content"]
        texts += [content] if isinstance(content, str) else [block["text"] for block in content if "text" in block]
    return texts


def test_a_summary_that_stands_in_the_replaced_history_is_told_once():
    history = [said("user", "Rename the gauges.")["payload"], said("user", "Half are renamed.")["payload"]]
    lines = [
        *SESSION,
        line("compacted", message="Half are renamed.", replacement_history=history),
        said("user", "Go on."),
    ]
    records, _ = read(lines)
    assert [record.text for record in records if record.is_summary] == ["Half are renamed."]
    boundary = next(record for record in records if record.subtype == "compact_boundary")
    assert boundary.raw["compactMetadata"] == {"preTokens": 6_000}
    assert sorted(shown(lines)) == ["Go on.", "Half are renamed.", "Rename the gauges."]


def test_older_versions_kept_the_prompts_beside_their_summary():
    lines = [*SESSION, line("compacted", message="Gauges are being renamed."), said("user", "Go on.")]
    assert shown(lines) == [
        "Gauges are being renamed.", "Rename the gauges. Never touch vendor/.", "Go on.",
    ]  # fmt: skip


@pytest.mark.parametrize("sizes", [[30_000] * 5, [1, 90_000, 40_000, 40_000], [1, 2, 90_000], [0] * 9, [80_000, 1]])
@pytest.mark.parametrize("readings", [1, 3])
def test_as_many_prompts_stand_beside_an_older_version_s_summary_as_it_kept(sizes, readings):
    lines = [META, *(said("user", "x" * size) for size in sizes), line("compacted", message="Done so far.")]
    found = list(read_lines([data_of(lines)]))
    records, state = [], None
    for at in range(0, len(found), -(-len(found) // readings)):
        reader = CodexReader("test", state)
        assert reader.goes_on(found[0])
        records += [item.record for item in reader.read(found[at : at + -(-len(found) // readings)])]
        state = json.loads(json.dumps(reader.state()))
    newest = [at for at in range(len(sizes)) if sum(sizes[at:]) <= KEPT_CHARS]
    boundary = next(record for record in records if record.subtype == BOUNDARY)
    kept = boundary.raw["compactMetadata"].get("preservedMessages", {"uuids": []})["uuids"]
    assert kept == [records[1 + at].uuid for at in newest]


@pytest.mark.parametrize("words", ["", "Go on.", "Rename the gauges of every module. " * 30])
def test_what_is_carried_to_the_next_reading_stays_small_however_many_prompts_there_were(words):
    def carried(number):
        reader = CodexReader("test")
        lines = list(read_lines([data_of([META, *([said("user", words)] * number)])]))
        assert reader.goes_on(lines[0])
        assert len(list(reader.read(lines))) == 1 + number
        return len(json.dumps(reader.state()))

    assert carried(4_000) < 1.01 * carried(2_000) < 100_000


def test_prompts_that_were_taken_back_leave_the_context_and_stay_in_the_archive():
    back = line("event_msg", type="thread_rolled_back", num_turns=2)
    turns = [part for at in range(3) for part in (said("user", f"prompt {at}"), said("assistant", f"answer {at}"))]
    lines = [META, *turns, back, said("user", "again")]
    assert shown(lines) == ["prompt 0", "answer 0", "again"]
    assert len(read(lines)[0]) == len(lines)
    too_many = line("event_msg", type="thread_rolled_back", num_turns=9)
    assert len(shown([META, *turns, too_many])) == 6


def test_the_session_that_a_sub_agent_works_for_is_its_parent():
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "s-0", "depth": 1}}}
    assert read([line("session_meta", id="s-1", source=source)])[1].facts().parent_session_id == "s-0"
    assert read([line("session_meta", id="s-1", source="cli")])[1].facts().parent_session_id is None


def test_usage_that_comes_in_a_later_reading_is_told_with_the_answer_again():
    lines = list(read_lines([data_of(SESSION)]))
    first = CodexReader("test")
    assert first.goes_on(lines[0])
    answer = list(first.read(lines[:-1]))[-1].record
    second = CodexReader("test", json.loads(json.dumps(first.state())))
    again, event = [item.record for item in second.read(lines[-1:])][::-1]
    assert (again.uuid, again.body) == (answer.uuid, answer.body)
    assert sent(again) == 6_000
    assert event.subtype == "token_count"
    assert second.report.messages == 0


@pytest.mark.parametrize(
    ("item", "value"),
    [
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"},
            {"input": "*** Begin"},
        ),
        ({"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}}, {"command": ["ls"]}),
        ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}, {"arguments": "{"}),
    ],
)
def test_other_kinds_of_calls_are_calls(item, value):
    records, _ = read([META, line("response_item", **item)])
    assert records[1].calls[0].input == value


def test_images_are_media_wherever_they_stand():
    image = {"type": "input_image", "image_url": "data:image/png;base64,QUJD"}
    item = line("response_item", type="message", role="user", content=[image, {"type": "input_text", "text": "see"}])
    records, _ = read([META, item, call("c1"), output("c1", [image])])
    media = [block for record in records for block in record.blocks if isinstance(block, MediaBlock)]
    parts = [part for record in records for result in record.results for part in result.parts]
    assert [(block.kind, block.data) for block in media] == [("image", "QUJD")]
    assert isinstance(parts[0], MediaBlock)


def test_parts_that_are_not_understood_stay_and_objects_are_told_as_json():
    odd = {"type": "made_up", "a": 1}
    message = line("response_item", type="message", role="user", content=[3, odd, {"type": "input_text", "text": 4}])
    linked = {"type": "input_image", "image_url": "https://example.org/a.png"}
    outputs = [output("c1", {"matches": [1]}), output("c1", [linked]), output("c1", 7)]
    records, reader = read([META, message, call("c1"), *outputs])
    content = records[1].message.content if records[1].message else None
    assert content == [3, odd, {"type": "text", "text": ""}]
    assert [result.text for record in records for result in record.results] == ['{"matches": [1]}', "", "7"]
    assert reader.agents == ()
    assert reader.state() == {}


def test_what_is_not_known_is_counted_and_kept():
    records, reader = read(
        [
            META,
            line("made_up_later", a=1),
            line("response_item", type="new_kind", b=2),
            {"type": "response_item", "payload": 3},
        ]
    )
    assert [record.type for record in records] == ["session_meta", "made_up_later", "response_item", "response_item"]
    assert reader.report.unknown_types == {"made_up_later": 1}


def test_a_damaged_line_is_reported_and_the_rest_is_read():
    data = data_of(SESSION[:5]) + b'{"timestamp":"x","type":"response_i\n' + data_of(SESSION[5:])
    reader = CodexReader("test")
    assert len(list(reader.read(read_lines([data])))) == len(SESSION)
    assert reader.report.problem_count == 1


def test_what_is_written_is_read_back_as_it_was():
    records, _ = read([*SESSION[:4], *SESSION[4:5], *SESSION[12:13]])
    turns = [Turn(r.message.role, r.blocks, r.uuid) for r in records if r.is_message and r.message]
    lines = list(session_items(turns, SessionFacts(cwd="/home/me/app"), "s-2", 1_767_225_600_000))
    assert sniff(data_of(lines)) == "codex"
    back, reader = read(lines)
    assert [(r.type, r.text) for r in back if r.is_message] == [
        (turn.role, "".join(b.raw["text"] for b in turn.blocks)) for turn in turns
    ]
    assert (reader.facts().session_id, reader.facts().cwd) == ("s-2", "/home/me/app")


def test_a_rollout_that_grows_is_stored_once(tmp_path):
    path = tmp_path / "rollout-2026-01-01T10-00-00-s-1.jsonl"

    async def work():
        async with open_service(load_settings({"MCP_COMPACT_DB": str(tmp_path / "a.db")})) as service:
            path.write_bytes(data_of(SESSION[:9]))
            first = await service.import_file(path)
            path.write_bytes(data_of(SESSION))
            second = await service.import_file(path)
            third = await service.import_file(path)
            page = await service.messages("s-1", format_name="openai")
            return first, second, third, page, await service.status("s-1")

    first, second, third, page, status = anyio.run(work)
    assert (first.session_id, first.format, first.stored) == ("s-1", "codex", 9)
    assert (second.stored, third.stored, second.conflicts) == (len(SESSION) - 9, 0, 0)
    assert [message["role"] for message in page.messages] == [
        "user",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert status.owner == "client"


def test_real_rollouts_compact_into_valid_lists(shared):
    for file in sorted((shared / "transcripts" / "codex-rollout").iterdir()):
        data = file.read_bytes()
        result = compact_transcript([data], output="openai", target_tokens=8_000)
        assert sniff(data) == "codex"
        assert result.report.tokens_after <= 8_000 or result.report.status == "nothing_to_compact"
        waiting: set[str] = set()
        for message in result.messages:
            if message["role"] == "tool":
                assert message["tool_call_id"] in waiting
                waiting.discard(message["tool_call_id"])
            else:
                assert not waiting
                waiting = {made["id"] for made in message.get("tool_calls", ())}
