from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.compaction.policy import (
    MemoryPolicy,
    MicroPolicy,
    Policy,
    RestorePolicy,
    SessionMemoryCompactConfig,
    levels,
)
from mcp_compact.config import FALSY, SETTINGS, TRUTHY, Settings, default_db, effective, is_truthy, load_settings
from mcp_compact.errors import CompactError
from mcp_compact.presets import PRESETS
from mcp_compact.settings_table import MOST, Setting

ENABLE, DISABLE = "ENABLE_CLAUDE_CODE_SM_COMPACT", "DISABLE_CLAUDE_CODE_SM_COMPACT"
FLAG_MEMORY, FLAG_COMPACT = "MCP_COMPACT_FLAG_SESSION_MEMORY", "MCP_COMPACT_FLAG_SM_COMPACT"
CONFIG = "MCP_COMPACT_SM_COMPACT_CONFIG"


def load(**environ: str) -> Settings:
    return load_settings(environ)


def test_nothing_set_gives_the_defaults_and_no_warning() -> None:
    settings = load()
    assert settings.policy == Policy()
    assert settings.warnings == ()
    assert settings.historic == ()
    assert settings.roots is None
    assert settings.context_window is None


def test_the_environment_itself_is_read_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_COMPACT_SCOPE", "all")
    assert load_settings().scope == "all"


@pytest.mark.parametrize("value", [*TRUTHY, " TRUE ", "Yes\n", "oN"])
def test_these_are_truthy(value: str) -> None:
    assert is_truthy(value)


@pytest.mark.parametrize("value", [*FALSY, "", " ", "2", "y", "enabled"])
def test_these_are_not_truthy(value: str) -> None:
    assert not is_truthy(value)


# --- session-memory compaction: the first rule that applies wins


def test_enabling_wins_over_disabling_and_over_both_flags() -> None:
    assert load(**{ENABLE: "1", DISABLE: "1", FLAG_MEMORY: "0", FLAG_COMPACT: "0"}).policy.sm_compact


def test_disabling_wins_over_both_flags() -> None:
    assert not load(**{DISABLE: "true", FLAG_MEMORY: "1", FLAG_COMPACT: "1"}).policy.sm_compact


def test_a_switch_that_is_not_truthy_decides_nothing() -> None:
    assert load(**{ENABLE: "0"}).policy.sm_compact
    assert load(**{DISABLE: "no"}).policy.sm_compact
    assert not load(**{ENABLE: "off", FLAG_COMPACT: "off"}).policy.sm_compact


@pytest.mark.parametrize(("memory", "compact"), [("0", "1"), ("1", "0"), ("0", "0")])
def test_both_flags_must_be_on(memory: str, compact: str) -> None:
    assert not load(**{FLAG_MEMORY: memory, FLAG_COMPACT: compact}).policy.sm_compact
    assert load(**{FLAG_MEMORY: "1", FLAG_COMPACT: "1"}).policy.sm_compact


def test_the_session_memory_flag_alone_stops_extraction() -> None:
    assert not load(**{FLAG_MEMORY: "off"}).policy.session_memory
    assert load(**{FLAG_COMPACT: "off"}).policy.session_memory
    assert not load(**{FLAG_MEMORY: "off", ENABLE: "1"}).policy.session_memory


@pytest.mark.parametrize(("new", "old"), [(FLAG_MEMORY, "TENGU_SESSION_MEMORY"), (FLAG_COMPACT, "TENGU_SM_COMPACT")])
def test_historic_flags_work_are_noted_and_yield_to_the_new_names(new: str, old: str) -> None:
    settings = load(**{old: "0"})
    assert not settings.policy.sm_compact
    assert settings.historic == (old,)
    both = load(**{old: "0", new: "1"})
    assert both.policy.sm_compact
    assert both.historic == (old,)


def test_a_flag_that_is_no_flag_is_ignored_and_warned_of_once() -> None:
    settings = load(**{FLAG_MEMORY: "maybe"})
    assert settings.policy.session_memory
    assert settings.policy.sm_compact
    (warning,) = settings.warnings
    assert "'maybe'" in warning
    assert FLAG_MEMORY in warning


