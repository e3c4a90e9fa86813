"""What one compaction of a client lost, and what we give back: the figures of the report. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from mcp_compact.compaction.extract_passages import call_path, strings, working_directory
from mcp_compact.compaction.identifiers import NUMBER, identifiers
from mcp_compact.compaction.injection import InjectionFacts, injection_facts, injection_text, must_keep_lines
from mcp_compact.compaction.rules import Rule, rules_of, said_in, with_choices
from mcp_compact.compaction.rules_matrix import Column, Row, fates, matrix
from mcp_compact.messages.blocks import TextBlock, ToolResultBlock
from mcp_compact.messages.masking import masked
from mcp_compact.messages.message import Record
from mcp_compact.messages.words import users_words
from mcp_compact.service.compactions import NativeCompaction

Choices: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""Rules that were pinned, and rules that were dropped, by hand."""
FUTURE = 50
"""So many messages after a compaction tell what was needed."""
COMMON_SHARE = 0.2
"""A name that more of the messages before hold says nothing: it is everywhere."""
LISTED = 12
"""Names of each kind that are listed."""


@dataclass(frozen=True, slots=True)
class Needed:
    """Names that were written before the compaction and again in the messages after it."""

    total: int = 0
    in_summary: int = 0
    with_ours: int = 0
    given_back: tuple[str, ...] = ()
    """Not in the summary, but in our text; the most used first."""
    lost: tuple[str, ...] = ()
    """In neither."""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """One compaction. Texts are masked."""

    session_id: str
    number: int
    """Counted from 1, of `of` in this session."""
    of: int
    at_ms: int | None
    trigger: str
    tokens_before: int | None
    summary_chars: int
    injection_chars: int
    rules: tuple[tuple[Rule, str], ...]
    words: tuple[int, int]
    """Messages of the user since the compaction before, and how many of them the summary holds word for word."""
    words_with_ours: int
    needed: Needed
    read_again: tuple[str, ...]
    """Files that were known before and read again right after."""
    open_work: tuple[str, ...]
    must_keep: tuple[str, ...]
    injection: str
    matrix: tuple[Row, ...]
    """Rules by all compactions of the session up to this one."""


def compaction_report(
    session_id: str,
    compactions: Sequence[NativeCompaction],
    number: int = 0,
    choices: Choices = ((), ()),
) -> CompactionReport:
    """The report on one of a session's compactions (0: the last). `choices`: what was pinned, and dropped, by hand."""
    number = number or len(compactions)
    own = compactions[number - 1]
    rules = with_choices(rules_of(own.session), *_choices_at(compactions, number, choices))
    facts = injection_facts(rules, own.material, session_id=session_id)
    given = injection_text(facts)
    said = [words for record in own.material.records if (words := users_words(record))]
    columns = [
        _column(session_id, other, _choices_at(compactions, at, choices))
        for at, other in enumerate(compactions[: number - 1], 1)
    ]
    last = Column(facts.rules, own.summary, given)
    return CompactionReport(
        session_id=session_id,
        number=number,
        of=len(compactions),
        at_ms=own.at_ms,
        trigger=own.trigger,
        tokens_before=own.pre_tokens,
        summary_chars=len(own.summary),
        injection_chars=len(given),
        rules=tuple((_masked(rule), fate) for rule, fate in fates(last)),
        words=(len(said), _held(said, own.summary)),
        words_with_ours=_held(said, f"{own.summary}\n{given}"),
        needed=needed(own, given),
        read_again=tuple(masked(path) for path in read_again(own)),
        open_work=tuple(masked(line) for line in facts.open_work),
        must_keep=must_keep_lines(facts),
        injection=given,
        matrix=tuple(Row(_masked(row.rule), row.fates) for row in matrix([*columns, last])),
    )


