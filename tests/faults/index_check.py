"""Is every word of every stored record in the full-text index, at its place, and nothing else?"""

from __future__ import annotations

import sqlite3

from mcp_compact.adapters.sqlite.operations.indexing import catch_up, waiting
from mcp_compact.adapters.sqlite.operations.rows import WHOLE, record_of_row
from mcp_compact.adapters.sqlite.operations.searchable import for_index, readable


def index_problems(conn: sqlite3.Connection) -> list[str]:
    """Index what waits, build the same index anew from the records, and compare them word by word."""
    while waiting(conn):
        catch_up(conn, 60.0)
    made = conn.execute("SELECT sql FROM sqlite_master WHERE name = 'fts'").fetchone()[0]
    conn.execute(made.replace("CREATE VIRTUAL TABLE fts ", "CREATE VIRTUAL TABLE temp.anew ", 1))
    rows = conn.execute(f"SELECT r.id, {WHOLE} FROM record r JOIN body b ON b.id = r.body_id ORDER BY r.id").fetchall()
    texts = [(row[0], for_index(readable(record_of_row(row[1:])))) for row in rows]
    conn.executemany("INSERT INTO temp.anew (rowid, text) VALUES (?, ?)", texts)
    conn.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab('main', 'fts', 'instance')")
    conn.execute("CREATE VIRTUAL TABLE temp.words_anew USING fts5vocab('temp', 'anew', 'instance')")
    both = ("words", "words_anew")
    missing, needless = (
        conn.execute(
            f"SELECT term, doc, offset FROM temp.{one} EXCEPT SELECT term, doc, offset FROM temp.{other} LIMIT 5"
        ).fetchall()
        for one, other in (both[::-1], both)
    )
    for table in ("words", "words_anew", "anew"):
        conn.execute(f"DROP TABLE temp.{table}")
    assert texts, "there is nothing to be found"
    return [f"{word} is not found" for word in missing] + [f"{word} is found for nothing" for word in needless]
