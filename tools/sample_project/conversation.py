"""Play the story: group its blocks into messages and write the records."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from .grouping import Step, group
from .records import MODEL, Transcript, fitting_detail
from .story import CALLS, Block, options
from .tools import NAMES, Tools, image_block
from .workspace import Answer

SLOW_MS = 2_500
_REMINDER = "\n\n<system-reminder>"


class Conversation:
    """Writes messages, results and everything around them to a transcript."""

    def __init__(self, transcript: Transcript, tools: Tools) -> None:
        self.out = transcript
        self.tools = tools
        self.count = 0
        self.edits = 0
        self.turns = 0
        self.mode = "default"
        self.forked: tuple[str | None, float] = (None, 0.0)
        self.prompted_at: datetime = transcript.now
        self._events: dict[str, Callable[[Block], None]] = {
            "user": self._user,
            "time": lambda block: self.out.wait_until(block.arguments),
            "hook": self._hook,
            "stop": lambda _: self._stop(),
            "enqueue": self._enqueue,
            "remove": lambda _: self._queue("remove", {}),
            "fork": lambda _: self._fork(),
            "back": lambda _: self._back(),
            "summary": self._summary,
        }

    def play(self, blocks: list[Block]) -> None:
        """Write the records of the whole story."""
        items = list(group(blocks))
        for position, item in enumerate(items):
            if isinstance(item, Block):
                self._events[item.kind](item)
                continue
            after = items[position + 1] if position + 1 < len(items) else None
            last = isinstance(after, Block) and after.kind in ("stop", "back")
            self.message(item, None, self.out.context, last=last)

    def message(
        self, steps: list[Step], agent: str | None, context: float, top: str | None = None, *, last: bool
    ) -> str | None:
        """Write one assistant message and its results; returns the newest record's uuid."""
        out = self.out
        self.count += 1
        head = {"model": MODEL, "id": out.code("msg_01"), "type": "message", "role": "assistant"}
        request = out.code("req_011", 21)
        usage = self._usage(agent, context)
        parent = top if agent else out.parent
        newest = parent
        waiting: list[tuple[str, str, Step, Answer]] = []
        for number, step in enumerate(steps):
            content, answer = self._content(step)
            out.wait(1.2, 6.5)
            reason = "end_turn" if last and number == len(steps) - 1 else None
            if content["type"] == "tool_use" and self.count % 11 == 0 and step is steps[-1]:
                reason = "tool_use"
            body = {**head, "content": [content], "stop_reason": reason, "stop_sequence": None}
            parent = newest = out.add(
                "assistant",
                {"message": {**body, "usage": usage}, "requestId": request},
                parent,
                agent,
            )
            if answer is not None:
                waiting.append((content["id"], parent, step, answer))
                if self.count % 2 == 0:
                    newest = self._results(waiting, agent)
        if waiting:
            newest = self._results(waiting, agent)
        if agent is None:
            out.parent = newest
        return newest

    def _usage(self, agent: str | None, context: float) -> dict[str, Any]:
        if agent is None:
            return self.out.usage()
        return {
            "input_tokens": 4,
            "cache_creation_input_tokens": round(context) - 9_144,
            "cache_read_input_tokens": 9_140,
            "output_tokens": 2,
            "service_tier": "standard",
        }

    def _content(self, step: Step) -> tuple[dict[str, Any], Answer | None]:
        block = step.block
        if block.kind == "think":
            return {
                "type": "thinking",
                "thinking": block.body,
                "signature": self.out.signature(block.body),
            }, None
        if block.kind == "say":
            self._grow(block, block.body)
            return {"type": "text", "text": block.body}, None
        if block.kind == "task":
            agent, _, description = block.arguments.partition("::")
            query: dict[str, Any] = {
                "subagent_type": agent,
                "description": description,
                "prompt": block.body,
            }
            answer = Answer("")
        else:
            query, answer = self.tools.run(block, step.out)
        self._grow(block, json.dumps(query, ensure_ascii=False))
        name = NAMES[block.kind]
        call = {"type": "tool_use", "id": self.out.code("toolu_01"), "name": name, "input": query}
        return call, answer

    def _grow(self, block: Block, text: str, images: int = 0) -> None:
        if not block.side:
            self.out.grow(text, images)

    def _results(self, waiting: list[tuple[str, str, Step, Answer]], agent: str | None) -> str:
        newest = ""
        for call_id, record, step, answer in waiting:
            newest = self._result(call_id, record, step, answer, agent)
        waiting.clear()
        return newest

    def _result(self, call_id: str, record: str, step: Step, answer: Answer, agent: str | None) -> str:
        block, parent = step.block, record
        content: Any = answer.text
        text, images = answer.text, 0
        detail = answer.detail
        if block.kind == "task":
            content, detail = self._sidechain(step)
            text = str(content)
        elif block.kind == "readimage":
            content, images = [image_block(options(block.arguments)[0][1])], 1
        else:
            parent = self._progress(block, step.out, call_id, record)
        result: dict[str, Any] = {
            "tool_use_id": call_id,
            "type": "tool_result",
            "content": content,
        }
        if answer.failed or block.kind == "bash":
            result["is_error"] = answer.failed
        self._grow(block, text, images)
        fields = {
            "message": {"role": "user", "content": [result]},
            **fitting_detail(detail),
            "sourceToolAssistantUUID": record,
        }
        newest = self.out.add("user", fields, parent, agent)
        return self._after_edit(block, call_id, newest)

    def _progress(self, block: Block, out: Block | None, call_id: str, record: str) -> str:
        spent = int(options(out.arguments)[1].get("ms", "0")) if out else 0
        if spent <= SLOW_MS or block.side:
            self.out.wait(0.04, 0.6)
            return record
        self.out.wait(2.0, 2.1)
        kinds: dict[str, dict[str, Any]] = {
            "websearch": {"type": "query_update", "query": block.arguments},
            "bash": {
                "type": "bash_progress",
                "output": "",
                "fullOutput": "",
                "elapsedTimeSeconds": 2,
                "totalLines": 0,
            },
        }
        data = kinds.get(block.kind)
        newest = record
        if data is not None:
            fields = {
                "data": data,
                "toolUseID": f"{block.kind}-progress-{self.count}",
                "parentToolUseID": call_id,
            }
            newest = self.out.add("progress", fields, record)
        rest = spent / 1000 - 2.0
        self.out.wait(rest, rest + 0.05)
        return newest

    def _after_edit(self, block: Block, call_id: str, newest: str) -> str:
        if block.kind not in ("edit", "write"):
            return newest
        self.edits += 1
        if self.edits % 9:
            return newest
        name = NAMES[block.kind]
        data = {
            "type": "hook_progress",
            "hookEvent": "PostToolUse",
            "hookName": f"PostToolUse:{name}",
            "command": "ruff format --quiet --check tidewise",
        }
        fields = {"data": data, "toolUseID": call_id, "parentToolUseID": call_id}
        return self.out.add("progress", fields, newest)

    def _sidechain(self, step: Step) -> tuple[list[dict[str, str]], dict[str, Any]]:
        """Write the sub-agent's records and return the result of the Task call."""
        agent = self.out.uuid()[:7]
        prompt = step.block.body
        start, context, calls = self.out.now, 9_600.0, 0
        top: str | None = self.out.add("user", {"message": {"role": "user", "content": prompt}}, None, agent)
        items = list(group([_plain(block) for block in step.side]))
        for item in items:
            if isinstance(item, Block):
                raise TypeError(f"{item.line}: a sub-agent has calls and words only")
            calls += sum(entry.block.kind in CALLS for entry in item)
            before = len(self.out.lines)
            kept = self.out.context
            top = self.message(item, agent, context, top, last=item is items[-1])
            self.out.context = kept
            context += sum(len(line) for line in self.out.lines[before:]) * 0.3
        report = step.side[-1].body
        spent = round((self.out.now - start).total_seconds() * 1000)
        note = (
            f"agentId: {agent}\n<usage>total_tokens: {round(context)}\ntool_uses: {calls}\nduration_ms: {spent}</usage>"
        )
        content = [{"type": "text", "text": report}, {"type": "text", "text": note}]
        detail = {
            "status": "completed",
            "agentId": agent,
            "totalDurationMs": spent,
            "totalTokens": round(context),
            "totalToolUseCount": calls,
        }
        return content, detail

    def _user(self, block: Block) -> None:
        _, named = options(block.arguments)
        text, mark, reminder = block.body.partition(_REMINDER)
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if mark:
            self.mode = "plan" if "Plan mode is on" in reminder else self.mode
            blocks.append({"type": "text", "text": mark.strip() + reminder})
        if "image" in named:
            blocks.append(image_block(named["image"]))
        content: Any = text if len(blocks) == 1 else blocks
        self.out.grow(block.body, int("image" in named))
        self.prompted_at = self.out.now
        fields = {
            "message": {"role": "user", "content": content},
            "thinkingMetadata": {"maxThinkingTokens": 31_999},
            "todos": [],
            "permissionMode": self.mode,
        }
        self.mode = "default"
        snapshot = len(self.out.lines)
        own = self.out.add("user", fields, self.out.parent)
        self.out.parent = own
        self.out.bare(self._snapshot(own))
        self.out.lines[snapshot:] = reversed(self.out.lines[snapshot:])

    def _snapshot(self, message: str) -> dict[str, Any]:
        changed = sorted(p for p in self.tools.workspace.files if p.endswith("parser.py"))
        now = self.out.stamp()
        backups = {path: {"backupFileName": None, "version": 1, "backupTime": now} for path in changed[: self.edits]}
        return {
            "type": "file-history-snapshot",
            "messageId": message,
            "snapshot": {
                "messageId": message,
                "trackedFileBackups": backups,
                "timestamp": self.out.stamp(),
            },
            "isSnapshotUpdate": False,
        }

    def _hook(self, block: Block) -> None:
        name, _, command = block.arguments.partition(" ")
        own = self.out.uuid()
        data = {
            "type": "hook_progress",
            "hookEvent": name.partition(":")[0],
            "hookName": name,
            "command": command,
        }
        fields = {"data": data, "parentToolUseID": own, "toolUseID": own}
        self.out.parent = self.out.add("progress", fields, self.out.parent)
        text = f"<system-reminder>\n{name} hook additional context: {block.body}\n</system-reminder>"
        self.out.grow(text)
        meta = {"message": {"role": "user", "content": text}, "isMeta": True}
        self.out.parent = self.out.add("user", meta, self.out.parent)

    def _stop(self) -> None:
        self.out.wait(0.1, 0.9)
        self.turns += 1
        if self.turns % 2:
            self._stop_hook()
        spent = round((self.out.now - self.prompted_at).total_seconds() * 1000)
        fields = {"subtype": "turn_duration", "durationMs": spent, "isMeta": False}
        self.out.parent = self.out.add("system", fields, self.out.parent)

    def _stop_hook(self) -> None:
        summary = {
            "subtype": "stop_hook_summary",
            "hookCount": 1,
            "hookInfos": [{"command": "git status --short --branch"}],
            "hookErrors": [],
            "preventedContinuation": False,
            "stopReason": "",
            "hasOutput": True,
            "level": "suggestion",
            "toolUseID": self.out.uuid(),
        }
        self.out.parent = self.out.add("system", summary, self.out.parent)

    def _queue(self, operation: str, extra: dict[str, str]) -> None:
        record = {
            "type": "queue-operation",
            "operation": operation,
            "timestamp": self.out.stamp(),
            "sessionId": self.out.session,
        }
        self.out.bare(record | extra)

    def _enqueue(self, block: Block) -> None:
        self._queue("enqueue", {"content": block.body})

    def _fork(self) -> None:
        self.forked = (self.out.parent, self.out.context)

    def _back(self) -> None:
        self.out.parent = self.forked[0]
        self.out.rewind(self.forked[1])

    def _summary(self, block: Block) -> None:
        leaf = self.out.uuid()
        self.out.bare({"type": "summary", "summary": block.body, "leafUuid": leaf})


def _plain(block: Block) -> Block:
    """A sub-agent's block as the grouping wants it: the mark of the side taken off."""
    return Block(block.kind, block.arguments, block.body, block.line, block.parallel)
