"""What a client that compacts its own history gets back afterwards, and what it is told to keep before.

Both are texts for a context that we do not own, so they are short, made of whole lines, masked, and
say nothing that such a client restores itself: its project instructions, files, skills and plan.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from mcp_compact.compaction.extract import Material, extract
from mcp_compact.compaction.extract_lines import FEW_WORDS, Splitter
from mcp_compact.compaction.extract_memory import user_words_of
from mcp_compact.compaction.extract_render import NOTE
from mcp_compact.compaction.extract_requests import requests, within
from mcp_compact.compaction.extract_tasks import DONE
from mcp_compact.compaction.findings import found
from mcp_compact.compaction.fitting import fit
from mcp_compact.compaction.rules import Rule
from mcp_compact.compaction.short_results import HEADING as SHORT_RESULTS
from mcp_compact.compaction.short_results import not_told, used_short_results
from mcp_compact.messages.blocks import TextBlock, ToolResultBlock, ToolUseBlock
from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.masking import masked
from mcp_compact.messages.memory_document import REQUESTS, TASK, MemoryDocument, Section
from mcp_compact.messages.message import Message, Record
from mcp_compact.messages.tool_inputs import path_of
from mcp_compact.messages.values import value
from mcp_compact.messages.words import users_words

LIMIT_CHARS = 9_500
"""Claude Code shows only a preview of a hook's context above 10,000 characters."""
REFINED_CHARS = 4_000
"""Of what follows once the client's summary is known."""
MUST_KEEP_CHARS = 4_000
FILES_PUT_BACK, LARGEST_PUT_BACK_CHARS = 5, 20_000
"""Of Claude Code; larger files, above 5,000 tokens, come back as a path only."""
RULES_SHARE = 0.5
"""Of the limit, for rules with where they were said."""
OPEN_WORK_SHARE = 0.15
SHORT_RESULTS_SHARE = 0.1
RECENT_SHARE, LEAST_RECENT, MOST_RECENT = 0.3, 8_000, 60_000
"""Of the tokens that are compacted: what is looked at whole beside a memory that covers it already."""
MANY_RULES = 12
"""With more of them, the turn alone says where."""

TITLE = "mcp-compact: what was said before this compaction, word for word from the session's archive."
RULES = "## Rules and corrections of the user; they hold, the later one where two differ"
OPEN_WORK = "## Open work"
SAID = "## The user also said"
MAY_LACK = "## What the summary may lack"
LACKS = "## What the summary left out"
SEARCH = "## To look something up"
SEARCH_HOW = (
    'search_messages(query="words", session_id="{id}") searches everything that was said; '
    'get_original(id="uuid or tool_use_id", session_id="{id}") gives a message or tool result back whole.'
)
SEARCH_BY_WORDS = 'search_messages(query="words") searches everything that was said in this session.'
"""For a client that has this one tool of ours alone."""
MORE_RULES = "- ({n} more rules: search_messages finds them)"
KEEP = "Keep these lines of the user word for word in the summary, each under the heading Rules of the user:"
KEEP_OPEN = "Keep this open work in the summary:"

_INSTRUCTIONS = ("claude.md", "claude.local.md", "agents.md", "gemini.md")
"""Files that a client loads anew by itself."""
OPEN_TAG = "&lt;"
LEFT_OUT = "[…]"
_MARKS = re.compile(r"\[…\](?:[\s\-*+]*\[…\])+")
_PLAN_TOOLS = ("exitplanmode", "exit_plan_mode")
_TAG = re.compile(r"<(?=/?(?:system-reminder|task-notification|local-command-|command-|user-prompt-submit-hook))")


@value
class InjectionFacts:
    """What an injection is made of. Texts are as they were said: masked where they are written down."""

    session_id: str
    rules: tuple[Rule, ...] = ()
    """Standing instructions and corrections that hold, of the whole session, old to new."""
    open_work: tuple[str, ...] = ()
    """Open tasks and the newest finished ones, a line each."""
    notes: MemoryDocument | None = None
    """The extractor's choice for this injection, or a stored memory: the user's other words under its first heading."""
    native_summary: str = ""
    """The client's own summary, where it is known already."""
    restored: tuple[str, ...] = ()
    """Paths of files that the client puts back itself."""


