"""Rules of providers, what breaks them and where, and what a repair changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

REFUSED = "refused"
"""The provider answers with an error."""
DEPENDS = "depends"
"""It does with some models or settings of the request."""
OPEN = "open"
"""A call of the last answer waits for its result: the list is complete once that was appended."""

STRUCTURE = "structure"
"""How a rule is mended that concerns several messages: by putting the whole list in order."""
LEFT = "left"
"""How a rule is mended that no repair can keep without losing more."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a provider asks for. `mend` says in words what a repair does."""

    id: str
    text: str
    mend: str = ""
    severity: str = REFUSED


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that is broken, and where: the place of the message, and of what in it."""

    rule: str
    severity: str
    index: int
    """The message's place in the list, from 0; -1 for the list as a whole."""
    path: str
    """The same with the part: `messages[3].content[1]`."""
    text: str
    """What is asked for, and what was found."""
    at: tuple[int, ...] = ()
    """The places inside of the message: of the block, and of the part in that block."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a repair did to the message at `index` (of the list that was given)."""

    rule: str
    index: int
    path: str
    text: str


@dataclass(slots=True)
class Log:
    """Gathers findings over one list, which is called `name` in paths."""

    name: str
    rules: Mapping[str, Rule]
    inner: str = "content"
    """The key of a message under which its blocks stand."""
    found: list[Finding] = field(default_factory=list)

    def add(self, rule_id: str, index: int, *at: int, detail: str = "", key: str = "") -> None:
        """Note that a rule is broken at a place; `detail` says by what."""
        rule = self.rules[rule_id]
        path = self.name if index < 0 else f"{self.name}[{index}]"
        if at:
            path += f".{key or self.inner}[{at[0]}]" + "".join(f".content[{part}]" for part in at[1:])
        elif key:
            path += f".{key}"
        text = f"{rule.text}: {detail}" if detail else rule.text
        self.found.append(Finding(rule.id, rule.severity, index, path, text, at))


def by_id(rules: Iterable[Rule]) -> dict[str, Rule]:
    """The rules by their ids without the provider's name, as checks name them."""
    return {rule.id.partition("/")[2]: rule for rule in rules}


def refused(findings: Iterable[Finding]) -> list[Finding]:
    """Those for which a request fails, whatever its model."""
    return [finding for finding in findings if finding.severity == REFUSED]


def shown(value: object) -> str:
    """A short text that names a value in a message; never a whole content."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}...")


SHOWN_CHARS = 60


def blank(text: object) -> bool:
    """Is it no text, or white space alone?"""
    return not isinstance(text, str) or not text or text.isspace()


def listed(value: object) -> Sequence[Any]:
    """A list as it is; nothing for any other value."""
    return value if isinstance(value, list | tuple) else ()
