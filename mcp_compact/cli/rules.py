"""`mcp-compact rules`: a session's rules with the turn that said them; drop one, pin one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from mcp_compact.cli.archive import ask
from mcp_compact.cli.named import found_session
from mcp_compact.cli.native_sessions import NativeSession, find_session
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import Terminal, terminal
from mcp_compact.cli.text import shown_line, wrapped
from mcp_compact.compaction.rules import Rule, rule_to_json
from mcp_compact.messages.masking import masked
from mcp_compact.messages.rule_grammar import RULE
from mcp_compact.service.deps import session_key
from mcp_compact.service.rules import drop, keep, listed
from mcp_compact.service.service import Service

KEEPS_MORE = "These hold for later work. A compaction keeps more: each sentence that may be an instruction."
"""`demo` and `compact` count those sentences, so that their number is the larger one."""


def run(arguments: argparse.Namespace) -> int:
    """List the rules, after dropping or pinning one where that is asked for."""
    done = _change(arguments) if arguments.drop or arguments.pin else None
    session = find_session(arguments.session)
    rules = listed(session.records, session.pinned, session.dropped)
    if arguments.json:
        print_json(rules_json(session, rules, done))
        return 0
    said = [f"{'Dropped' if arguments.drop else 'Pinned'}: {shown_line(masked(done.text))}", ""] if done else []
    print("\n".join([*said, *rules_lines(session, rules, terminal())]))
    return 0


def _change(arguments: argparse.Namespace) -> Rule:
    async def work(service: Service) -> Rule:
        key = session_key(service.namespace, await found_session(service, arguments.session))
        change = drop if arguments.drop else keep
        return await change(service.deps, key, arguments.drop or arguments.pin)

    # A session that only its client knows so far is imported for it.
    return ask(work, create=True)


def rules_json(
    session: NativeSession, rules: Sequence[tuple[Rule, bool]], changed: Rule | None = None
) -> dict[str, Any]:
    """The rules by their numbers. Texts are masked."""
    made: dict[str, Any] = {
        "session_id": session.session_id,
        "source": session.source,
        "rules": [
            {"number": number, **rule_to_json(rule), "text": masked(rule.text), "dropped": is_dropped}
            for number, (rule, is_dropped) in enumerate(rules, 1)
        ],
    }
    return made if changed is None else {**made, "changed": masked(changed.text)}


def rules_lines(session: NativeSession, rules: Sequence[tuple[Rule, bool]], screen: Terminal) -> list[str]:
    """The list to be read: number, turn, words; then how to change it."""
    lines = [screen.bold(f"Rules of session {shown_line(session.session_id)}"), ""]
    if not rules:
        return [
            *lines,
            "  none: nothing that was said reads as a rule, a correction or a permission that still holds.",
            "  A sentence that only may be an instruction is none of them; a compaction keeps it all the same.",
        ]
    for number, (rule, is_dropped) in enumerate(rules, 1):
        turn = f"turn {rule.turn}" if rule.turn else ""
        first, *more = wrapped(shown_line(masked(rule.text)), screen.columns - 18)
        line = f"{number:>4}  {turn:<9}  {first}"
        lines.append(screen.faint(line) if is_dropped else line)
        lines += [f"{'':<17}{part}" for part in more]
        labels = [label for label in _labels(rule, is_dropped=is_dropped) if label]
        if labels:
            lines.append(screen.faint(f"{'':<17}[{', '.join(labels)}]"))
    return [
        *lines,
        "",
        *wrapped(KEEPS_MORE, 76, "  "),
        *wrapped("Wrong one? `mcp-compact rules --drop N`. It must stay whatever is said later: `--pin N`.", 76, "  "),
    ]


def _labels(rule: Rule, *, is_dropped: bool) -> tuple[str, ...]:
    return ("dropped" if is_dropped else "", "pinned" if rule.pinned else "", rule.kind if rule.kind != RULE else "")
