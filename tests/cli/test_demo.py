from __future__ import annotations

import json

import pytest

from mcp_compact.cli.demo import failures
from mcp_compact.cli.demo_report import lines
from mcp_compact.cli.terminal import Terminal
from mcp_compact.cli.text import width
from tests.cli.conftest import as_lines, records

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def sample_steps(tmp_path_factory):
    """The demo of the shipped sample, played once."""
    from mcp_compact.cli.demo import _played, sample
    from mcp_compact.cli.output import plain

    steps = plain(_played(sample()))
    return {
        **steps,
        "is_sample": True,
        "next": {"client": "", "how": "Run", "command": "x", "others": []},
        "failures": [],
    }


def test_the_sample_shows_a_large_reduction_with_nothing_lost(sample_steps):
    done = sample_steps["compact"]
    assert done["status"] in ("compacted", "prepared")
    assert sample_steps["status"]["message_tokens"] > 60_000
    assert done["tokens_after"] < 0.5 * sample_steps["status"]["message_tokens"]
    assert failures(sample_steps) == []


def test_what_left_is_found_and_comes_back_byte_for_byte(sample_steps):
    search, original, undo = (sample_steps[name] for name in ("search", "original", "undo"))
    assert search["in_context"] is False
    assert search["query"].lower() in search["hit"]["snippet"].lower()
    assert original["same_bytes"] is True
    assert original["bytes"] > 1000
    assert undo["same_hash"] is True


def test_the_picture_adds_up_to_the_servers_figures(sample_steps):
    before = sum(item["tokens"] for item in sample_steps["context_before"]["slices"])
    after = sum(item["tokens"] for item in sample_steps["context_after"]["slices"])
    assert before == sample_steps["status"]["message_tokens"]
    assert after == sample_steps["compact"]["tokens_after"]
    assert any(item["kind"] == "memory" for item in sample_steps["context_after"]["slices"])


@pytest.mark.parametrize("screen", [Terminal(), Terminal(blocks=False)], ids=["blocks", "ascii"])
def test_the_page_fits_eighty_columns(sample_steps, screen):
    page = lines(sample_steps, screen)
    assert max(map(width, page)) <= 80
    assert "\x1b" not in "".join(page)
    text = "\n".join(page)
    for words in ("What fills the context", "What was kept, and why", "how it comes back", "The memory", "Seconds"):
        assert words in text


def test_the_page_says_what_did_not_hold(sample_steps):
    broken = {**sample_steps, "undo": {**sample_steps["undo"], "same_hash": False}}
    said = failures(broken)
    assert said
    page = "\n".join(lines({**broken, "failures": said}, Terminal()))
    assert "FAILED" in page
    assert "ANOTHER hash" in page


def test_where_no_result_was_cleared_the_servers_reason_stands(sample_steps):
    why = "no large result but the newest 5 is older than 60 minutes"
    micro = {**sample_steps["microcompact"], "cleared": [], "reason": "nothing_old_enough", "detail": why}
    page = " ".join(" ".join(lines({**sample_steps, "microcompact": micro}, Terminal())).split())
    assert f"nothing to clear: {why}" in page


def test_a_small_transcript_is_compacted_to_half_and_nothing_of_the_users_is_touched(program, tmp_path, archive):
    transcript = tmp_path / "small" / "session.jsonl"
    transcript.parent.mkdir()
    transcript.write_text(as_lines(records(tmp_path, rounds=6)))
    before = transcript.read_bytes()
    done = program("demo", str(transcript))
    assert (done.code, done.err) == (0, "")
    assert "half" in done.out
    assert "the same bytes as in the transcript" in done.out
    assert "the same hash as before" in done.out
    assert transcript.read_bytes() == before
    assert not archive.exists()
    assert list(transcript.parent.iterdir()) == [transcript]


def test_a_conversation_of_one_message_ends_well_too(program, tmp_path):
    path = tmp_path / "one.json"
    path.write_text(json.dumps([{"role": "user", "content": "Hello"}]))
    done = program("demo", str(path), "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["compact"]["status"] == "nothing_to_compact"
    assert done.json["failures"] == []
    assert done.json["next"]["command"]