def test_a_bad_new_value_leaves_the_historic_one_in_force() -> None:
    settings = load(**{FLAG_COMPACT: "maybe", "TENGU_SM_COMPACT": "off"})
    assert not settings.policy.sm_compact
    assert len(settings.warnings) == 1


# --- limits of the kept tail


def test_each_limit_is_decided_by_its_own_variable_then_the_json_then_the_default() -> None:
    tail = load(MCP_COMPACT_SM_MIN_TOKENS="111", **{CONFIG: '{"min_tokens": 1, "max_tokens": 222}'}).policy.tail
    assert tail == SessionMemoryCompactConfig(111, 5, 222)


def test_the_json_may_be_in_snake_or_camel_case_and_under_its_historic_name() -> None:
    camel = '{"minTokens": 1, "minTextBlockMessages": 2, "maxTokens": 3}'
    snake = '{"min_tokens": 1, "min_text_block_messages": 2, "max_tokens": 3}'
    for name in (CONFIG, "TENGU_SM_COMPACT_CONFIG"):
        for text in (camel, snake):
            assert load(**{name: text}).policy.tail == SessionMemoryCompactConfig(1, 2, 3)
    assert load(**{CONFIG: "{}", "TENGU_SM_COMPACT_CONFIG": camel}).policy.tail == SessionMemoryCompactConfig()


BAD_NUMBERS = [
    "0",
    "-1",
    "-0.5",
    "true",
    "false",
    "NaN",
    "Infinity",
    "-Infinity",
    '"many"',
    "[]",
    "{}",
    "null",
    "1e999",
]


@pytest.mark.parametrize("bad", BAD_NUMBERS)
@pytest.mark.parametrize("field", ["min_tokens", "min_text_block_messages", "max_tokens"])
def test_a_bad_limit_in_the_json_is_ignored_and_warned_of_once(field: str, bad: str) -> None:
    settings = load(**{CONFIG: f'{{"{field}": {bad}}}'})
    assert settings.policy.tail == SessionMemoryCompactConfig()
    (warning,) = settings.warnings
    assert field in warning


@pytest.mark.parametrize("bad", ["0", "-7", "nan", "inf", "true", "ten", "1e400", "0.2", "1,000"])
def test_a_bad_variable_is_ignored_warned_of_once_and_the_json_counts(bad: str) -> None:
    settings = load(MCP_COMPACT_SM_MAX_TOKENS=bad, **{CONFIG: '{"max_tokens": 222}'})
    assert settings.policy.tail.max_tokens == 222
    assert len(settings.warnings) == 1
    assert load(MCP_COMPACT_SM_MAX_TOKENS=bad).policy.tail.max_tokens == 40_000


def test_a_bad_snake_case_value_leaves_the_camel_case_one_in_force() -> None:
    assert load(**{CONFIG: '{"min_tokens": null, "minTokens": 7}'}).policy.tail.min_tokens == 7


@pytest.mark.parametrize("broken", ["{", "[1]", "7", "null", '"x"', "{'min_tokens': 1}", "[" * 100_000, "9" * 5000])
def test_json_that_is_no_object_is_ignored_and_warned_of_once(broken: str) -> None:
    settings = load(**{CONFIG: broken})
    assert settings.policy.tail == SessionMemoryCompactConfig()
    assert len(settings.warnings) == 1


def test_a_broken_json_leaves_the_historic_one_in_force() -> None:
    assert load(**{CONFIG: "{", "TENGU_SM_COMPACT_CONFIG": '{"maxTokens": 9}'}).policy.tail.max_tokens == 9


# --- everything else


