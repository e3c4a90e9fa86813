"""The command line: the face for people."""

from __future__ import annotations
