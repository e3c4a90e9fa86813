"""The rules of a session: what its user said that holds until it is revoked, word for word, with where it was said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_compact.compaction.revisions import revised_by
from mcp_compact.compaction.rules_ended import ended_by, replaces, same_but_for_figures
from mcp_compact.messages.ids import MessageUuid, ToolUseId
from mcp_compact.messages.lazily import pattern
from mcp_compact.messages.message import Record
from mcp_compact.messages.rule_grammar import (
    CORRECTION,
    PERMISSION,
    REVOCATION,
    RULE,
    ends_rules,
    is_bare_no,
    is_output,
    kind_of,
)
from mcp_compact.messages.values import value
from mcp_compact.messages.words import sentences, users_words

KINDS = (RULE, CORRECTION, PERMISSION)
DROPPED = "dropped"
"""The kind under which a session's register notes a rule that a person took out by hand."""

_FENCED = pattern(r"(?ms)^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)")
_HEADING = pattern(r"#{1,6}[ \t]+(\S.*)")
_HEADINGS_OF_A_DOCUMENT = 2
_RULES_HEADING = pattern(
    r"\b(?:rules?|guidelines?|constraints?|conventions?|instructions?|style|important|don'?ts?|do not|must|never|"
    r"always|preferences?|regeln|vorgaben|règles|reglas|regras|regole|правила)\b|规则|要求|约束|规范|注意|約定|ルール|規約|규칙",
    re.IGNORECASE,
)
_PLAIN_ORDER = pattern(r"(?:please )?(?:do not|don'?t|never|always|you must(?: not)?|不要|必须|禁止)\b", re.IGNORECASE)

_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\n"
)
"""How Claude Code hands on what a person types when they turn a call down."""
_REFUSED_MARK = "User rejected tool use"
_OWN_TOOLS = frozenset(
    ("edit", "write", "multiedit", "notebookedit", "exitplanmode", "enterplanmode", "read", "todowrite", "glob", "grep")
)
"""Tools whose errors the client words itself. Elsewhere a program could answer in the client's words."""


@value
class Rule:
    """One standing instruction, correction or permission."""

    text: str
    """As the user wrote it, on one line."""
    kind: str = RULE
    turn: int = 0
    """The user's prompt that holds it, counted from 1; 0 where it is not known."""
    seq: int = 0
    uuid: MessageUuid = MessageUuid("")
    pinned: bool = False


def rules_of(records: Iterable[Record]) -> tuple[Rule, ...]:
    """The rules that hold after these records (a session from its start, old to new), in the order of their turns."""
    return in_force(rule for said in said_in(records) for rule in said)


def said_in(records: Iterable[Record]) -> Iterator[list[Rule]]:
    """For each message of the user, old to new: its rules and revocations; an empty list where it has none."""
    turn = 0
    calls: dict[ToolUseId, str] = {}
    for record in records:
        calls.update((call.id, call.name.lower()) for call in record.calls)
        words = users_words(record)
        turn += bool(words)
        for own in filter(None, (words, refusal_in(record, calls))):
            yield [Rule(text, kind, turn, record.seq, record.uuid) for text, kind in rules_in(own)]


def rules_in(words: str) -> Iterator[tuple[str, str]]:
    """Rules, corrections, permissions and revocations in a user's words, each with its kind, in their order.

    Fenced code is left out. Of a document (a plan, a description with headings) only what stands before its first
    heading counts, what stands under a heading about rules, and plain orders.
    """
    text = _FENCED.sub("\n", words)
    is_document = len(_HEADING.findall(text)) >= _HEADINGS_OF_A_DOCUMENT
    inside, after_no, first = False, False, True
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading:
            inside = _RULES_HEADING.search(heading[1]) is None
            continue
        if is_output(line):
            continue
        for sentence in sentences(line):
            own = " ".join(sentence.split())
            kind = kind_of(own, opens_message=first)
            if after_no and not kind:
                kind = CORRECTION
            after_no, first = first and is_bare_no(own), False
            if kind and not (is_document and inside and not _PLAIN_ORDER.match(own)):
                yield own, kind


def in_force(said: Iterable[Rule]) -> tuple[Rule, ...]:
    """What holds of rules and revocations, old to new; of what is said again (of another figure) the last."""
    held: dict[str, Rule] = {}
    for rule in said:
        for key in ended_by(rule.text, _open_to(rule, held)):
            del held[key]
        if (revised := revised_by(rule.text, _not_pinned(held))) is not None:
            del held[revised]
        if rule.kind != REVOCATION:
            key = rule.text.casefold() if rule.pinned else same_but_for_figures(rule.text)
            held.pop(key, None)
            held[key] = rule
    return tuple(held.values())


def _open_to(rule: Rule, held: Mapping[str, Rule]) -> dict[str, str]:
    """The rules that this one may end, by their keys: permissions and pinned ones stay."""
    if rule.kind not in (REVOCATION, PERMISSION) and not replaces(rule.text):
        return {}
    return {key: other.text for key, other in held.items() if other.kind != PERMISSION and not other.pinned}


def _not_pinned(held: Mapping[str, Rule]) -> dict[str, str]:
    return {key: rule.text for key, rule in held.items() if not rule.pinned}


def holding(texts: Sequence[str]) -> tuple[str, ...]:
    """Which of these sentences (old to new) hold: revocations, and what they end, are left out; of equals the last."""
    made = in_force(Rule(text, ends_rules(text) or RULE) for text in texts)
    held = {rule.text for rule in made}
    return tuple(text for text in dict.fromkeys(texts) if text in held)


def with_choices(rules: Sequence[Rule], pinned: Sequence[str], dropped: Sequence[str]) -> tuple[Rule, ...]:
    """The rules with what a person pinned and without what they dropped; a pinned one cannot be lost by its words."""
    gone, fixed = {_folded(text) for text in dropped}, {_folded(text) for text in pinned}
    kept = [replace(rule, pinned=_folded(rule.text) in fixed) for rule in rules if _folded(rule.text) not in gone]
    known = {_folded(rule.text) for rule in kept}
    added = [Rule(" ".join(text.split()), pinned=True) for text in pinned if _folded(text) not in known]
    return (*added, *kept)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def refusal_in(record: Record, calls: Mapping[ToolUseId, str]) -> str:
    """What a person typed when they turned a call down; empty where the result does not hold that for certain."""
    for result in record.results if record.type == "user" and not record.agent_id else ():
        if result.is_error and result.text.startswith(_REFUSED):
            marked = record.raw.get("toolUseResult") == _REFUSED_MARK
            if marked or calls.get(result.tool_use_id) in _OWN_TOOLS:
                return result.text.removeprefix(_REFUSED).strip()
    return ""


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """A plain value of it, for what is told as JSON."""
    return {
        "text": rule.text,
        "kind": rule.kind,
        "turn": rule.turn,
        "seq": rule.seq,
        "uuid": rule.uuid,
        "pinned": rule.pinned,
    }