def test_every_number_reaches_its_place() -> None:
    policy = load(
        MCP_COMPACT_MEMORY_TOKENS="1",
        MCP_COMPACT_MEMORY_SECTION_TOKENS="2",
        MCP_COMPACT_MEMORY_FIRST_TOKENS="3",
        MCP_COMPACT_MEMORY_STEP_TOKENS="4",
        MCP_COMPACT_MEMORY_STEP_CALLS="5",
        MCP_COMPACT_MICRO_OLDER_THAN_MINUTES="6",
        MCP_COMPACT_MICRO_KEEP="7",
        MCP_COMPACT_MICRO_MEDIA_TOKENS="8",
        MCP_COMPACT_MIN_GAIN_PERCENT="9",
        MCP_COMPACT_REQUIRE_INSTRUCTIONS="no",
        MCP_COMPACT_MICRO_TOOLS="mcp__*, read_file,,",
        MCP_COMPACT_MICRO_EXCLUDE="Bash",
        MCP_COMPACT_RESTORE_TOKENS="10",
        MCP_COMPACT_RESTORE_SKILL_TOKENS="11",
        MCP_COMPACT_RESTORE_SKILLS_TOKENS="12",
        MCP_COMPACT_RESTORE_FILE_TOKENS="13",
        MCP_COMPACT_RESTORE_FILES="14",
    ).policy
    assert policy.restore == RestorePolicy(10, 11, 12, 13, 14)
    assert load().policy.restore == RestorePolicy()
    assert policy.memory == MemoryPolicy(1, 2, 3, 4, 5)
    assert policy.micro == MicroPolicy((*MicroPolicy().tools, "mcp__*", "read_file"), ("Bash",), 6, 7, 8)
    assert load().policy.micro == MicroPolicy()
    assert policy.min_gain_percent == 9
    assert not policy.require_instructions


def test_every_figure_and_switch_of_clearing_by_tokens_reaches_its_place() -> None:
    settings = load(
        MCP_COMPACT_MICRO_TRIGGER_TOKENS="11",
        MCP_COMPACT_MICRO_PROTECT_TOKENS="12",
        MCP_COMPACT_MICRO_CLEAR_AT_LEAST="13",
        MCP_COMPACT_MICRO_MAX_RESULT_TOKENS="14",
        MCP_COMPACT_MICRO_CLEAR_INPUTS="on",
        MCP_COMPACT_MICRO_CLEAR_OUTDATED_READS="1",
        MCP_COMPACT_MICRO_CLEAR_REPEATED_CALLS="yes",
        MCP_COMPACT_MICRO_CLEAR_FAILED_INPUTS="true",
    )
    micro = settings.policy.micro
    assert (micro.trigger_tokens, micro.protect_tokens, micro.clear_at_least, micro.max_result_tokens) == (
        11,
        12,
        13,
        14,
    )
    assert micro.clear_tool_inputs
    assert micro.clear_outdated_reads
    assert micro.clear_repeated_calls
    assert micro.clear_failed_inputs
    values = effective(settings)
    assert values["MCP_COMPACT_MICRO_MAX_RESULT_TOKENS"] == 14
    assert values["MCP_COMPACT_MICRO_CLEAR_FAILED_INPUTS"] is True


def test_what_is_off_or_left_to_the_window_has_no_figure_in_force() -> None:
    values = effective(load())
    assert values["MCP_COMPACT_MICRO_TRIGGER_TOKENS"] is None
    assert values["MCP_COMPACT_MICRO_MAX_RESULT_TOKENS"] is None
    assert values["MCP_COMPACT_MICRO_CLEAR_INPUTS"] is False


def test_a_file_folders_and_sizes_are_read(tmp_path: Path) -> None:
    settings = load(
        MCP_COMPACT_DB=str(tmp_path / "a.db"),
        MCP_COMPACT_ROOTS=os.pathsep.join([str(tmp_path), "", str(tmp_path / "b" / ".." / "c")]),
        MCP_COMPACT_CONTEXT_WINDOW="64000",
        MCP_COMPACT_PAGE_TOKENS="900",
        MCP_COMPACT_MAX_FILE_MB="3",
    )
    assert settings.db == tmp_path / "a.db"
    assert settings.roots == (tmp_path.resolve(), (tmp_path / "c").resolve())
    assert settings.context_window == 64_000
    assert settings.page_tokens == 900
    assert settings.max_file_bytes == 3 * 1024 * 1024


def test_the_home_of_nobody_is_warned_of_and_the_default_file_is_used() -> None:
    settings = load(MCP_COMPACT_DB="~no-such-user-at-all/x")
    (warning,) = settings.warnings
    assert "MCP_COMPACT_DB" in warning
    assert settings.db == load().db


