"""The o200k_base vocabulary that is shipped with this package, and the encoding made of it.

Nothing is downloaded, no environment variable is read or set, and no encoding is registered
with tiktoken: a plugin of ours could break other people's tiktoken, and theirs ours.

Layout of the data (inside xz): the number of tokens (4 bytes, big-endian), the length of each
token (1 byte each), then the tokens' bytes, all in rank order. Lengths apart from bytes make
it smaller and twice as fast to read as tokens with a length before each.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_compact.errors import ServerError

if TYPE_CHECKING:
    import tiktoken

NAME = "o200k_base"
PUBLISHED_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
"""Of the vocabulary as OpenAI publishes it (o200k_base.tiktoken)."""
LAYOUT_SHA256 = "2f451f31d7403017d0b0dc6319ded23a09f33f573b1635c001fc6b91a1c21302"
"""Of the same vocabulary in our layout, not compressed."""
DATA_FILE = Path(__file__).parent / "data" / "o200k_base.ranks.xz"

COUNT_BYTES = 4
PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*|"
    r"\s*[\r\n]+|"
    r"\s+(?!\S)|"
    r"\s+"
)
"""How o200k_base splits text before it merges bytes, as tiktoken defines it (see data/NOTICE.md)."""

_lock = threading.Lock()


def load_encoding() -> tiktoken.Encoding:
    """The o200k_base encoding: made by the first call (half a second), shared by all others and all threads.

    Raises ServerError (`tokenizer_data_damaged`) for a missing or damaged data file, and
    ImportError where tiktoken or lzma is not installed.
    """
    with _lock:
        return _shared_encoding()


@functools.cache
def _shared_encoding() -> tiktoken.Encoding:
    return build_encoding(DATA_FILE)


def build_encoding(source: Path) -> tiktoken.Encoding:
    """An encoding from a data file; no special tokens, so that their names count as plain text."""
    import tiktoken  # noqa: PLC0415 - costs 50 ms and 10 MB, which only who counts shall pay

    ranks = read_ranks(source)
    return tiktoken.Encoding(name=NAME, pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def read_ranks(source: Path) -> dict[bytes, int]:
    """Token to rank from a data file, checked against the pinned hash."""
    import lzma  # noqa: PLC0415 - some builds of Python lack it; then only counting shall fail

    try:
        layout = lzma.decompress(source.read_bytes())
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise _damaged(source, f"cannot be read ({error})") from error
    digest = hashlib.sha256(layout).hexdigest()
    if digest != LAYOUT_SHA256:
        raise _damaged(source, f"has the sha256 {digest} instead of {LAYOUT_SHA256}")
    return unpack(layout)


def unpack(layout: bytes) -> dict[bytes, int]:
    """Token to rank from our layout, whose hash has been checked."""
    count = int.from_bytes(layout[:COUNT_BYTES], "big")
    first = COUNT_BYTES + count
    ends = accumulate(layout[COUNT_BYTES:first], initial=first)
    return {layout[start:end]: rank for rank, (start, end) in enumerate(pairwise(ends))}


def _damaged(source: Path, what: str) -> ServerError:
    return ServerError(
        "tokenizer_data_damaged",
        f"The vocabulary file {source.name} {what}.",
        "Install mcp-compact again; until then tokens are estimated.",
    )
