"""Appending against the raw work: the very rows by executemany and raw tiktoken; one message against a bare transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

from mcp_compact.adapters.tokenizers.ranks import load_encoding
from mcp_compact.config import load_settings
from mcp_compact.service.service import Service
from mcp_compact.wiring import open_service
from tests.bench.large_archive import dialogue, paragraph
from tests.bench.measuring import Times, async_milliseconds, milliseconds
from tests.bench.recorded_sql import plain

MANY = 1_000
TABLES = ("body", "record", "call", "result", "media", "ledger")
ONE = "read the parser and mend the offset of the line in src/module before the next release "


def messages(number: int) -> list[dict[str, Any]]:
    """Messages as a loop sends them, about 1 KB each: role and content; results are whole files."""
    out: list[dict[str, Any]] = []
    for at, record in enumerate(dialogue(number, 0)):
        if record.message is not None:
            out.append({"role": record.message.role, "content": _longer(record.message.content, 4 * at)})
    return out


def _longer(content: Any, at: int) -> Any:
    """Results three times as long, the other texts twice."""
    if isinstance(content, str):
        return f"{content}\n{paragraph(at)}"
    more = "\n".join(paragraph(at + number) for number in range(3))
    return [
        {**block, "content": f"{block['content']}\n{more}"}
        if "tool_use_id" in block
        else {**block, "text": f"{block['text']}\n{paragraph(at)}"}
        if "text" in block
        else block
        for block in content
    ]


def texts_of(items: Sequence[dict[str, Any]]) -> list[str]:
    """What a model reads of them, as it is counted: texts, inputs as JSON, results."""
    out: list[str] = []
    for item in items:
        blocks = item["content"] if isinstance(item["content"], list) else [{"text": item["content"]}]
        for block in blocks:
            said = block.get("text") or block.get("content") or block.get("input")
            out.append(said if isinstance(said, str) else json.dumps(said))
    return out


async def append_many(folder: Path, repeats: int) -> Times:
    """`ours`: the service's append of 1,000 messages; `raw`: their rows by executemany, their texts by tiktoken."""
    times, items = Times(), messages(MANY)
    encode = load_encoding().encode_ordinary
    texts = texts_of(items)
    async with open_service(replace(load_settings({}), db=folder / "many.db", extract=False)) as service:
        await service.append_messages(items[:10], "warm")
        rows, statements = await _rows(service, folder, items)
        for at in range(repeats):
            times.add("ours", await async_milliseconds(lambda at=at: service.append_messages(items, f"s{at}")))  # type: ignore[misc]
            conn = _empty(folder, at)
            times.add("insert", milliseconds(lambda conn=conn: _insert(conn, rows, statements)))  # type: ignore[misc]
            conn.close()
            times.add("count", milliseconds(lambda: [encode(text) for text in texts]))
    return times


async def _rows(service: Service, folder: Path, items: Sequence[dict[str, Any]]) -> tuple[list[list[Any]], list[str]]:
    """The rows that an append of these messages to an empty archive leaves behind."""
    path = folder / "rows.db"
    async with open_service(replace(load_settings({}), db=path, extract=False)) as other:
        await other.append_messages(list(items), "s")
    del service
    conn = plain(path)
    found = [conn.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES]
    conn.close()
    marks = [", ".join("?" * len(rows[0])) if rows else "" for rows in found]
    return found, [f"INSERT INTO {table} VALUES ({mark})" for table, mark in zip(TABLES, marks, strict=True)]


def _empty(folder: Path, at: int) -> sqlite3.Connection:
    from mcp_compact.adapters.sqlite import operations

    path = folder / f"raw{at}.db"
    operations.connect(path).close()
    return plain(path)


def _insert(conn: sqlite3.Connection, rows: Sequence[Sequence[Any]], statements: Sequence[str]) -> None:
    conn.execute("BEGIN IMMEDIATE")
    for found, statement in zip(rows, statements, strict=True):
        if found:
            conn.executemany(statement, found)
    conn.execute("COMMIT")


async def append_one(folder: Path, repeats: int) -> Times:
    """`ours` and `count` of one message, and the bare transaction of five statements that stores it as one row."""
    times, numbers = Times(), count()
    encode = load_encoding().encode_ordinary
    bare = _bare(folder / "bare.db")
    async with open_service(replace(load_settings({}), db=folder / "one.db", extract=False)) as service:
        for _ in range(repeats):
            said = f"{ONE * 8}{next(numbers)}"
            one = [{"role": "user", "content": said}]
            times.add("ours", await async_milliseconds(lambda one=one: service.append_messages(one, "s")))  # type: ignore[misc]
            times.add("raw", milliseconds(lambda said=said: _store(bare, said)))  # type: ignore[misc]
            times.add("count", milliseconds(lambda said=said: encode(said)))  # type: ignore[misc]
    bare.close()
    return times


def _bare(path: Path) -> sqlite3.Connection:
    conn = plain(path)
    conn.execute("PRAGMA journal_mode=WAL").fetchall()
    conn.execute("CREATE TABLE session (id INTEGER PRIMARY KEY, last_seq INTEGER, tokens INTEGER)")
    conn.execute(
        "CREATE TABLE message (session INTEGER, seq INTEGER, uuid TEXT, body BLOB, PRIMARY KEY (session, seq))"
    )
    conn.execute("CREATE UNIQUE INDEX message_uuid ON message (session, uuid)")
    conn.execute("INSERT INTO session VALUES (1, 0, 0)")
    return conn


def _store(conn: sqlite3.Connection, said: str) -> None:
    conn.execute("BEGIN IMMEDIATE")
    seq = conn.execute("SELECT last_seq FROM session WHERE id = 1").fetchone()[0] + 1
    body = json.dumps({"role": "user", "content": said}).encode()
    conn.execute("INSERT INTO message VALUES (1, ?, ?, ?)", (seq, f"uuid-{seq}", body))
    conn.execute("UPDATE session SET last_seq = ?, tokens = tokens + 1 WHERE id = 1", (seq,))
    conn.execute("COMMIT")
