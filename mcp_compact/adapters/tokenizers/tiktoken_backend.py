"""Counts o200k_base tokens with tiktoken; what cannot be counted is estimated, never an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from mcp_compact.adapters.tokenizers import guard, ranks
from mcp_compact.messages.weights import UNITS_PER_TOKEN, estimate_units

if TYPE_CHECKING:
    import tiktoken

State = Literal["cold", "ready", "failed"]
Encode = Callable[[str], list[int]]


class O200kTokenizer:
    """A token counter that is exact once it is loaded and gives an estimate if it cannot be.

    Safe to use from several threads; the encoder releases the interpreter's lock.
    """

    name = ranks.NAME

    def __init__(self, load: Callable[[], tiktoken.Encoding] = ranks.load_encoding) -> None:
        self._load = load
        self._encode: Encode | None = None
        self._reason = ""

    @property
    def state(self) -> State:
        """`cold` before the first use, `ready` when counts are exact, `failed` when all are estimates."""
        if self._encode is not None:
            return "ready"
        return "failed" if self._reason else "cold"

    @property
    def reason(self) -> str:
        """Why loading failed and what to do; empty while it has not."""
        return self._reason

    def warm(self) -> None:
        """Loads the vocabulary (half a second of CPU, about 80 MB); never raises, safe in a worker thread."""
        if self.state != "cold":
            return
        try:
            self._encode = self._load().encode_ordinary
        except BaseException as error:
            if not _is_survivable(error):
                raise
            self._reason = f"{type(error).__name__}: {error}"

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text; loads the vocabulary first if nobody has.

        Exact to 64 Ki characters, and beyond where there are lines or words to cut at; see
        `counts_in_full` for what is approximate. Names of special tokens are plain text.
        """
        self.warm()
        encode = self._encode
        if encode is None:
            return [estimate_tokens(text) for text in texts]
        # A session repeats itself (files read again, resent results); looking a text up costs 0.5 % of encoding it.
        tokens = {text: _count_one(encode, text) for text in set(texts)}
        return [tokens[text] for text in texts]

    def counts_in_full(self, text: str) -> bool:
        """Whether `count` encodes this text as a whole, rather than a sample or not at all."""
        return not self._reason and not guard.is_sampled(text)


def estimate_tokens(text: str) -> int:
    """Tokens by the characters alone, rounded up."""
    return -(-estimate_units(text) // UNITS_PER_TOKEN)


def _count_one(encode: Encode, text: str) -> int:
    try:
        text = guard.clean(text)
        if len(text) <= guard.PIECE_CHARS:
            return len(encode(text))
        if guard.is_sampled(text):
            return _scale_up(encode, text)
        return sum(len(encode(piece)) for piece in guard.pieces(text))
    except BaseException as error:
        if not _is_survivable(error):
            raise
        return estimate_tokens(text)


def _scale_up(encode: Encode, text: str) -> int:
    windows = guard.sample(text)
    tokens = sum(len(encode(window)) for window in windows)
    return -(-tokens * len(text) // sum(map(len, windows)))


def _is_survivable(error: BaseException) -> bool:
    """Whether an error is the encoder's own: any Exception, or a panic of its native code.

    A panic is a BaseException and its class cannot be imported, so it is known by name. All
    others (interrupt, exit, cancellation of a task or generator) belong to the caller.
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"
