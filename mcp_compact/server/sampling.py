"""The client's own model as a writer of summaries (MCP sampling), in both eras of the protocol.

Up to 2025-11-25 the client is asked while the call waits. From 2026-07-28 on a server asks nothing by itself:
the call ends with the question, and the client makes it again with the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
from mcp.server.mcpserver import Context
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)
from pydantic import ValidationError

from mcp_compact.compaction.answers import SummaryAnswer
from mcp_compact.compaction.overrun import Overrun, read_overrun
from mcp_compact.compaction.summary import SummaryRequest
from mcp_compact.messages.codec import well_formed
from mcp_compact.ports.summarizer import Later, TooLong, WriterFailed, Written
from mcp_compact.server.backend import Backend, SamplingLimits
from mcp_compact.service.jobs import SAMPLING

FIRST_WITHOUT_REQUESTS = "2026-07-28"
"""The first version of the protocol in which a server sends no requests. Versions are dates."""
QUESTION = "summary"
"""Names the question and its answer."""
USER_REJECTED = -1
"""The error of a client whose user does not want the model to be asked."""
PROMPT_CHARS_PER_TOKEN = 3
SHOWN = 300


@dataclass(slots=True)
class ClientModel:
    """Asks the model of the client for a summary. Clients do not report what it cost."""

    ctx: Context[Backend]
    limits: SamplingLimits
    name: str = SAMPLING
    asked: SummaryRequest | None = field(default=None, init=False)
    """What the client is to be asked when this call has ended."""

    async def write(self, request: SummaryRequest) -> Written | TooLong | WriterFailed | Later:
        """One summary, or the promise of one; raises nothing but the cancellation."""
        if self.ctx.request_state is not None:
            return self._given()
        limit = self._material_limit(request)
        if request.material_tokens > limit:
            return TooLong(Overrun(request.material_tokens, limit))
        if not sends_requests(self.ctx):
            self.asked = request
            return Later(self.limits.timeout_s)
        with anyio.move_on_after(self.limits.timeout_s):
            return await self._sent(request)
        return WriterFailed("timeout", f"the client gave no summary within {self.limits.timeout_s:g} s")

    def question(self, compaction_id: str) -> InputRequiredResult:
        """The call's answer that asks the client. The SDK seals the state: a client can neither read nor make one."""
        if self.asked is None:
            raise RuntimeError("the client was not to be asked")
        return InputRequiredResult(input_requests={QUESTION: self._request(self.asked)}, request_state=compaction_id)

    def _material_limit(self, request: SummaryRequest) -> int:
        """Tokens: what the session's own window holds beside the prompt and the summary, the client's being unknown."""
        beside = self._most(request) + (len(request.prompt) + len(request.system)) // PROMPT_CHARS_PER_TOKEN
        return max(request.context_window - beside, request.context_window // 2)

    def _most(self, request: SummaryRequest) -> int:
        return min(request.max_tokens, self.limits.max_tokens)

    def _request(self, request: SummaryRequest) -> CreateMessageRequest:
        text = TextContent(type="text", text=well_formed(request.text))
        return CreateMessageRequest(
            params=CreateMessageRequestParams(
                messages=[SamplingMessage(role="user", content=text)],
                system_prompt=request.system,
                max_tokens=self._most(request),
            )
        )

    async def _sent(self, request: SummaryRequest) -> Written | TooLong | WriterFailed:
        metadata = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        try:
            # The kind of result that takes in every other: a call of a tool is an answer too, if not a summary.
            result = await self.ctx.session.send_request(
                self._request(request), CreateMessageResultWithTools, metadata=metadata
            )
        except MCPError as error:
            return _failure(error)
        except ValidationError:
            return WriterFailed("bad_answer", "the client's answer has not the form of the protocol")
        return _written(result)

    def _given(self) -> Written | WriterFailed:
        """What the client answered with the call that it made again."""
        match (self.ctx.input_responses or {}).get(QUESTION):
            case CreateMessageResult() | CreateMessageResultWithTools() as result:
                return _written(result)
            case None:
                return WriterFailed("no_answer", "the client made the call again without an answer")
            case _:
                return WriterFailed("bad_answer", "the client answered another question")


def client_model(ctx: Context[Backend]) -> ClientModel | None:
    """The client's model, where it may be asked and can be reached."""
    model = ClientModel(ctx, ctx.request_context.lifespan_context.sampling)
    if ctx.request_state is not None:
        return model
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        return None
    return None if sends_requests(ctx) and not ctx.session.can_send_request else model


def sends_requests(ctx: Context[Backend]) -> bool:
    """May a server send requests in the client's version of the protocol?"""
    return (ctx.protocol_version or "") < FIRST_WITHOUT_REQUESTS


def _written(result: CreateMessageResult | CreateMessageResultWithTools) -> Written:
    content = result.content if isinstance(result.content, list) else [result.content]
    blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in content]
    model = _shown(result.model)
    return Written(SummaryAnswer(blocks, result.stop_reason or ""), f"{SAMPLING}:{model}" if model else SAMPLING)


def _failure(error: MCPError) -> TooLong | WriterFailed:
    text = error.error.message
    if (overrun := read_overrun(text)) is not None:
        return TooLong(overrun)
    reason = "refused" if error.error.code == USER_REJECTED else "unavailable"
    return WriterFailed(reason, f"the client answered error {error.error.code}: {_shown(text)}")


def _shown(text: str) -> str:
    """Text of the client on one line, cut."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= SHOWN else line[:SHOWN] + "..."
