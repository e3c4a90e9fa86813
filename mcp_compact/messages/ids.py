"""Identifiers. A record's uuid and the API's message id are easily mixed up; the types keep them apart."""

from __future__ import annotations

from typing import NewType

SessionId = NewType("SessionId", str)
MessageUuid = NewType("MessageUuid", str)
"""Names one record of the archive."""
ApiMessageId = NewType("ApiMessageId", str)
"""The provider's id of one answer; several records share it when an answer is stored block by block."""
ToolUseId = NewType("ToolUseId", str)