def test_a_folder_that_cannot_be_found_opens_no_other_one() -> None:
    settings = load(MCP_COMPACT_ROOTS="~no-such-user-at-all/x")
    assert len(settings.warnings) == 1
    assert settings.roots == ()


def test_choices_are_found_in_any_case_and_others_are_warned_of() -> None:
    settings = load(MCP_COMPACT_SCOPE="ALL", MCP_COMPACT_SYNCHRONOUS="Full", MCP_COMPACT_LOG_LEVEL="debug")
    assert (settings.scope, settings.synchronous, settings.log_level) == ("all", "full", "DEBUG")
    bad = load(MCP_COMPACT_SCOPE="galaxy")
    assert bad.scope == "project"
    assert "project, all" in bad.warnings[0]


@pytest.mark.parametrize(
    ("text", "kept"), [("60%", "60%"), ("0.5%", "0.5%"), (" 180000 ", "180000"), ("1.8e5", "180000"), ("", "")]
)
def test_where_compaction_is_due_may_be_a_share_or_tokens(text: str, kept: str) -> None:
    settings = load(MCP_COMPACT_AT=text)
    assert settings.policy.compact_at == kept
    assert settings.warnings == ()


@pytest.mark.parametrize(
    "bad", ["0", "0%", "100%", "-5", "nan", "nan%", "inf", "soon", "%", "1e13", "0.5", "60%%", "1 8", "window-"]
)
def test_a_bad_place_for_compaction_is_ignored_and_warned_of(bad: str) -> None:
    settings = load(MCP_COMPACT_AT=bad)
    assert settings.policy.compact_at == ""
    assert len(settings.warnings) == 1


# --- presets, and thresholds that contradict each other


def test_a_preset_brings_a_harness_thresholds() -> None:
    codex, gemini, hands = (load(MCP_COMPACT_PRESET=name) for name in ("codex", " Gemini-CLI ", "openhands"))
    assert (codex.preset, codex.policy.compact_at, codex.policy.micro) == ("codex", "90%", MicroPolicy())
    assert (gemini.policy.compact_at, gemini.policy.micro.protect_tokens) == ("50%", 50_000)
    assert gemini.policy.micro.clear_at_least == 30_000
    assert (hands.policy.compact_at, hands.policy.min_gain_percent) == ("", 10)
    assert codex.warnings == gemini.warnings == hands.warnings == ()
    assert effective(codex)["MCP_COMPACT_PRESET"] == "codex"


def test_every_preset_is_known_to_the_documentation_and_gives_an_ordered_ladder() -> None:
    text = next(item.text for item in SETTINGS if item.name == "MCP_COMPACT_PRESET")
    for preset in PRESETS:
        assert preset.name in text
        for window in (1_000, 32_000, 200_000, 1_000_000):
            ladder = levels(window, load(MCP_COMPACT_PRESET=preset.name).policy.compact_at)
            assert 0 < ladder.warning <= ladder.compact < ladder.hard <= window, (preset.name, window)


def test_claude_codes_preset_is_our_own_ladder() -> None:
    for window in (20_000, 66_000, 200_000, 1_000_000):
        assert levels(window, load(MCP_COMPACT_PRESET="claude-code").policy.compact_at) == levels(window)


def test_a_figures_own_variable_wins_over_the_preset() -> None:
    settings = load(
        MCP_COMPACT_PRESET="gemini-cli",
        MCP_COMPACT_AT="60%",
        MCP_COMPACT_MICRO_PROTECT_TOKENS="7000",
        MCP_COMPACT_MIN_GAIN_PERCENT="9",
    )
    assert (settings.policy.compact_at, settings.policy.micro.protect_tokens) == ("60%", 7_000)
    assert settings.policy.min_gain_percent == 9
    assert settings.warnings == ("MCP_COMPACT_AT (60%) wins over the preset gemini-cli (50%)",)
    assert load(MCP_COMPACT_PRESET="codex", MCP_COMPACT_AT="90%").warnings == ()


