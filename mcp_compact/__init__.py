"""Keeps the conversations of agents inside their context window, and loses nothing for good."""

from __future__ import annotations

__version__ = "0.1.0"