def recent_tokens(live_tokens: int) -> int:
    """How much of the newest part is looked at beside the memory.

    At the recorded compactions the memory and 30 % of the records gave back more than all of them at once: what was
    said last is needed next, and the memory has chosen from the rest with more room.
    """
    return max(LEAST_RECENT, min(MOST_RECENT, int(live_tokens * RECENT_SHARE)))


def injection_facts(
    rules: Sequence[Rule],
    material: Material,
    *,
    session_id: str,
    native_summary: str = "",
    restored: Collection[str] | None = None,
    limit_chars: int = LIMIT_CHARS,
) -> InjectionFacts:
    """Facts of a session: its rules that hold, of all its records, and what its client compacts (`material`).

    `native_summary`: what it holds in sentences is not said again. `restored`: paths of the files that the client
    puts back; None: those that Claude Code does (`files_put_back`).
    """
    restored = files_put_back(material.records) if restored is None else restored
    bare = InjectionFacts(session_id, tuple(rules), (), None, native_summary, tuple(restored))
    own = replace(material, records=tuple(_without_restored(material.records, restored)))
    if native_summary:
        own = replace(own, kept=(*own.kept, *_told(native_summary)))
    asked = requests([*user_words_of(own.previous), *(w for r in own.records if (w := users_words(r)))])
    ruled = _said_among(bare.rules)
    room = limit_chars - len(injection_text(bare, limit_chars)) - len(MAY_LACK) - len(SAID) - len(OPEN_WORK)
    double = sum(len(text) - len(_without_rules(text, ruled)) for text in within(asked, room, room, _chars))
    # Before the summary is known they would take room from what is needed more.
    short_room = int(limit_chars * SHORT_RESULTS_SHARE) if native_summary else 0
    short = used_short_results(own.records, native_summary, short_room) if short_room else ()
    reserved = sum(len(found.line) + 1 for found in short) + len(SHORT_RESULTS) * bool(short)
    made = extract(own, max(0, room + double - reserved), None, _chars)
    if short := not_told(short, made.render()):
        told = Section(SHORT_RESULTS, "\n".join(found.line for found in short))
        made = replace(made, sections=(*made.sections, told))
    tasks = tuple(line.removeprefix("- ") for line in made.body(TASK).splitlines() if line.startswith("- ["))
    return replace(bare, open_work=tasks, notes=_without_tasks(made, tasks))


def refinement_facts(
    rules: Sequence[Rule],
    material: Material,
    session_id: str,
    native_summary: str,
    given: str,
    limit_chars: int = REFINED_CHARS,
) -> InjectionFacts:
    """What neither the client's summary, known now, nor the text that was `given` right after it holds."""
    known = f"{native_summary}\n{given}"
    facts = injection_facts(rules, material, session_id=session_id, native_summary=known, limit_chars=limit_chars)
    return replace(
        facts,
        rules=tuple(rule for rule in facts.rules if not holds(known, rule.text)),
        open_work=tuple(line for line in facts.open_work if line not in known),
        notes=_not_known(facts.notes, given, known) if facts.notes else None,
        native_summary=native_summary,
    )


def holds(text: str, rule: str) -> bool:
    """Does a text hold a rule word for word, white space and case aside?"""
    return " ".join(rule.split()).casefold() in " ".join(text.split()).casefold()


def says_something(facts: InjectionFacts) -> bool:
    """Is there more to tell than how to search?"""
    return bool(facts.rules or facts.open_work or (facts.notes and _any_line(facts.notes)))


def files_put_back(records: Sequence[Record]) -> tuple[str, ...]:
    """Files that Claude Code puts back whole: of the last ones those that were read or written whole and are not large.

    What was read in parts is mostly a large file, of which it names the path only.
    """
    newest = found(records).files[-FILES_PUT_BACK:]
    return tuple(item.name for item in newest if not item.note and len(item.text) <= LARGEST_PUT_BACK_CHARS)


