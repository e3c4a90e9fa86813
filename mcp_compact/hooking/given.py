"""What a client tells a hook on its standard input: one JSON object.

Codex tells the same as Claude Code. Gemini CLI has names of its own for two events. opencode and pi have no hooks of
this kind: there a plugin of ours stands between, which tells what Claude Code would.
"""

from __future__ import annotations

import json

from mcp_compact.errors import CallerError

MOST_BYTES = 32 << 20
"""A prompt or a summary may stand in it; nothing larger is read."""
MOST_DOCUMENT_BYTES = 256 << 20
"""The same where a whole session stands in it: to read it takes some times as much memory."""
EVENTS = ("SessionStart", "UserPromptSubmit", "PreCompact", "PostCompact", "Stop", "SessionEnd")
CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE, PI = "claude-code", "codex", "gemini-cli", "opencode", "pi"
CLIENTS = (CLAUDE_CODE, CODEX, GEMINI_CLI, OPENCODE, PI)
_OTHER_NAMES = {"beforeagent": "UserPromptSubmit", "afteragent": "Stop"}


class Given:
    """The input, as far as it is of use. A plain class: a dataclass costs a hook more than its work."""

    __slots__ = (
        "client", "cwd", "document", "event", "own_event", "session_id", "source", "summary", "transcript", "trigger",
    )  # fmt: skip

    def __init__(self, raw: dict[str, object], named: str = "", client: str = CLAUDE_CODE) -> None:
        self.client = client
        self.own_event = _text(raw, "hook_event_name") or named
        """As the client calls it: an answer names it so."""
        self.event = event_named(self.own_event)
        self.session_id = _text(raw, "session_id").strip()
        self.transcript = _text(raw, "transcript_path")
        self.cwd = _text(raw, "cwd")
        self.source = _text(raw, "source")
        """Of a start: `startup`, `resume`, `clear` or `compact`."""
        self.trigger = _text(raw, "trigger")
        """Of a compaction: `manual` or `auto`."""
        self.summary = _text(raw, "compact_summary")
        document = raw.get("document") if client == OPENCODE else None
        self.document: dict[str, object] | None = document if isinstance(document, dict) else None
        """The session itself, of a client that keeps it in no file that is read here."""


def given(data: bytes, named: str = "", client: str = CLAUDE_CODE) -> Given:
    """The input read. `named` is the event of the command line, for a client that does not say it.

    Raises CallerError `bad_hook_input`, or `session_too_large` where a session is handed over that is.
    """
    if len(data) > most_bytes(client):
        raise too_large(client)
    try:
        raw = json.loads(data.decode("utf-8", "replace") or "null")
    except (ValueError, RecursionError):
        raw = None
    if not isinstance(raw, dict):
        raise CallerError("bad_hook_input", "The hook's input is no JSON object.", "A client starts it, not a person.")
    if client == OPENCODE and raw.get("document") is False:
        # The plugin could not even write it down.
        raise too_large(client)
    return Given(raw, named, client)


def most_bytes(client: str) -> int:
    """So much of a client's input is read at most."""
    return MOST_DOCUMENT_BYTES if client == OPENCODE else MOST_BYTES


def too_large(client: str) -> CallerError:
    """The refusal of an input that is larger."""
    limit = f"{most_bytes(client) >> 20} MB"
    if client != OPENCODE:
        return CallerError("bad_hook_input", f"The hook's input is larger than {limit}.")
    return CallerError(
        "session_too_large",
        f"The opencode session is larger than {limit}, so that it is not recorded any more.",
        "Go on in a new session; `opencode export` and `mcp-compact import` bring this one into the archive.",
    )


def words_given(words: list[str]) -> tuple[str, str]:
    """The event and the client of the command line: `[EVENT] [--client NAME]`. Raises CallerError `bad_hook_words`."""
    client, event, rest = CLAUDE_CODE, "", list(words)
    while rest:
        word = rest.pop(0)
        if word == "--client" or word.startswith("--client="):
            client = word.partition("=")[2] or (rest.pop(0) if rest else "")
        else:
            event = event or word
    if client not in CLIENTS:
        raise CallerError(
            "bad_hook_words", f"No client with hooks is called {client[:40]!r}.", f"There are {', '.join(CLIENTS)}."
        )
    return event, client


def event_named(name: str) -> str:
    """An event by a client's name for it, or as the command line has it (`pre-compact`); empty for any other."""
    plain = name.replace("-", "").replace("_", "").lower()
    return _OTHER_NAMES.get(plain) or next((event for event in EVENTS if event.lower() == plain), "")


def _text(raw: dict[str, object], name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""