def test_an_unknown_preset_is_warned_of_with_the_known_ones() -> None:
    settings = load(MCP_COMPACT_PRESET="cursor")
    assert settings.policy == Policy()
    assert len(settings.warnings) == 1
    assert "claude-code, codex" in settings.warnings[0]


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"MCP_COMPACT_SM_MIN_TOKENS": "50000"}, "minimum of 50000 tokens exceeds its maximum of 40000"),
        ({"MCP_COMPACT_MEMORY_SECTION_TOKENS": "13000"}, "may have 13000 tokens but all of it 12000"),
        ({"MCP_COMPACT_AT": "180000", "MCP_COMPACT_CONTEXT_WINDOW": "100000"}, "compaction is due at 99999"),
        ({"MCP_COMPACT_AT": "10000", "MCP_COMPACT_MEMORY_TOKENS": "11000"}, "alone may have 11000 tokens"),
        ({"MCP_COMPACT_CONTEXT_WINDOW": "16000", "MCP_COMPACT_MEMORY_TOKENS": "9000"}, "compaction is due at 8000"),
    ],
)
def test_thresholds_that_contradict_each_other_are_warned_of(environ: dict[str, str], words: str) -> None:
    warnings = load_settings(environ).warnings
    assert len(warnings) == 1
    assert words in warnings[0]


@pytest.mark.parametrize(
    "environ",
    [{"MCP_COMPACT_SM_MAX_TOKENS": "500"}, {"MCP_COMPACT_CONTEXT_WINDOW": "8000"}, {"MCP_COMPACT_MEMORY_TOKENS": "99"}],
)
def test_a_default_that_yields_to_a_setting_contradicts_nothing(environ: dict[str, str]) -> None:
    assert load_settings(environ).warnings == ()


def test_extraction_is_on_and_automatic_compaction_off_unless_set() -> None:
    assert (load().extract, load().auto) == (True, False)
    settings = load(MCP_COMPACT_EXTRACT="0", MCP_COMPACT_AUTO="1")
    assert (settings.extract, settings.auto) == (False, True)
    assert (effective(settings)["MCP_COMPACT_EXTRACT"], effective(settings)["MCP_COMPACT_AUTO"]) == (False, True)


@pytest.mark.parametrize("bad", ["soon", "window-", "-5"])
def test_a_threshold_that_makes_no_sense_is_ignored_and_the_preset_counts(bad: str) -> None:
    settings = load(MCP_COMPACT_AT=bad, MCP_COMPACT_PRESET="codex")
    assert settings.policy.compact_at == "90%"
    assert len(settings.warnings) == 1


# --- who writes summaries


def test_the_calling_agent_writes_summaries_and_no_key_in_the_environment_changes_that() -> None:
    settings = load(OPENAI_API_KEY="sk-1", ANTHROPIC_API_KEY="sk-2", MCP_COMPACT_LLM_API_KEY="sk-3")
    assert settings.summarizers == ("agent",)
    assert settings.llm.model == ""
    assert load(OPENAI_API_KEY="sk-1").llm.api_key == ""


def test_writers_are_asked_in_the_order_given_and_unknown_ones_are_warned_of() -> None:
    settings = load(MCP_COMPACT_SUMMARIZERS=" Provider, sampling,agent, provider,")
    assert settings.summarizers == ("provider", "sampling", "agent")
    assert settings.warnings == ()
    odd = load(MCP_COMPACT_SUMMARIZERS="oracle, provider")
    assert odd.summarizers == ("provider",)
    assert "'oracle'" in odd.warnings[0]
    assert load(MCP_COMPACT_SUMMARIZERS="oracle").summarizers == ("agent",)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("google:gemini-3-flash", "GOOGLE_API_KEY"),
        ("google:gemini-3-flash", "GEMINI_API_KEY"),
    ],
)
def test_a_providers_usual_key_serves_where_no_own_one_is_set(model: str, name: str) -> None:
    assert load(MCP_COMPACT_LLM_MODEL=model, **{name: " sk-usual "}).llm.api_key == "sk-usual"
    both = load(MCP_COMPACT_LLM_MODEL=model, MCP_COMPACT_LLM_API_KEY="sk-own", **{name: "sk-usual"})
    assert both.llm.api_key == "sk-own"


