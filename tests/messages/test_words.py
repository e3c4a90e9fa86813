from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.codec import decode_message
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.words import (
    PASTED_CHARS,
    is_instruction,
    sentences,
    standing_instructions,
    typed,
    users_words,
    without_injected,
)


def user(content, **more) -> Record:
    return Record(
        MessageUuid("u"), "user", b"", {}, decode_message({"role": "user", "content": content}, "user"), **more
    )


def test_what_a_person_typed_is_the_text_of_the_user_record():
    assert users_words(user("fix the parser")) == "fix the parser"
    assert users_words(user([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])) == "one\ntwo"


def test_what_the_client_puts_below_a_plan_is_not_its_users() -> None:
    below = (
        "If you need specific details from before exiting plan mode (like exact code snippets, error messages, or "
        "content you generated), read the full transcript at: /home/me/session.jsonl"
    )

    assert users_words(user(f"Implement the parser.\n\n{below}")) == "Implement the parser."
    assert users_words(user("If you need specific details, ask me.")) == "If you need specific details, ask me."


@pytest.mark.parametrize("more", [{"is_meta": True}, {"is_summary": True}, {"agent_id": "a1"}])
def test_meta_records_summaries_and_sub_agents_prompts_are_nobodys_words(more):
    assert users_words(user("always do this", **more)) == ""


def test_tool_results_and_assistant_text_are_nobodys_words():
    assert users_words(user([{"type": "tool_result", "tool_use_id": "t", "content": "never delete"}])) == ""
    said = Record(MessageUuid("a"), "assistant", b"", {}, decode_message({"role": "assistant", "content": "never"}))
    assert users_words(said) == ""


@pytest.mark.parametrize(
    "injected",
    [
        "<system-reminder>never do this</system-reminder>",
        "<command-name>/clear</command-name>",
        "<local-command-stdout>must not\nrun</local-command-stdout>",
        "<task-notification>done</task-notification>",
        "<ide_opened_file>always</ide_opened_file>",
        "<bash-stdout>x</bash-stdout>",
        "<user-prompt-submit-hook>y</user-prompt-submit-hook>",
    ],
)
def test_injected_text_in_tags_goes_and_the_words_around_it_stay(injected):
    assert typed(injected) == ""
    assert " ".join(typed(f"before {injected} after").split()) == "before after"


COMMANDS = (
    "<command-name>/feature</command-name>\n<command-args>{}</command-args>",
    "<command-message>feature</command-message>\n<command-name>/feature</command-name>\n<command-args>{}</command-args>",
    "<command-name>/feature</command-name>\n  <command-message>feature</command-message>\n  <command-args>{}</command-args>",
)
ASKED = "Build the CSV exporter. Never use semicolons as delimiter."


@pytest.mark.parametrize("form", COMMANDS)
def test_what_is_typed_behind_a_command_with_a_slash_is_its_users_with_the_commands_name(form):
    words = users_words(user(form.format(ASKED)))

    assert words == f"/feature\n{ASKED}"
    assert "Never use semicolons as delimiter." in standing_instructions(words)
    assert users_words(user(form.format("Compare <img src='a.png'/> and <b>this</b>."))).endswith("<b>this</b>.")


@pytest.mark.parametrize("form", COMMANDS)
def test_what_a_client_puts_around_and_into_a_command_is_nobodys_words(form):
    out = "<local-command-stdout>never run</local-command-stdout>"
    reminder = "<system-reminder>always obey</system-reminder>"

    assert users_words(user(form.format(""))) == users_words(user(form.format(" \n "))) == ""
    assert users_words(user(form.format(reminder) + out)) == ""
    assert users_words(user(form.format(f"{ASKED}{reminder}") + out)) == f"/feature\n{ASKED}"
    assert users_words(user(form.format("opus").replace("/feature", "/model"))) == ""
    assert users_words(user(form.format(ASKED), is_meta=True)) == ""


@pytest.mark.parametrize("form", COMMANDS)
def test_of_a_document_that_a_command_was_given_its_title_stays_with_the_name(form):
    document = "# The plan of the exporter\n\n## Parts\n\n" + "| a | b |\n" * 1000
    words = users_words(user(form.format(document)))

    assert words == "/feature # The plan of the exporter"
    assert users_words(user(form.format(f"Do this next.\n\n{document}"))).endswith("Do this next.")
    assert "| a | b |" in without_injected(form.format(document))


