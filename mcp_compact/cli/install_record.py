"""What was installed for a client, as it is remembered: enough to leave every file as it was found."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_compact.cli.install_entries import Entry, entry_as_json, entry_from_json
from mcp_compact.config import default_db
from mcp_compact.errors import CallerError

RECORD = "record.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """One file of an installation: the hash of what we wrote, and for somebody else's file how it was before.

    `backup` names the copy beside the record; empty where the file is ours or was not there.
    """

    sha256: str
    own: bool
    backup: str = ""
    entries: tuple[Entry, ...] = ()


@dataclass(slots=True)
class Record:
    """The installation of one client in one folder. `folders` are those that it made, outermost first."""

    home: Path
    files: dict[Path, Kept] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)

    def before(self, path: Path) -> bytes | None:
        """How somebody else's file was before us; None where it was not there."""
        kept = self.files[path]
        return (self.home / kept.backup).read_bytes() if kept.backup else None

    def keep_backup(self, path: Path, content: bytes) -> str:
        """Copy a file's content beside the record; the copy's name."""
        name = f"{len(list(self.home.glob('backup-*')))}-{path.name}"
        self.make_home()
        copy = self.home / f"backup-{name}"
        copy.touch(mode=0o600)
        copy.write_bytes(content)
        return copy.name

    def make_home(self) -> None:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)

    def save(self) -> None:
        """Write the record, whole."""
        self.make_home()
        data = {
            "files": {str(path): _kept_as_json(kept) for path, kept in self.files.items()},
            "folders": [str(folder) for folder in self.folders],
        }
        new = self.home / f"{RECORD}.new"
        new.write_text(json.dumps(data, indent=1), encoding="utf-8")
        new.replace(self.home / RECORD)

    def forget(self) -> None:
        """Remove the record with its backups."""
        shutil.rmtree(self.home, ignore_errors=True)
        with contextlib.suppress(OSError):
            self.home.parent.rmdir()


def record_of(client: str, folder: Path) -> Record:
    """The record of a client's installation in a folder; an empty one where nothing was installed.

    Raises CallerError `broken_record`.
    """
    place = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]
    home = default_db().parent / "clients" / f"{client}-{place}"
    record = Record(home)
    try:
        data = json.loads((home / RECORD).read_text(encoding="utf-8"))
        record.files = {Path(path): _kept_from_json(kept) for path, kept in data["files"].items()}
        record.folders = [Path(name) for name in data["folders"]]
    except FileNotFoundError:
        return record
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CallerError("broken_record", f"{home / RECORD} cannot be read: {error}.",
                          "Move it away; then remove the entries by hand, or install again.") from None  # fmt: skip
    return record


def hash_of(content: bytes) -> str:
    """A file's content, told from any other."""
    return hashlib.sha256(content).hexdigest()


def _kept_as_json(kept: Kept) -> dict[str, Any]:
    entries = [entry_as_json(entry) for entry in kept.entries]
    return {"sha256": kept.sha256, "own": kept.own, "backup": kept.backup, "entries": entries}


def _kept_from_json(data: Mapping[str, Any]) -> Kept:
    entries = tuple(entry_from_json(entry) for entry in data["entries"])
    return Kept(str(data["sha256"]), bool(data["own"]), str(data["backup"]), entries)