def test_a_providers_usual_key_goes_to_no_other_provider_and_no_other_address() -> None:
    keys = {"OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": "sk-2"}
    assert load(MCP_COMPACT_LLM_MODEL="google:gemini-3-flash", **keys).llm.api_key == ""
    assert load(MCP_COMPACT_LLM_MODEL="openai-compatible:qwen3", **keys).llm.api_key == ""
    elsewhere = load(MCP_COMPACT_LLM_MODEL="openai:gpt-5-mini", MCP_COMPACT_LLM_BASE_URL="http://box:1/v1", **keys)
    assert elsewhere.llm.api_key == ""


def test_no_secret_of_the_writer_is_ever_shown() -> None:
    settings = load(MCP_COMPACT_LLM_API_KEY="sk-hidden", MCP_COMPACT_LLM_BASE_URL="https://me:hush@gate.example/v1")
    assert effective(settings)["MCP_COMPACT_LLM_API_KEY"] == "set"
    assert effective(load())["MCP_COMPACT_LLM_API_KEY"] == "not set"
    assert "gate.example" in str(effective(settings))
    for secret in ("sk-hidden", "hush"):
        assert secret not in str(effective(settings))
        assert secret not in str(settings.warnings)
    assert "sk-hidden" not in repr(settings)


def test_the_writers_limits_are_read() -> None:
    llm = load(MCP_COMPACT_LLM_TIMEOUT_S="7", MCP_COMPACT_LLM_MAX_TOKENS="900").llm
    assert (llm.timeout_s, llm.max_tokens) == (7, 900)
    bad = load(MCP_COMPACT_LLM_TIMEOUT_S="0", MCP_COMPACT_LLM_MAX_TOKENS="all")
    assert (bad.llm.timeout_s, bad.llm.max_tokens) == (120, 12_000)
    assert len(bad.warnings) == 2


def test_an_unknown_name_is_warned_of_with_the_nearest_known_one() -> None:
    (warning,) = load(MCP_COMPACT_SM_MIN_TOKEN="5").warnings
    assert "MCP_COMPACT_SM_MIN_TOKENS" in warning
    (other,) = load(MCP_COMPACT_QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ="5").warnings
    assert "did you mean" not in other
    assert load(OTHER_TOOL="5", MCP_COMPACT_SHARED="x").warnings == ()


def test_a_warning_shows_no_more_than_the_beginning_of_a_value() -> None:
    (warning,) = load(MCP_COMPACT_PAGE_TOKENS="sk-" + "x" * 300).warnings
    assert len(warning) < 120


