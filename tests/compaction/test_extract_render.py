from __future__ import annotations

from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_passages import ASSISTANT, OUTPUT, Passage
from mcp_compact.compaction.extract_render import joined
from mcp_compact.messages.memory_document import WORKLOG


def of(origin: str, *texts: str) -> str:
    splitter = Splitter("")
    lines = tuple(splitter.line(text) for text in texts)
    return joined(lines, Passage(0, origin, WORKLOG, "", lines))


def test_a_mark_of_a_list_or_heading_is_taken_off_the_start_of_what_the_model_said_and_nowhere_else():
    assert of(ASSISTANT, "- The tax is a - b here.", "## Then", "* **Base** (`cart.py`): 2 * 3") == (
        "The tax is a - b here. Then **Base** (`cart.py`): 2 * 3"
    )
    assert of(ASSISTANT, "- - twice a list") == "twice a list"


def test_lines_of_tools_stay_as_they_are():
    assert of(OUTPUT, "- one", "# two") == "- one / # two"
