"""The schema by numbered files: `schema/001.sql` makes version 1, and so on; each is one transaction."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from mcp_compact.adapters.sqlite.waiting import begin_writing
from mcp_compact.errors import ServerError

APPLICATION_ID = 0x4D435043
"""`MCPC` in the file's header: the file is an archive of ours."""
_SCHEMA = Path(__file__).with_name("schema")


def schema_versions() -> tuple[tuple[int, str], ...]:
    """Version and SQL of each migration, in order."""
    scripts = sorted(item.name for item in _SCHEMA.iterdir() if item.name.endswith(".sql"))
    return tuple(
        (int(name.removesuffix(".sql")), _SCHEMA.joinpath(name).read_text(encoding="utf-8")) for name in scripts
    )


def migrate(conn: sqlite3.Connection, versions: tuple[tuple[int, str], ...] | None = None) -> None:
    """Bring the schema up to date. Several processes may do so at once: one migrates, the others wait.

    Raises ServerError: `newer_schema` for a file of a later release, `foreign_database` for a file of something else.
    """
    known = versions if versions is not None else schema_versions()
    newest = known[-1][0]
    if _version(conn) == newest and _application(conn) == APPLICATION_ID:
        return
    begin_writing(conn)
    try:
        # Read again under the lock: another process may have migrated meanwhile.
        check_ours(conn, newest)
        for version, script in known:
            if version > _version(conn):
                _run(conn, script)
                conn.execute(f"PRAGMA user_version={version}")
        conn.execute(f"PRAGMA application_id={APPLICATION_ID}")
        conn.execute("COMMIT")
    finally:
        if conn.in_transaction:
            conn.execute("ROLLBACK")


def check_ours(conn: sqlite3.Connection, newest: int | None = None) -> None:
    """Refuse a file of another program or of a later release before anything in it is touched."""
    newest = schema_versions()[-1][0] if newest is None else newest
    version = _version(conn)
    empty = conn.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if _application(conn) != APPLICATION_ID and not (empty and version == 0):
        raise ServerError(
            "foreign_database",
            "The file is an SQLite database of another program.",
            "Name another file for the archive.",
        )
    if version > newest:
        raise ServerError(
            "newer_schema",
            f"The archive has schema {version}; this release knows {newest}.",
            "Upgrade mcp-compact, or name another file for the archive.",
        )


def _run(conn: sqlite3.Connection, script: str) -> None:
    """Statement by statement: `executescript` would commit the open transaction first.

    A script that ends in the middle, or says nothing, is a damaged installation: no version may stand for it.
    """
    statement, number = "", 0
    for line in script.splitlines(keepends=True):
        statement += line
        if ";" in line and sqlite3.complete_statement(statement):
            conn.execute(statement)
            statement, number = "", number + 1
    if statement.strip() or not number:
        raise ServerError(
            "broken_installation",
            "A schema file of the package is cut short.",
            "Nothing was changed; install mcp-compact again.",
        )


def _version(conn: sqlite3.Connection) -> int:
    return int(conn.execute("PRAGMA user_version").fetchone()[0])


def _application(conn: sqlite3.Connection) -> int:
    return int(conn.execute("PRAGMA application_id").fetchone()[0])