def test_nested_injected_tags_go_whole_and_an_unclosed_one_stays_text():
    nested = "<system-reminder>a <system-reminder>b</system-reminder> c</system-reminder>"
    assert typed(f"{nested}use tabs") == "use tabs"
    assert typed("<system-reminder> is a tag that I ask about") == "<system-reminder> is a tag that I ask about"


def test_tags_of_the_users_own_stay():
    assert without_injected("put <b>this</b> in") == "put <b>this</b> in"


@pytest.mark.parametrize(
    "text",
    ["Caveat: the messages below", "[Request interrupted by user]", "This session is being continued from a previous"],
)
def test_notes_of_the_harness_are_not_typed(text):
    assert typed(text) == ""


def test_of_a_pasted_document_only_a_separate_first_or_last_paragraph_is_the_users():
    pasted = "lorem ipsum dolor\n" * (PASTED_CHARS // 10)
    assert typed(pasted) == ""
    assert typed(f"Please review this.\n\n{pasted}\n\nNever change the header.") == (
        "Please review this.\n\nNever change the header."
    )
    assert typed(f"```\ncode\n```\n\n{pasted}") == ""


@pytest.mark.parametrize(
    "sentence",
    [
        "Keep every commit subject under 58 characters.",
        "New dependencies are out unless I name them.",
        "Use tabs in Makefiles and two spaces everywhere else.",
        "Please never touch anything below third_party/.",
        "The staging database is off limits until I say otherwise.",
        "From now on British spelling in comments.",
        "Whenever you rename a function, leave the old name as a deprecated alias.",
        "Timeouts in tests have to stay below 250 ms.",
        "I only want to see the patch, skip the explanations.",
        "Leave the TODO comments alone, they belong to another team.",
        "Log lines start with the word marlin, no exceptions.",
        "no new dependencies",
        "Bitte ändere niemals die Dateien im Ordner archiv/.",
        "Ab jetzt nur noch kleine Commits.",
        "N'utilise jamais de tabulations.",
        "Il faut toujours lancer les tests.",
        "Nunca borres los datos de prueba.",
        "A partir de ahora usa espacios.",
        "Não altere o esquema sem avisar.",
        "Никогда не удаляй логи.",
        "新增的注释一律用中文书写，不要使用英文。",
        "提交之前必须先运行完整的测试",
        "コメントは必ず日本語で書いてください。",
        "테스트를 반드시 실행하세요",
    ],
)
def test_standing_instructions_are_found_word_for_word_in_many_languages(sentence):
    assert standing_instructions(sentence) == (sentence,)


@pytest.mark.parametrize("sentence", ["Does it never end?", "thanks, looks great", "ok", "为什么不能运行？", "x" * 700])
def test_questions_thanks_and_walls_of_text_are_no_instructions(sentence):
    assert not is_instruction(sentence)


def test_instructions_are_taken_out_of_the_sentences_around_them_once_each():
    text = (
        "The build is slow today. Never push to main. It was fast before!\n- Always run the tests\nNever push to main."
    )
    assert standing_instructions(text) == ("Never push to main.", "Always run the tests")


def test_a_million_blanks_or_open_tags_take_no_longer_than_other_text():
    for text in (
        " " * 1_000_000,
        "." + " " * 1_000_000 + "x",
        "<a" * 300_000,
        "<system-reminder>" * 50_000,
        "\n" * 10**6,
    ):
        typed(text)
        standing_instructions(text)


@given(st.text(max_size=400))
def test_every_instruction_stands_in_the_text(text):
    assert all(found in text for found in standing_instructions(text))


@given(st.text(max_size=400))
def test_sentences_lose_nothing_but_marks_and_blanks(text):
    joined = "".join(sentences(text))
    assert sorted(c for c in joined if c.isalnum()) == sorted(c for c in text if c.isalnum())


@given(st.text(alphabet="ab. !?\n\t。！；-*", max_size=30))
def test_a_sentence_ends_at_a_mark_before_white_space_and_at_every_mark_of_a_dense_script(text: str):
    plain = re.compile(r"\n+|(?<=[.!?])[ \t]+(?=\S)|(?<=[。！？；])")
    unmarked = [re.sub(r"^(?:[-*+]\s+)+", "", piece.strip()) for piece in plain.split(text)]
    assert sentences(text) == [piece for piece in unmarked if piece.strip("-*+")]
