"""What we write into a context ourselves. Short, constant, and without a name that the conversation does not hold."""

from __future__ import annotations

OPENING = "The start of this conversation was replaced by the notes below. Go on with the work without asking"
"""How each of our summaries begins."""
IN_ARCHIVE, NO_ARCHIVE = "; nothing was lost.", "; the rest is gone."
TAIL_FOLLOWS = "The newest messages follow; cleared ones say so."
SEARCH = (
    'Everything that was said before can be searched: search_messages(query, session_id="{session_id}"); '
    "get_original gives a message or result back whole."
)
MUST_KEEP = "To be kept, word for word:"


def summary_message(memory: str, *, tail: bool, session_id: str = "", must_keep: str = "") -> str:
    """The message that stands for what left: how to go on, how to search (where there is a server), the memory."""
    opening = OPENING + (IN_ARCHIVE if session_id else NO_ARCHIVE)
    lines = [" ".join([opening, *([TAIL_FOLLOWS] if tail else [])])]
    if session_id:
        lines.append(SEARCH.format(session_id=session_id))
    if must_keep.strip():
        lines.append(f"{MUST_KEEP}\n{must_keep.strip()}")
    return "\n\n".join([*lines, memory.strip()])