def injection_text(facts: InjectionFacts, limit_chars: int = LIMIT_CHARS, search_how: str = SEARCH_HOW) -> str:
    """What the client's model is told after the compaction: at most `limit_chars` characters, whole lines, masked.

    In the order of need; the last part says how to search. Empty where not even that fits.
    """
    search = f"{SEARCH}\n{search_how.format(id=facts.session_id)}"
    left = limit_chars - len(search) - len(TITLE) - 2 * len("\n\n")
    if left < 0:
        return ""
    parts = [TITLE]
    for part in (
        _rules_part(facts.rules, min(left, int(limit_chars * RULES_SHARE))),
        _open_part(facts.open_work, int(limit_chars * OPEN_WORK_SHARE)),
    ):
        if part and len(part) + 2 <= left:
            parts.append(part)
            left -= len(part) + 2
    told = [rule for rule in facts.rules if any(_safe(rule.text) in part for part in parts[1:])]
    parts += _notes_parts(facts, told, left)
    return "\n\n".join([*parts, search])


def must_keep_lines(facts: InjectionFacts) -> tuple[str, ...]:
    """Lines for whoever writes the client's summary: the rules word for word, and the open work. Masked."""
    still_open = [line for line in facts.open_work if not any(f"[{status}]" in line for status in DONE)]
    lines: list[str] = []
    left = MUST_KEEP_CHARS
    for heading, texts in ((KEEP, [rule.text for rule in reversed(facts.rules)]), (KEEP_OPEN, still_open)):
        own = lines_that_fit((f"- {_safe(text)}" for text in texts), left - len(heading) - 1)
        if own:
            lines += [heading, *(reversed(own) if heading == KEEP else own)]
            left -= sum(len(line) + 1 for line in (heading, *own))
    return tuple(lines)


def _chars(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def _safe(text: str) -> str:
    """Masked, on one line, and without a tag that ends or opens what a client put around it."""
    return _TAG.sub(OPEN_TAG, masked(" ".join(text.split())))


def lines_that_fit(lines: Iterable[str], limit_chars: int) -> list[str]:
    """The lines that fit, in their order; one that is too long is left out, not cut."""
    taken: list[str] = []
    for line in lines:
        if len(line) + 1 <= limit_chars:
            taken.append(line)
            limit_chars -= len(line) + 1
    return taken


def _rules_part(rules: Sequence[Rule], limit_chars: int) -> str:
    """The newest rules that fit, old to new."""
    with_uuid = len(rules) <= MANY_RULES
    more = MORE_RULES.format(n=len(rules))
    lines = [f"- {_safe(rule.text)}{_where(rule, with_uuid=with_uuid)}" for rule in reversed(rules)]
    own = lines_that_fit(lines, limit_chars - len(RULES) - 1 - len(more))
    if not own:
        return ""
    left_out = len(rules) - len(own)
    return "\n".join([RULES, *reversed(own), *([MORE_RULES.format(n=left_out)] if left_out else [])])


def _where(rule: Rule, *, with_uuid: bool) -> str:
    places = [f"turn {rule.turn}"] if rule.turn else []
    if with_uuid and rule.uuid:
        places.append(rule.uuid)
    return f" ({', '.join(places)})" if places else ""


def _open_part(open_work: Sequence[str], limit_chars: int) -> str:
    own = lines_that_fit((f"- {_safe(line)}" for line in open_work), limit_chars - len(OPEN_WORK) - 1)
    return "\n".join([OPEN_WORK, *own]) if own else ""


def _notes_parts(facts: InjectionFacts, told: Sequence[Rule], left: int) -> list[str]:
    """The user's other words, then the chosen lines: whole lines, no longer together than what is left."""
    if facts.notes is None:
        return []
    title = LACKS if facts.native_summary else MAY_LACK
    ruled = _said_among(told)
    shown = [_shown(section, ruled) for section in facts.notes.sections if section.heading != TASK]
    document = MemoryDocument("", tuple(section for section in shown if section.body))
    document = fit(document, left - len(SAID) - len(title) - 6, None, _chars)
    said = document.body(REQUESTS)
    rest = [f"### {s.heading}\n{s.body}" if s.heading else s.body for s in document.sections if s.heading != REQUESTS]
    parts = [f"{SAID}\n{said}"] if said else []
    return parts + ([f"{title}\n" + "\n".join(rest)] if _any_line(document, beside=REQUESTS) else [])


def _any_line(document: MemoryDocument, beside: str = "") -> bool:
    """Is there more than how to read it, and than the section `beside`?"""
    return any(s.body.strip() not in ("", NOTE) for s in document.sections if not beside or s.heading != beside)


def _shown(section: Section, ruled: re.Pattern[str] | None) -> Section:
    """The section masked, without the words that stand among the rules."""
    lines = section.body.splitlines()
    if section.heading == REQUESTS:
        lines = [line for own in lines if (line := _without_rules(own, ruled))]
    return replace(section, body="\n".join(_TAG.sub(OPEN_TAG, masked(line)) for line in lines))


def _said_among(rules: Sequence[Rule]) -> re.Pattern[str] | None:
    """Finds the rules in a user's words; the longest first, since one may be a part of another."""
    texts = sorted({rule.text for rule in rules if rule.text}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts)), re.IGNORECASE) if texts else None


