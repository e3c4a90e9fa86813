"""The project's files as the session sees them, and what the file tools answer."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass, field
from typing import Any

ROOT = "/home/sam/tidewise"
EDIT_MARK = "\n%%%%\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool gives back: the text the model reads and the structured copy beside it."""

    text: str
    detail: object = None
    failed: bool = False


@dataclass(slots=True)
class Workspace:
    """Files by path relative to ROOT; edits change them, so later reads agree."""

    files: dict[str, str] = field(default_factory=dict)

    def read(self, path: str, offset: int = 1, limit: int | None = None) -> Answer:
        """Number the lines as the Read tool does; a missing file is a failed answer."""
        if path not in self.files:
            return _failed("File does not exist.")
        lines = self.files[path].split("\n")
        if lines[-1] == "":
            lines.pop()
        stop = len(lines) if limit is None else offset - 1 + limit
        part = lines[offset - 1 : stop]
        text = "\n".join(f"{n:6d}→{line}" for n, line in enumerate(part, start=offset))
        detail = {
            "type": "text",
            "file": {
                "filePath": f"{ROOT}/{path}",
                "content": "\n".join(part),
                "numLines": len(part),
                "startLine": offset,
                "totalLines": len(lines),
            },
        }
        return Answer(text, detail)

    def write(self, path: str, content: str) -> Answer:
        """Create or replace a file."""
        known = path in self.files
        self.files[path] = content
        full = f"{ROOT}/{path}"
        text = f"The file {full} has been updated." if known else f"File created successfully at: {full}"
        detail: dict[str, Any] = {
            "type": "update" if known else "create",
            "filePath": full,
            "structuredPatch": [],
            "originalFile": None,
        }
        return Answer(text, detail)

    def edit(self, path: str, old: str, new: str, *, every: bool) -> Answer:
        """Replace ``old``, which must occur once unless ``every``; else a failed answer."""
        before = self.files[path]
        count = before.count(old)
        if count == 0:
            return _failed(f"String to replace not found in file.\nString: {old}")
        if count > 1 and not every:
            return _failed(f"Found {count} matches of the string to replace, but replace_all is false.\nString: {old}")
        self.files[path] = before.replace(old, new)
        full = f"{ROOT}/{path}"
        detail = {
            "filePath": full,
            "oldString": old,
            "newString": new,
            "structuredPatch": [_hunk(before, old, new)],
            "userModified": False,
            "replaceAll": every,
        }
        return Answer(f"The file {full} has been updated successfully.", detail)

    def grep(self, query: dict[str, Any]) -> Answer:
        """Search the files as the Grep tool does, in path order."""
        pattern = re.compile(str(query["pattern"]))
        mode = query.get("output_mode", "files_with_matches")
        hits: dict[str, list[tuple[int, str]]] = {}
        for path in self._below(str(query.get("path", "")), str(query.get("glob", "*"))):
            found = [
                (number, line)
                for number, line in enumerate(self.files[path].split("\n"), start=1)
                if pattern.search(line)
            ]
            if found:
                hits[path] = found
        if not hits:
            return Answer("No matches found", {"mode": mode, "numFiles": 0, "filenames": []})
        if mode == "content":
            rows = [f"{p}:{n}:{line}" for p, found in hits.items() for n, line in found]
            if str(query.get("path", "")) in self.files:
                rows = [row.partition(":")[2] for row in rows]
            text = "\n".join(rows)
            return Answer(
                text,
                {
                    "mode": mode,
                    "numFiles": 0,
                    "filenames": [],
                    "content": text,
                    "numLines": len(rows),
                },
            )
        if mode == "count":
            rows = [f"{p}:{len(found)}" for p, found in hits.items()]
            total = sum(len(found) for found in hits.values())
            text = "\n".join(rows) + f"\n\nFound {total} total occurrences across {len(rows)} files."
            return Answer(text, {"mode": mode, "numFiles": len(rows), "filenames": []})
        return Answer(
            f"Found {len(hits)} files\n" + "\n".join(hits),
            {"mode": mode, "filenames": list(hits), "numFiles": len(hits)},
        )

    def glob(self, pattern: str) -> Answer:
        """List matching paths, absolute as the Glob tool gives them."""
        found = [f"{ROOT}/{p}" for p in sorted(self.files) if fnmatch.fnmatch(p, pattern)]
        detail = {
            "filenames": found,
            "durationMs": 11,
            "numFiles": len(found),
            "truncated": False,
        }
        return Answer("\n".join(found) or "No files found", detail)

    def _below(self, where: str, glob: str) -> list[str]:
        return [
            path
            for path in sorted(self.files)
            if (path == where or path.startswith(f"{where}/") or not where)
            and (fnmatch.fnmatch(path, glob) or fnmatch.fnmatch(path.split("/")[-1], glob))
        ]


def _failed(text: str) -> Answer:
    return Answer(f"<tool_use_error>{text}</tool_use_error>", f"Error: {text}", failed=True)


def _hunk(before: str, old: str, new: str) -> dict[str, Any]:
    first = before[: before.index(old)].count("\n") + 1
    gone, come = old.split("\n"), new.split("\n")
    return {
        "oldStart": first,
        "oldLines": len(gone),
        "newStart": first,
        "newLines": len(come),
        "lines": [f"-{line}" for line in gone] + [f"+{line}" for line in come],
    }