@pytest.mark.parametrize(
    ("platform", "environ", "end"),
    [
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/mcp-compact/archive.db"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "/home/ann/.local/share/mcp-compact/archive.db"),
        ("linux", {}, "/home/ann/.local/share/mcp-compact/archive.db"),
        ("darwin", {}, "/home/ann/Library/Application Support/mcp-compact/archive.db"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/mcp-compact/archive.db"),
        ("win32", {}, "/home/ann/AppData/Local/mcp-compact/archive.db"),
    ],
)
def test_the_archive_lies_in_the_users_data_directory(
    monkeypatch: pytest.MonkeyPatch, platform: str, environ: dict[str, str], end: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("HOME", "/home/ann")
    assert load_settings(environ).db == Path(end)


def test_the_archives_place_can_be_asked_for_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_db() == Path("/data/mcp-compact/archive.db")


def test_without_a_home_an_error_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.path.expanduser", str)
    assert load(XDG_DATA_HOME="/data").db == Path("/data/mcp-compact/archive.db")
    assert load(MCP_COMPACT_DB="/data/a.db").db == Path("/data/a.db")
    with pytest.raises(CompactError, match="MCP_COMPACT_DB"):
        load()


def test_every_setting_has_a_value_in_force_or_decides_others() -> None:
    deciding = {ENABLE, DISABLE, CONFIG}
    assert set(effective(load())) == {item.name for item in SETTINGS} - deciding


def test_the_documented_defaults_are_the_defaults_in_force() -> None:
    values = effective(load())
    for item in SETTINGS:
        if item.default.isdigit():
            assert values[item.name] == int(item.default), item.name
        if item.default in ("on", "off"):
            assert values[item.name] is (item.default == "on"), item.name


def test_the_values_in_force_are_those_that_were_set(tmp_path: Path) -> None:
    values = effective(load(MCP_COMPACT_AT="60%", MCP_COMPACT_ROOTS=str(tmp_path), MCP_COMPACT_MAX_FILE_MB="3"))
    assert values["MCP_COMPACT_AT"] == "60%"
    assert values["MCP_COMPACT_ROOTS"] == [str(tmp_path.resolve())]
    assert values["MCP_COMPACT_MAX_FILE_MB"] == 3


def test_hooks_are_none_unless_named_and_their_limit_and_switch_reach_their_place(tmp_path: Path) -> None:
    default = load()
    assert (default.hooks, default.hook_timeout_s, default.hook_entry_points) == (None, 10, True)
    file = tmp_path / "hooks.json"
    named = load(MCP_COMPACT_HOOKS=f" {file} ", MCP_COMPACT_HOOK_TIMEOUT_S="30", MCP_COMPACT_HOOK_ENTRY_POINTS="off")
    assert (named.hooks, named.hook_timeout_s, named.hook_entry_points) == (file, 30, False)
    assert effective(named)["MCP_COMPACT_HOOKS"] == str(file)


def test_a_hooks_file_that_cannot_be_found_is_not_ignored() -> None:
    assert load(MCP_COMPACT_HOOKS="~no-such-user-here/hooks.json").hooks == Path("~no-such-user-here/hooks.json")


NUMBERS = [item for item in SETTINGS if item.kind in MOST]


@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
def test_every_number_is_taken_up_to_its_limit_and_ignored_with_a_warning_above_it(setting: Setting) -> None:
    usual = effective(load())[setting.name]
    for good in (1, setting.most):
        settings = load_settings({setting.name: str(good)})
        assert effective(settings)[setting.name] == good
        assert not any("is ignored" in warning for warning in settings.warnings)
    for bad in (str(setting.most + 1), "1e300", "0", "-1", "0.5", "many"):
        settings = load_settings({setting.name: bad})
        assert effective(settings)[setting.name] == usual
        assert [w for w in settings.warnings if w.startswith(f"{setting.name}: '{bad}' is ")]


def test_no_number_is_without_a_limit() -> None:
    values = effective(load())
    numbers = {name for name, value in values.items() if isinstance(value, int) and not isinstance(value, bool)}
    assert numbers <= {item.name for item in NUMBERS}


def test_the_limits_of_numbers_hold_in_the_json_object_too() -> None:
    settings = load(MCP_COMPACT_SM_COMPACT_CONFIG='{"max_tokens": 1e300, "min_tokens": 3}')
    assert (settings.policy.tail.min_tokens, settings.policy.tail.max_tokens) == (3, 40_000)
    assert any("MCP_COMPACT_SM_COMPACT_CONFIG max_tokens" in warning for warning in settings.warnings)


NAMES = [name for item in SETTINGS for name in (item.name, *item.historic) if "DB" not in name and "ROOTS" not in name]
VALUES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["1", "0", "true", "60%", "{}", "NaN", "1e999", "-3", "all", "full", "²", "٣"]),
    st.dictionaries(st.sampled_from(["min_tokens", "maxTokens"]), st.integers() | st.none() | st.booleans()).map(
        json.dumps
    ),
)


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6))
def test_no_environment_is_too_odd_and_every_figure_stays_positive(environ: dict[str, str]) -> None:
    settings = load_settings(environ)
    policy = settings.policy
    figures = [policy.tail.min_tokens, policy.tail.min_text_block_messages, policy.tail.max_tokens]
    figures += [policy.micro.keep_recent, policy.memory.total_tokens, settings.page_tokens, settings.max_file_bytes]
    assert min(figures) >= 1
    assert len(set(settings.warnings)) == len(settings.warnings)