def _without_rules(line: str, ruled: re.Pattern[str] | None) -> str:
    """The words with a mark for each run of rules, which are not said twice; empty where nothing else stands there."""
    if ruled is None:
        return line
    kept = _MARKS.sub(LEFT_OUT, ruled.sub(LEFT_OUT, line))
    return kept if any(map(str.isalnum, kept.replace(LEFT_OUT, ""))) else ""


def _without_tasks(document: MemoryDocument, tasks: Collection[str]) -> MemoryDocument:
    shown = {f"- {task}" for task in tasks}
    made = []
    for section in document.sections:
        lines = [line for line in section.body.splitlines() if section.heading != TASK or line not in shown]
        made.append(replace(section, body="\n".join(lines)))
    return replace(document, sections=tuple(section for section in made if section.body))


def _not_known(notes: MemoryDocument, given: str, known: str) -> MemoryDocument:
    """The notes without the user's words that are `known`, lines that were `given`, and heads over nothing."""
    lines = {line.strip() for line in given.splitlines()}
    sections = []
    for section in notes.sections:
        own = section.body.splitlines()
        if section.heading == REQUESTS:
            kept = [line for line in own if not holds(known, line.removeprefix("- "))]
        else:
            kept = _others(own, lines)
        sections.append(replace(section, body="\n".join(kept)))
    return replace(notes, sections=tuple(section for section in sections if section.body.strip()))


def _others(own: Sequence[str], given: Collection[str]) -> list[str]:
    """The lines that were not given; a head (a file, a command) only, and always, where a line is left under it."""
    kept: list[str] = []
    below = ""
    for line in reversed(own):
        is_head = below.startswith("  ") and not line.startswith("  ")
        if kept[-1].startswith("  ") if is_head and kept else not is_head and line.strip() not in given:
            kept.append(line)
        below = line
    return kept[::-1]


def _without_restored(records: Iterable[Record], restored: Collection[str]) -> Iterable[Record]:
    """The records without the texts that the client puts back: contents of files, its plan."""
    away: set[str] = set()
    for record in records:
        for call in record.calls:
            if call.name.lower() in _PLAN_TOOLS or _is_restored(path_of(call.input), restored):
                away.add(call.id)
        yield _without(record, away) if away and record.message else record


def _is_restored(path: str, restored: Collection[str]) -> bool:
    return bool(path) and (path in restored or path.replace("\\", "/").rsplit("/", 1)[-1].lower() in _INSTRUCTIONS)


def _without(record: Record, away: Collection[str]) -> Record:
    kept = tuple(
        block
        for block in record.blocks
        if not (isinstance(block, ToolResultBlock) and block.tool_use_id in away and not block.is_error)
        and not (isinstance(block, ToolUseBlock) and block.id in away and block.name.lower() in _PLAN_TOOLS)
    )
    if len(kept) == len(record.blocks) or record.message is None:
        return record
    return replace(record, message=replace(record.message, blocks=kept))


def _told(summary: str) -> tuple[Record, ...]:
    """The summary's sentences as a record that stays: names in them need not be said again."""
    lines = [line.text for line in Splitter("").lines(summary) if line.words >= FEW_WORDS]
    text = "\n".join(lines)
    message = Message("assistant", text, (TextBlock(text, {"type": "text", "text": text}),))
    return (Record(MessageUuid(""), "assistant", b"", {}, message),)
