"""Token counters: exact ones that need a vocabulary, and what they fall back to."""

from __future__ import annotations

from mcp_compact.adapters.tokenizers.tiktoken_backend import O200kTokenizer

__all__ = ["O200kTokenizer"]
