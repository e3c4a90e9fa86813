"""Preparing records for the store: counted, media measured, instructions noted. Pure but for the tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcp_compact.compaction.weighing import weights_of
from mcp_compact.messages.blocks import Block, TextBlock, ToolResultBlock
from mcp_compact.messages.clearing import ClearedText
from mcp_compact.messages.codec import body_hash, canonical, clean
from mcp_compact.messages.message import MESSAGE_TYPES, Record
from mcp_compact.messages.weights import UNITS_PER_TOKEN, CountUnits, estimate_all
from mcp_compact.messages.words import standing_instructions, users_words
from mcp_compact.ports.store import Prepared
from mcp_compact.ports.tokenizer import Tokenizer


def exact_counter(tokenizer: Tokenizer) -> CountUnits | None:
    """Units by the tokenizer; None where it cannot be used (then weights are estimates)."""
    if tokenizer.state == "cold":
        tokenizer.warm()
    if tokenizer.state != "ready":
        return None
    return lambda texts: [tokens * UNITS_PER_TOKEN for tokens in tokenizer.count(texts)]


def best_counter(tokenizer: Tokenizer) -> CountUnits:
    """The exact counter, or the estimate."""
    return exact_counter(tokenizer) or estimate_all


def prepare(records: Sequence[Record], tokenizer: Tokenizer | None, *, with_content_hash: bool) -> list[Prepared]:
    """Records ready to be stored, in their order; without a tokenizer their weights are estimates.

    Those that are to have a content hash have canonical bodies: nobody else wrote them.
    """
    weighed = weights_of(records, exact_counter(tokenizer) if tokenizer else None, ClearedText())
    # By place: with the names of its fields a record would cost three times as much to make.
    return [
        Prepared(
            record,
            estimate,
            exact_units,
            results,
            cleared,
            media,
            inputs,
            # A result alone is nobody's words.
            instructions(record) if record.type == "user" and not (results and len(record.blocks) == 1) else (),
            _tools(record) if record.message and _may_bring_tools(record.message.blocks) else (),
            _hash_of_canonical(record) if with_content_hash else b"",
        )
        for record, (estimate, exact_units, results, cleared, media, inputs) in zip(records, weighed, strict=True)
    ]


def _tools(record: Record) -> tuple[str, ...]:
    from mcp_compact.compaction.findings import tool_references  # noqa: PLC0415 - nearly no record brings any

    return tool_references(record)


def _may_bring_tools(blocks: Sequence[Block]) -> bool:
    """Does a result among them hold more than one text? Nearly none does, and a look is cheaper than a search."""
    for block in blocks:
        if isinstance(block, ToolResultBlock) and not (len(block.parts) == 1 and isinstance(block.parts[0], TextBlock)):
            return True
    return False


def instructions(record: Record) -> tuple[str, ...]:
    """What a person asked for in this record, to hold until it is revoked."""
    words = users_words(record)
    return standing_instructions(words) if words else ()


_BARE = {role: (b'{"role":"%s","content":' % role.encode(), b'["%s",' % role.encode()) for role in MESSAGE_TYPES}
"""How the canonical body of a message without an envelope begins, and the text of its hash."""


def _hash_of_canonical(record: Record) -> bytes:
    """`content_hash` of a record with a canonical body, which mostly holds the content as it is hashed."""
    message = record.message
    if message and len(record.raw) == 2 and message.role in _BARE and record.raw.get("content") is message.content:  # noqa: PLR2004 - role and content
        head, opening = _BARE[message.role]
        if record.body.startswith(head) and b"\\ud" not in record.body:
            return body_hash(b"%s%s]" % (opening, record.body[len(head) : -1]))
    return content_hash(record)


def content_hash(record: Record) -> bytes:
    """Of role and content: the same message sent again has the same one."""
    message = record.message
    return message_hash(message.role, message.content) if message else b""


def message_hash(role: str, content: object) -> bytes:
    """Sixteen bytes of a message's role and content."""
    text = canonical([role, content])
    if b"\\ud" in text:
        # Perhaps half of a pair, which is replaced on the way out; a message that comes back has it replaced.
        text = canonical([role, clean(content)])
    return body_hash(text)


def readable(record: Record) -> str:
    """A record's own text, for a title."""
    return " ".join(block.text for block in record.blocks if isinstance(block, TextBlock))


Progress = Callable[[int, int, str], None]
"""Done, total (0 unknown), what: called from the event loop's thread."""
