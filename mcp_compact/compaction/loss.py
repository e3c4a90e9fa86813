"""What left the context, counted thing by thing: which of it still stands there, which only in the archive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mcp_compact.compaction.extract_lines import Splitter
from mcp_compact.compaction.extract_passages import passages, strings, working_directory
from mcp_compact.compaction.extract_score import gather, worth
from mcp_compact.compaction.identifiers import NUMBER, identifiers
from mcp_compact.messages.message import Record
from mcp_compact.messages.words import sentences, standing_instructions, users_words

INSTRUCTIONS, DECISIONS, ERRORS, NAMES, FIGURES = "instructions", "decisions", "errors", "names", "figures"
SHOWN = 12
"""Of each kind, the most important ones that are only in the archive."""
LONGEST_CHARS = 300

_DECISION = re.compile(
    r"\b(?:decided?|decision|chose|choosing|going with|we(?:'ll| will) use|instead of|root cause|turns out|because)\b"
    "|决定|改用|因为|原因是",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Lost:
    """A thing that only the archive holds, and the newest message there that holds it."""

    text: str
    message_uuid: str


@dataclass(frozen=True, slots=True)
class KindLoss:
    """Of one kind: how many left, and how many of them stand in the context still."""

    kind: str
    left: int
    in_context: int
    only_in_archive: tuple[Lost, ...]
    """The most important ones, at most 12; what is left of `left` beside `in_context` is their number."""


def audit(left: Sequence[Record], shown: Sequence[Record]) -> tuple[KindLoss, ...]:
    """The losses by kind. `left`: message records that left, old to new; `shown`: the context as it is sent."""
    text = _folded(part for record in shown for part in _texts(record))
    said = ((rule, record) for record in left for rule in standing_instructions(users_words(record)))
    return (
        _of_sentences(INSTRUCTIONS, said, text),
        _of_sentences(DECISIONS, _decisions(left), text),
        _of_sentences(ERRORS, _errors(left), text),
        *_of_names(left, shown),
    )


def _of_sentences(kind: str, found: Iterable[tuple[str, Record]], shown: str) -> KindLoss:
    """What counts word for word; the newest first."""
    newest = {_folded([said]): (said, record) for said, record in found}
    lost = [(said, record) for key, (said, record) in newest.items() if key not in shown]
    told = tuple(Lost(said[:LONGEST_CHARS], str(record.uuid)) for said, record in lost[::-1][:SHOWN])
    return KindLoss(kind, len(newest), len(newest) - len(lost), told)


def _decisions(records: Sequence[Record]) -> Iterator[tuple[str, Record]]:
    for record in records:
        if record.type == "assistant":
            yield from ((said, record) for said in sentences(record.text) if _DECISION.search(said))


def _errors(records: Sequence[Record]) -> Iterator[tuple[str, Record]]:
    for record in records:
        for result in record.results:
            if result.is_error and (first := result.text.strip().split("\n", 1)[0].strip()):
                yield first, record


def _of_names(left: Sequence[Record], shown: Sequence[Record]) -> tuple[KindLoss, KindLoss]:
    """Names and figures; first those that are most likely to be needed again."""
    cwd = working_directory(left)
    evidence, chars = gather(passages(left, Splitter(cwd), cwd))
    held = {name for record in shown for part in _texts(record) for name in identifiers(_seen_from(part, cwd))}
    value = worth(evidence, len(left), chars)
    kinds = []
    for kind, is_figure in ((NAMES, False), (FIGURES, True)):
        own = [name for name, known in evidence.items() if (known.kind == NUMBER) == is_figure]
        lost = sorted((name for name in own if name not in held), key=lambda name: -value[name])
        told = tuple(Lost(name[:LONGEST_CHARS], str(left[evidence[name].last_record].uuid)) for name in lost[:SHOWN])
        kinds.append(KindLoss(kind, len(own), len(own) - len(lost), told))
    return kinds[0], kinds[1]


def _seen_from(text: str, cwd: str) -> str:
    return text.replace(cwd.rstrip("/") + "/", "") if cwd.strip("/") else text


def _texts(record: Record) -> list[str]:
    """What a message says: its words, the texts of its calls, the results in it."""
    calls = [text for call in record.calls for text in (call.name, *strings(call.input))]
    return [record.text, *calls, *(result.text for result in record.results)]


def _folded(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split()).casefold()
