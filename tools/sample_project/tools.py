"""Turn a call of the story into the tool's input and its answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from .images import chart
from .story import Block, options
from .workspace import EDIT_MARK, ROOT, Answer, Workspace

NAMES = {
    "read": "Read",
    "readimage": "Read",
    "grep": "Grep",
    "glob": "Glob",
    "bash": "Bash",
    "edit": "Edit",
    "write": "Write",
    "todo": "TodoWrite",
    "task": "Task",
    "webfetch": "WebFetch",
    "websearch": "WebSearch",
    "plan": "ExitPlanMode",
}
_STATES = {"[x]": "completed", "[>]": "in_progress", "[ ]": "pending"}
PICTURES = {"before": 1.0, "after": 0.0}

Call = tuple[dict[str, Any], Answer]


class Tools:
    """The tools of the session over one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._todos: list[dict[str, str]] = []
        self._computed: dict[str, Callable[[Block], Call]] = {
            "read": self._read,
            "readimage": self._readimage,
            "grep": self._grep,
            "glob": self._glob,
            "edit": self._edit,
            "write": self._write,
            "todo": self._todo,
        }
        self._recorded: dict[str, Callable[[Block, Block | None], Call]] = {
            "bash": self._bash,
            "webfetch": self._webfetch,
            "websearch": self._websearch,
            "plan": self._plan,
        }

    def run(self, block: Block, out: Block | None) -> Call:
        """The input and the answer of one call; a Task is answered by the conversation."""
        if block.kind in self._computed:
            return self._computed[block.kind](block)
        return self._recorded[block.kind](block, out)

    def _read(self, block: Block) -> Call:
        (path,), named = options(block.arguments)
        query: dict[str, Any] = {"file_path": f"{ROOT}/{path}"}
        query |= {key: int(value) for key, value in named.items()}
        return query, self.workspace.read(path, query.get("offset", 1), query.get("limit"))

    def _readimage(self, block: Block) -> Call:
        (path, name), _ = options(block.arguments)
        raw = picture(name)
        detail = {
            "type": "image",
            "file": {"type": "image/png", "originalSize": len(raw)},
        }
        return {"file_path": f"{ROOT}/{path}"}, Answer("", detail)

    def _grep(self, block: Block) -> Call:
        query = json.loads(block.arguments)
        return query, self.workspace.grep(query)

    def _glob(self, block: Block) -> Call:
        query = json.loads(block.arguments)
        return query, self.workspace.glob(query["pattern"])

    def _bash(self, block: Block, out: Block | None) -> Call:
        text, named = _recorded(block, out)
        query = {"command": block.body, "description": block.arguments}
        if "err" in named:
            text = f"Exit code {named['err']}\n{text}"
            return query, Answer(text, f"Error: {text}", failed=True)
        detail = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        return query, Answer(text, detail)

    def _edit(self, block: Block) -> Call:
        words, _ = options(block.arguments)
        old, new = split_edit(block)
        answer = self.workspace.edit(words[0], old, new, every="all" in words)
        if answer.failed != ("fail" in words):
            raise ValueError(f"{block.line}: the edit did not go as told: {answer.text}")
        query = {
            "file_path": f"{ROOT}/{words[0]}",
            "old_string": old,
            "new_string": new,
            "replace_all": "all" in words,
        }
        return query, answer

    def _write(self, block: Block) -> Call:
        query = {"file_path": f"{ROOT}/{block.arguments}", "content": block.body + "\n"}
        return query, self.workspace.write(block.arguments, block.body + "\n")

    def _todo(self, block: Block) -> Call:
        before, self._todos = self._todos, []
        for line in block.body.split("\n"):
            content, _, active = line[4:].partition(" / ")
            self._todos.append({"content": content, "status": _STATES[line[:3]], "activeForm": active})
        detail = {"oldTodos": before, "newTodos": self._todos}
        return {"todos": self._todos}, Answer("Todos have been modified successfully.", detail)

    def _webfetch(self, block: Block, out: Block | None) -> Call:
        text, named = _recorded(block, out)
        query = json.loads(block.arguments)
        detail = {
            "bytes": 48_213,
            "code": 200,
            "codeText": "OK",
            "result": text,
            "durationMs": int(named.get("ms", "900")),
            "url": query["url"],
        }
        return query, Answer(text, detail)

    def _websearch(self, block: Block, out: Block | None) -> Call:
        text, named = _recorded(block, out)
        detail = {
            "query": block.arguments,
            "results": [],
            "durationSeconds": int(named.get("ms", "900")) / 1000,
        }
        return {"query": block.arguments}, Answer(text, detail)

    def _plan(self, block: Block, out: Block | None) -> Call:
        text, _ = _recorded(block, out)
        return {"plan": block.body}, Answer(text, {"plan": block.body, "isAgent": False})


def split_edit(block: Block) -> tuple[str, str]:
    """The old and the new text of an edit block."""
    old, mark, new = f"\n{block.body}\n".partition(EDIT_MARK)
    if not mark:
        raise ValueError(f"{block.line}: an edit needs a line %%%% between old and new")
    return old[1:], new[:-1]


def picture(name: str) -> bytes:
    """The screenshot of this name as PNG."""
    return chart(PICTURES[name])


def image_block(name: str) -> dict[str, Any]:
    """The screenshot of this name as a content block."""
    data = base64.b64encode(picture(name)).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


def _recorded(block: Block, out: Block | None) -> tuple[str, dict[str, str]]:
    if out is None:
        raise ValueError(f"{block.line}: the call has no recorded output")
    return out.body, options(out.arguments)[1]
