"""Writers of summaries that are asked over the network: a provider's model."""

from __future__ import annotations

from mcp_compact.adapters.summarizers.provider import ProviderSummarizer, provider_of

__all__ = ["ProviderSummarizer", "provider_of"]
