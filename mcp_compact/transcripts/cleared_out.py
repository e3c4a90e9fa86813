"""What stands for a cleared result, in words for formats whose results do not hold the id that `get_original` takes.

In Anthropic's messages the sentence points to the block's own `tool_use_id`, and is the same in every result. OpenAI
calls that field otherwise, and a Gemini result need not have an id at all: there the sentence holds it.
"""

from __future__ import annotations

from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.ids import ToolUseId

MARK = ClearedText().mark
NAMED = 'Call get_original with id "{id}" to read it again.'


def naming(text: str, call: ToolUseId) -> str:
    """The text of a result; where it is a cleared one's, with the id of the call in it."""
    if not text.endswith(MARK):
        return text
    return text.removesuffix(ClearedText().hint) + NAMED.format(id=call)
