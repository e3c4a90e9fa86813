"""The demo's steps as a page to read, 80 columns wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_compact.cli.account import instructions_kept, span_line, warning_lines
from mcp_compact.cli.picture import MEMORY, comparison, gauge
from mcp_compact.cli.terminal import Terminal
from mcp_compact.cli.text import count, cut, share, shown, shown_line, size, tokens, wrapped
from mcp_compact.service.results import Slice

MEMORY_LINES = 25
SHOWN_ORIGINAL_LINES = 2
LISTED_WARNINGS = 3
DONE = ("compacted", "prepared")

Steps = Mapping[str, Any]


def lines(steps: Steps, screen: Terminal) -> list[str]:
    """The whole page."""
    parts = (_heading, _imported, _status, _micro, _compaction, _picture, _kept, _back, _memory, _seconds, _next)
    return [line for part in parts for line in (*part(steps, screen), "")][:-1]


def _title(number: str, text: str, screen: Terminal) -> str:
    return screen.bold(f"{number} {text}".strip())


def _heading(steps: Steps, screen: Terminal) -> list[str]:
    name = "the shipped sample session" if steps["is_sample"] else cut(shown(str(steps["transcript"])), 60)
    return [
        screen.bold(f"mcp-compact demo: {name}"),
        "A real server over stdio, a real client, a temporary archive. No model, no net.",
    ]


def _imported(steps: Steps, screen: Terminal) -> list[str]:
    done = steps["import"]
    text = (
        f"{count(done['messages'], 'message')} in {count(done['records'], 'record')} ({done['format']}), "
        f"in {steps['seconds']['import']:.1f} s"
    )
    children = done.get("children") or []
    out = [_title("1", "Import", screen), f"  {text}"]
    if children:
        out.append(f"  and {count(len(children), 'session')} of sub-agents beside it")
    return [*out, *(f"  {line}" for line in warning_lines(_problems(steps), LISTED_WARNINGS)[1:])]


def _problems(steps: Steps) -> list[str]:
    """What was wrong with the transcript; what the status says anyway is left out."""
    done, said = steps["import"], steps["status"].get("warnings") or []
    return [*(done.get("problems") or []), *(text for text in done.get("warnings") or [] if text not in said)]


def _status(steps: Steps, screen: Terminal) -> list[str]:
    state = steps["status"]
    used, warning, compact = (int(state[name]) for name in ("message_tokens", "warning_at", "compact_at"))
    window = tokens(state["context_window"]) + ("" if state.get("window_known") else " (assumed)")
    return [
        _title("2", "Status", screen),
        f"  {tokens(used)} tokens of messages in a window of {window}, level {state['level']}",
        f"  {gauge(used, warning, compact, int(state['context_window']), screen)}",
        f"  : warning at {tokens(warning)}   | compaction at {tokens(compact)}",
    ]


def _micro(steps: Steps, screen: Terminal) -> list[str]:
    micro = steps["microcompact"]
    out = [_title("3", "Micro-compaction: old tool results leave, their calls stay", screen)]
    if not micro.get("cleared"):
        why = shown_line(str(micro.get("detail") or "no result is large enough"))
        return [*out, *wrapped(f"nothing to clear: {why}", screen.columns, "  ")]
    largest = sorted(micro["cleared"], key=lambda item: (-item["tokens"], item["tool"]))
    by_tool = ", ".join(f"{item['count']} {shown(str(item['tool']))}" for item in largest)
    return [*out, f"  {_arrow(micro)}", *wrapped(f"cleared: {by_tool}", screen.columns, "  ")]


def _reasons(done: Steps, screen: Terminal) -> list[str]:
    """Why nothing was done: of the paths that are set up, each with its reason."""
    declined = [item for item in done.get("declined") or () if item["reason"] != "not_configured"]
    said = "; ".join(str(item.get("detail") or item["reason"]) for item in declined)
    text = f"{done['status'].replace('_', ' ')}, {tokens(int(done['tokens_before']))} tokens"
    return wrapped(shown(f"{text}: {said}" if said else text), screen.columns, "  ")


def _arrow(done: Steps) -> str:
    before, after = int(done["tokens_before"]), int(done["tokens_after"])
    return f"{tokens(before)} -> {tokens(after)} tokens ({share(before - after, before)} less)"


def _compaction(steps: Steps, screen: Terminal) -> list[str]:
    done = steps["compact"]
    out = [_title("4", "Compaction: a memory takes the place of the older messages", screen)]
    if done["status"] not in DONE:
        return [*out, *_reasons(done, screen)]
    if done.get("half_as_target"):
        target = tokens(done["target_tokens"])
        out.append(f"  too small for the default target; asked for half of it instead: {target}")
    out.append(f"  {_arrow(done)}, by {done['strategy'].replace('_', ' ')}, in {steps['seconds']['compact']:.2f} s")
    return out


def _picture(steps: Steps, screen: Terminal) -> list[str]:
    before, after = (_slices(steps[name]) for name in ("context_before", "context_after"))
    return [screen.bold("What fills the context"), *comparison(before, after, screen)]


def _slices(context: Steps) -> list[Slice]:
    return [Slice(item["kind"], item["tokens"], item["messages"]) for item in context["slices"]]


def _kept(steps: Steps, screen: Terminal) -> list[str]:
    done, before, after = steps["compact"], steps["context_before"], steps["context_after"]
    if done["status"] not in DONE:
        return [screen.bold("Kept: everything")]
    memory = [item for item in _slices(after) if item.kind == MEMORY]
    memory_tokens, memory_messages = sum(item.tokens for item in memory), sum(item.messages for item in memory)
    tail_tokens, tail_messages = after["tokens"] - memory_tokens, after["messages"] - memory_messages
    left_tokens, left_messages = int(done["tokens_before"]) - tail_tokens, before["messages"] - tail_messages
    return [
        _title("5", "What was kept, and why", screen),
        span_line("left", left_messages, left_tokens, "older; the memory stands in their place"),
        span_line("memory", memory_messages, memory_tokens, "your words, files, commands, errors"),
        span_line("tail", tail_messages, tail_tokens, "the newest, whole rounds, word for word"),
        span_line("sent now", after["messages"], after["tokens"], f"in {count(after['pages'], 'page')}"),
        *_cleared(after["cleared_results"]),
        *_instructions(done.get("loss") or {}),
    ]


def _cleared(number: int) -> list[str]:
    return [f"  {count(number, 'old result')} in the tail cleared; each names how to read it again"] if number else []


def _instructions(loss: Steps) -> list[str]:
    if not loss.get("instructions"):
        return []
    return [f"  {'your words':<12}{instructions_kept(loss.get('instructions_kept', 0), loss['instructions'])}"]


def _back(steps: Steps, screen: Terminal) -> list[str]:
    out = [_title("6", "What left, and how it comes back", screen), *_search_lines(steps["search"], screen)]
    out += _original_lines(steps["original"], screen)
    if steps["compact"]["status"] in DONE:
        same = "the same hash as before" if steps["undo"]["same_hash"] else "ANOTHER hash than before"
        out.append(f"  undo      {_grown(steps['undo'])}: {same}")
    return out


def _grown(done: Steps) -> str:
    return f"{tokens(int(done['tokens_before']))} -> {tokens(int(done['tokens_after']))} tokens"


def _search_lines(found: Steps, screen: Terminal) -> list[str]:
    if not found:
        return ["  search    nothing distinctive left the context"]
    hit, words = found["hit"], str(found["query"])
    where = shown(str(hit.get("tool") or hit.get("role") or "a message"))
    return [
        f"  search    {shown(words)}",
        f"            is not in the context any more; found in the archive ({where}):",
        screen.faint(f"            {around(shown(str(hit['snippet'])), words, screen.columns - 13)}"),
    ]


def around(text: str, words: str, columns: int) -> str:
    """The part of a text that holds some words, in so many columns."""
    at = max(0, text.lower().find(words.lower()))
    start = max(0, min(at - (columns - len(words)) // 2, len(text) - columns))
    return cut(text[start:], columns)


def _original_lines(found: Steps, screen: Terminal) -> list[str]:
    if not found:
        return ["  original  no tool result left the context"]
    same = "the same bytes as in the transcript" if found["same_bytes"] else "NOT what the transcript holds"
    head = [line for line in str(found["text"]).splitlines() if line.strip()][:SHOWN_ORIGINAL_LINES]
    return [
        f"  original  a {shown(str(found['tool']))} result, {size(found['bytes'])}: {same}",
        *(screen.faint(f"            {cut(shown_line(line), screen.columns - 13)}") for line in head),
    ]


def _memory(steps: Steps, screen: Terminal) -> list[str]:
    text: Sequence[str] = str(steps["memory"].get("content") or "").splitlines()
    if not text:
        return [screen.bold("The memory is empty")]
    head = [f"  {cut(shown_line(line), screen.columns - 2)}" for line in text[:MEMORY_LINES]]
    more = [screen.faint(f"  ... {len(text) - MEMORY_LINES} more lines")] if len(text) > MEMORY_LINES else []
    return [screen.bold(f"The memory ({tokens(int(steps['memory'].get('tokens') or 0))} tokens)"), *head, *more]


def _seconds(steps: Steps, screen: Terminal) -> list[str]:
    took = steps["seconds"]
    names = ("start", "import", "microcompact", "compact", "search", "original", "undo", "stop")
    each = ", ".join(f"{name} {took[name]:.2f}" for name in names)
    out = [screen.faint(line) for line in wrapped(f"Seconds: {took['total']:.1f} in all. {each}", screen.columns)]
    return [*out, *(screen.bold(f"FAILED: {text}") for text in steps["failures"])]


def _next(steps: Steps, screen: Terminal) -> list[str]:
    step = steps["next"]
    who = f" for {step['client']}" if step["client"] else ""
    also = f" (also here: {', '.join(step['others'])})" if step["others"] else ""
    heading = wrapped(f"Next{who}{also}. {step['how']}:", screen.columns)
    return [*(screen.bold(line) for line in heading), "", f"  {step['command']}"]
