"""The rules of a session: what its user said that holds until it is revoked, word for word, with where it was said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mcp_compact.messages.ids import MessageUuid
from mcp_compact.messages.message import Record
from mcp_compact.messages.values import value
from mcp_compact.messages.words import standing_instructions, users_words

RULE, CORRECTION = "rule", "correction"
KINDS = (RULE, CORRECTION)


@value
class Rule:
    """One standing instruction or correction."""

    text: str
    """As the user wrote it, on one line."""
    kind: str = RULE
    turn: int = 0
    """The user's prompt that holds it, counted from 1; 0 where it is not known."""
    seq: int = 0
    uuid: MessageUuid = MessageUuid("")


def rules_of(records: Iterable[Record]) -> tuple[Rule, ...]:
    """The rules that hold after these records (a session from its start, old to new), in the order of their turns."""
    found: dict[str, Rule] = {}
    turn = 0
    for record in records:
        words = users_words(record)
        if not words:
            continue
        turn += 1
        for sentence in standing_instructions(words):
            text = " ".join(sentence.split())
            found.pop(text.casefold(), None)
            found[text.casefold()] = Rule(text, RULE, turn, record.seq, record.uuid)
    return tuple(found.values())


def rule_to_json(rule: Rule) -> dict[str, Any]:
    """A plain value from which `rule_from_json` makes it again."""
    return {"text": rule.text, "kind": rule.kind, "turn": rule.turn, "seq": rule.seq, "uuid": rule.uuid}


def rule_from_json(raw: Mapping[str, Any]) -> Rule:
    """The rule of such a value; what is missing is empty."""
    return Rule(
        str(raw.get("text", "")),
        str(raw.get("kind", RULE)),
        int(raw.get("turn", 0)),
        int(raw.get("seq", 0)),
        MessageUuid(str(raw.get("uuid", ""))),
    )