def needed(compaction: NativeCompaction, given: str) -> Needed:
    """Which names of before the work after needed: what person or model wrote in the next messages, not tool output."""
    short = _shortener(compaction)
    summary, given = short(compaction.summary), short(given)
    before = [short(_text_of(record)) for record in compaction.material.records]
    homes: dict[str, int] = {}
    for text in before:
        for name in _names(text):
            homes[name] = homes.get(name, 0) + 1
    uses: dict[str, int] = {}
    for record in _next_messages(compaction):
        for name in _names(short(_written(record))):
            if 0 < homes.get(name, 0) <= max(1, int(COMMON_SHARE * len(before))):
                uses[name] = uses.get(name, 0) + 1
    in_summary = {name for name in uses if name in summary}
    ours = {name for name in uses if name in given} - in_summary
    order = sorted(uses, key=lambda name: (-uses[name], -homes[name], name))
    return Needed(
        len(uses),
        len(in_summary),
        len(in_summary) + len(ours),
        tuple([masked(name) for name in order if name in ours][:LISTED]),
        tuple([masked(name) for name in order if name not in in_summary and name not in ours][:LISTED]),
    )


def _names(text: str) -> list[str]:
    """Names in a text but plain numbers, which are mostly lines and limits."""
    return [name for name, kind in identifiers(text).items() if kind != NUMBER]


def _shortener(compaction: NativeCompaction) -> Callable[[str], str]:
    """Takes the working directory out of paths, so that a file has one name."""
    cwd = working_directory(compaction.material.records).rstrip("/") + "/"
    return lambda text: text.replace(cwd, "") if len(cwd) > 1 else text


def read_again(compaction: NativeCompaction) -> tuple[str, ...]:
    """Files that were read or changed before, and read again in the next messages, each once."""
    short = _shortener(compaction)
    known = {path for record in compaction.material.records for call in record.calls if (path := call_path(call.input))}
    calls = (call for record in _next_messages(compaction) for call in record.calls)
    again = (call_path(call.input) for call in calls if "read" in call.name.lower() or "view" in call.name.lower())
    return tuple(dict.fromkeys(short(path) for path in again if path in known))


def _choices_at(compactions: Sequence[NativeCompaction], number: int, choices: Choices) -> Choices:
    """The choices that could be made at this compaction: what was said only after it is no pinned rule of it."""
    later = {
        " ".join(text.split()).casefold()
        for other in compactions[number - 1 :]
        for said in said_in(other.following)
        for text in (rule.text for rule in said)
    }
    before = {rule.text.casefold() for rule in rules_of(compactions[number - 1].session)}
    pinned = [text for text in choices[0] if (own := " ".join(text.split()).casefold()) in before or own not in later]
    return pinned, choices[1]


def _column(session_id: str, compaction: NativeCompaction, choices: Choices) -> Column:
    """An earlier compaction: its rules are enough, they come first in what is given back."""
    rules = with_choices(rules_of(compaction.session), *choices)
    return Column(rules, compaction.summary, injection_text(InjectionFacts(session_id, rules)))


def _masked(rule: Rule) -> Rule:
    return replace(rule, text=masked(rule.text))


def _held(said: Iterable[str], text: str) -> int:
    own = " ".join(text.split()).casefold()
    return sum(" ".join(words.split()).casefold() in own for words in said)


def _next_messages(compaction: NativeCompaction) -> list[Record]:
    return [record for record in compaction.following if record.is_message and not record.is_summary][:FUTURE]


def _written(record: Record) -> str:
    """What a person or the model wrote in a record: their text and the inputs of calls."""
    if record.type == "user":
        return users_words(record)
    texts = [block.text for block in record.blocks if isinstance(block, TextBlock)]
    return "\n".join([*texts, *(text for call in record.calls for text in strings(call.input))])


def _text_of(record: Record) -> str:
    """All text of a record, tool results too."""
    results = [block.text for block in record.blocks if isinstance(block, ToolResultBlock)]
    return "\n".join([_written(record), *results])
