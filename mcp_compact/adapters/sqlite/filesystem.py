"""Where the archive lies: its file and folder, and whether the folder is shared over a network."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "vboxsf", "drvfs", "virtiofs")
WAL_FLAG_AT = 18
"""Two bytes of a database's header: how it is written and read."""
_MOUNTS = Path("/proc/self/mountinfo")
_making = threading.Lock()


def prepare(path: Path) -> None:
    """Make file and folder readable for their owner alone.

    An existing file is never opened here: closing it would drop the locks that SQLite holds on it
    for this process.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _making:
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            return
        if mode & 0o077 and os.access(path, os.W_OK):
            path.chmod(mode & 0o700)


def is_read_only(path: Path) -> bool:
    """May nothing be made in the folder: a read-only file system, or no permission?"""
    folder = path.parent
    if not os.access(folder, os.W_OK | os.X_OK):
        return True
    return hasattr(os, "statvfs") and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def wal_bytes(path: Path) -> int:
    """What waits in the archive's WAL; 0 for none."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size
    except OSError:
        return 0


def is_wal(path: Path) -> bool:
    """Does the header say that the file is written through a WAL? Only for a file that no connection here has open."""
    with path.open("rb") as stream:
        return stream.read(WAL_FLAG_AT + 2)[WAL_FLAG_AT:] == b"\x02\x02"


def holders(path: Path) -> list[str]:
    """Processes that have the file open, as `name number`; empty where the system does not tell."""
    real, found = os.path.realpath(path), []
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda item: int(item.name)):
        try:
            files = [str(link.readlink()) for link in (entry / "fd").iterdir()]
            if real in files and int(entry.name) != os.getpid():
                found.append(f"{(entry / 'comm').read_text().strip()} {entry.name}")
        except OSError:
            # It ended meanwhile, or belongs to somebody else.
            continue
    return found


def shared_kind(path: Path, mounts: str | None = None) -> str:
    """The kind of network or shared file system that the path lies on; empty for a local one.

    `mounts` is the text of /proc/self/mountinfo; where there is none, everything counts as local.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
    place, kind = "", ""
    target = os.path.realpath(path)
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(), after.split()
        if len(fields) > 4 and rest and _holds(_plain(fields[4]), target) and len(_plain(fields[4])) >= len(place):  # noqa: PLR2004 - the fifth field is the mount point
            place, kind = _plain(fields[4]), rest[0]
    return kind if kind in _SHARED or kind.startswith("fuse.") else ""


def _holds(place: str, target: str) -> bool:
    return target == place or target.startswith(place.rstrip("/") + "/")


def _plain(field: str) -> str:
    return field.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
