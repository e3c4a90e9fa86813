"""The hooks of clients: `mcp-compact hook`, or faster `python -I -m mcp_compact.hook`, with the client's JSON on stdin.

Words: the event's name, for a client that does not say it, and `--client NAME` for any but Claude Code.

A hook never fails its client: whatever goes wrong, it ends with 0 and says nothing. The fault is kept for
`mcp-compact doctor`, and the person is told in one line at the next start.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Sequence

from mcp_compact import places
from mcp_compact.adapters.sqlite import hook_rows
from mcp_compact.errors import CompactError
from mcp_compact.hooking import notes, noting
from mcp_compact.hooking.given import CODEX, GEMINI_CLI, OPENCODE, Given, given, most_bytes, words_given

DONE, BLOCKS = 0, 2
"""2 asks the client not to compact."""
NS_IN_MS = 1_000_000
PASSING = ("store_locked", "busy", "memory_changed")
"""Faults that pass by themselves: the next hook makes up for them."""


class Answer:
    """What the hook says: to the client on stdout, to the person on stderr where it blocks."""

    __slots__ = ("code", "err", "out")

    def __init__(self, out: str = "", code: int = DONE, err: str = "") -> None:
        self.out, self.code, self.err = out, code, err


def main(arguments: Sequence[str] | None = None) -> int:
    """Handle one event; the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    now_ms = time.time_ns() // NS_IN_MS
    told, archive = Given({}, words[0] if words else ""), ""
    try:
        archive = places.database()
        event, client = words_given(words)
        told = given(sys.stdin.buffer.read(most_bytes(client) + 1), event, client)
        if told.event == "SessionEnd" and _left_to_a_child():
            return DONE
        answer = Answer() if not told.event or places.is_off(told.cwd, archive) else _answer(told, archive, now_ms)
    except BaseException as fault:  # noqa: BLE001 - whatever it is, the client goes on
        answer = _failed(fault, told, archive, now_ms)
    _say(answer)
    return answer.code


def _left_to_a_child() -> bool:
    """At a session's end the client waits a second and a half for a plugin's hooks, then kills them: a child goes on.

    False in the child, and where the system has no such thing.
    """
    if not hasattr(os, "fork"):
        return False
    if os.fork():
        return True
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        # The client waits for the end of the pipes, too.
        os.dup2(nothing, stream)
    return False


def _answer(told: Given, archive: str, now_ms: int) -> Answer:
    """What the event asks for: from what is noted where that is enough, else with everything loaded."""
    conn = hook_rows.open_known(archive, full_sync=places.full_sync())
    if conn is None:
        from mcp_compact.hooking import working

        working.make()
        conn = hook_rows.open_known(archive, full_sync=places.full_sync())
    if conn is None:
        raise FileNotFoundError(archive)
    try:
        out = _from_notes(conn, told, archive, now_ms)
    finally:
        conn.close()
    return Answer(out) if out is not None else _worked(told, now_ms)


def _from_notes(conn: sqlite3.Connection, told: Given, archive: str, now_ms: int) -> str | None:
    """The answer from what is noted or ready; None where the event needs more."""
    session = (noting.NAMESPACE, told.session_id)
    match told.event:
        case "SessionStart" if told.source == "compact":
            noting.bind(conn, told, now_ms)
            return noting.answer(told.own_event, "", _given_back(conn, told, session)) or None
        case "SessionStart" if told.source == "clear":
            from mcp_compact import handoff_note

            noting.bind(conn, told, now_ms)
            return noting.started(conn, told, archive, handoff_note.take(archive, told.cwd, now_ms))
        case "SessionStart":
            noting.bind(conn, told, now_ms)
            return noting.started(conn, told, archive)
        case "UserPromptSubmit":
            noting.bind(conn, told, now_ms)
            if told.client == GEMINI_CLI and _was_compacted(conn, told):
                return None
            return noting.answer(told.own_event, "", hook_rows.refinement(conn, *session))
        case "Stop" if places.may_be_read(told.transcript) and noting.is_followed(conn):
            # The server that follows the transcript brings what is new. At the session's end it is about to be
            # ended too, and may not get to it.
            return ""
        case _:
            return None


def _given_back(conn: sqlite3.Connection, told: Given, session: tuple[str, str]) -> str:
    """What is ready; for opencode, whose plugin gives it with every request, also what was given already."""
    ready = hook_rows.injection(conn, *session)
    return ready or (hook_rows.given(conn, *session) if told.client == OPENCODE else "")


def _was_compacted(conn: sqlite3.Connection, told: Given) -> bool:
    """Did this client compact its history since the last look? It tells no hook of that."""
    from mcp_compact.hooking import snapshots

    path = places.readable_transcript(told.transcript)
    return bool(path) and bool(snapshots.newest(conn, told, path, noting.NAMESPACE).text)


def _worked(told: Given, now_ms: int) -> Answer:
    from mcp_compact.hooking import working
    from mcp_compact.hooking.held import HELD, HeldBack

    try:
        return Answer(working.run(told, now_ms))
    except HeldBack:
        if told.client == CODEX:
            # An exit code is a fault there; it is held back by a word.
            return Answer(noting.stopped(HELD))
        return Answer(code=BLOCKS, err=HELD)


def _failed(fault: BaseException, told: Given, archive: str, now_ms: int) -> Answer:
    """Keep the fault for `doctor`. A start tells the person, of this one and of those that were kept silently."""
    code, text = _said(fault)
    passes = code in PASSING
    try:
        if archive:
            notes.keep(archive, {"at_ms": now_ms, "event": told.event, "code": code, "text": text, "off": not passes})
    except OSError:
        # The folder may not be written: that is the fault itself, and the next start meets it again.
        pass
    return Answer(noting.answer(told.own_event, noting.OFF) if told.event == "SessionStart" and not passes else "")


def _said(fault: BaseException) -> tuple[str, str]:
    """A code, and what happened: of a defect only where, for its message may quote the conversation."""
    if isinstance(fault, CompactError):
        return fault.code, f"{fault.message} {fault.hint}".strip()
    if isinstance(fault, sqlite3.Error):
        busy = getattr(fault, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
        return ("busy" if busy else "archive"), str(fault)
    trace, place = fault.__traceback__, ""
    while trace is not None:
        place, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
    if isinstance(fault, OSError):
        return "system", f"{fault.strerror or type(fault).__name__} ({place})"
    return "defect", f"{type(fault).__name__} ({place})"


def _say(answer: Answer) -> None:
    """Write what there is to say, as UTF-8 whatever the system's encoding; a client that is gone is none of ours."""
    for stream, text in ((sys.stdout, answer.out), (sys.stderr, answer.err)):
        try:
            if text:
                stream.buffer.write(text.encode("utf-8", "replace") + b"\n")
                stream.buffer.flush()
        except (OSError, ValueError):
            continue


if __name__ == "__main__":
    raise SystemExit(main())
