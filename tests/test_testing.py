from __future__ import annotations

from mcp_compact.messages.blocks import parse_block
from mcp_compact.messages.weights import countable
from mcp_compact.testing import START_MS, FixedClock, Talk, as_messages, image, turns


def test_the_fixed_clock_stands_still_and_numbers_its_uuids() -> None:
    clock = FixedClock()
    assert clock.now_ms() == clock.now_ms() == START_MS
    assert clock.new_uuid() != clock.new_uuid()
    clock.at_ms += 5
    assert clock.now_ms() == START_MS + 5


def test_a_talk_numbers_its_records_and_gives_them_as_messages() -> None:
    talk = Talk()
    talk.user("hi")
    talk.call("t1", name="Bash")
    talk.results("t1")
    assert [record.seq for record in talk.records] == [1, 2, 3]
    assert [message["role"] for message in as_messages(turns(talk.records))] == ["user", "assistant", "user"]


def test_an_image_is_measured_by_its_header_and_may_be_unmeasurable() -> None:
    assert countable([parse_block(image(280))])[1].media == 100
    assert countable([parse_block(image())])[1].media == 2000
