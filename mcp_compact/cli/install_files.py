"""From what is wanted to the changes on disk and back: planned whole before the first byte is written."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_compact.cli.install_entries import Entries, JsonEntry, OwnFile, Wanted
from mcp_compact.cli.install_json import value_at
from mcp_compact.cli.install_record import Kept, Record, hash_of
from mcp_compact.errors import CallerError

PLAIN, EXECUTABLE = 0o644, 0o755


@dataclass(frozen=True, slots=True)
class Change:
    """One file as it will be (`after`, None: it goes) and as it is. `entries` name what of it is ours."""

    path: Path
    before: bytes | None
    after: bytes | None
    mode: int = PLAIN
    entries: tuple[str, ...] = ()
    note: str = ""

    @property
    def what(self) -> str:
        """`made`, `changed`, `removed` or `same`."""
        if self.before == self.after:
            return "same"
        if self.before is None:
            return "made"
        return "removed" if self.after is None else "changed"


# ---------------------------------------------------------------- install


def changes_for(wanted: Sequence[Wanted], record: Record) -> list[Change]:
    """What installing changes. Raises CallerError for a file that cannot or must not be changed; writes nothing."""
    changes = [_wanted_file(item, record) if isinstance(item, OwnFile) else _edited(item, record) for item in wanted]
    named = {change.path for change in changes}
    # Files of an earlier version that this one no longer has.
    changes += [
        Change(path, _read(path), None) for path, kept in record.files.items() if kept.own and path not in named
    ]
    return _checked(changes)


def install(changes: Iterable[Change], wanted: Sequence[Wanted], record: Record) -> None:
    """Carry the changes out. The record is written after each, so that a crash leaves nothing unknown."""
    entries = {item.path: item for item in wanted if isinstance(item, Entries)}
    for change in changes:
        if change.after is None:
            change.path.unlink(missing_ok=True)
            record.files.pop(change.path, None)
        elif change.what != "same" or change.path not in record.files:
            _remember(change, entries.get(change.path), record)
            record.folders += _make_folders(change.path.parent)
            record.save()
            _write(change)
        record.save()


def _remember(change: Change, item: Entries | None, record: Record) -> None:
    after = change.after or b""
    if item is None:
        record.files[change.path] = Kept(hash_of(after), own=True)
        return
    known = record.files.get(change.path)
    if known is not None and change.before is not None and hash_of(change.before) == known.sha256:
        backup = known.backup
    else:
        backup = "" if change.before is None else record.keep_backup(change.path, _stripped(change.before, known, item))
    record.files[change.path] = Kept(hash_of(after), own=False, backup=backup, entries=item.entries)


def _wanted_file(item: OwnFile, record: Record) -> Change:
    before = _read(item.path)
    if before is not None and item.path not in record.files and before != item.content:
        raise CallerError("not_ours", f"{item.path} is there already and was not put there by this command.",
                          "Move it away, then try again.")  # fmt: skip
    return Change(item.path, before, item.content, EXECUTABLE if item.executable else PLAIN)


def _edited(item: Entries, record: Record) -> Change:
    path, names = item.path, tuple(entry.name for entry in item.entries)
    before = _read(path)
    kept = record.files.get(path)
    base = before
    if kept is not None and before is not None and hash_of(before) == kept.sha256:
        base = record.before(path)
    with _about(path):
        text = "" if base is None else base.decode("utf-8")
        if kept is not None and base is before:
            text = _without_old(text, kept, item)
        after = item.added(text).encode()
    return Change(path, before, after, entries=names)


def _stripped(content: bytes, kept: Kept | None, item: Entries) -> bytes:
    """Somebody else's file without any entry of ours, old or new: how it was before us, as far as can be told."""
    text = content.decode("utf-8")
    return item.removed(_without_old(text, kept, item) if kept else text).encode()


def _without_old(text: str, kept: Kept, item: Entries) -> str:
    """Without entries that an earlier version made and this one wants otherwise."""
    for entry in kept.entries:
        if entry not in item.entries:
            text = entry.removed(text)
    return text


# ---------------------------------------------------------------- uninstall


def changes_back(record: Record) -> list[Change]:
    """What uninstalling changes: files that are as we left them become what they were before us."""
    return _checked([_back(path, kept, record) for path, kept in record.files.items()])


def uninstall(changes: Iterable[Change], record: Record) -> list[Path]:
    """Carry it out and forget the record. Answers the copies of files that somebody else had changed."""
    copies = []
    for change in changes:
        if change.note and change.before is not None:
            copies.append(_copy_aside(change, record))
        if change.after is None:
            # Of somebody else's file behind a link the file goes, as it was not there before us; the link is theirs.
            (change.path.resolve() if change.entries else change.path).unlink(missing_ok=True)
        elif change.what != "same":
            _write(change)
    for folder in sorted(record.folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()
    record.forget()
    return copies


def _back(path: Path, kept: Kept, record: Record) -> Change:
    now = _read(path)
    names = tuple(entry.name for entry in kept.entries)
    if now is None:
        return Change(path, None, None, entries=names)
    untouched = hash_of(now) == kept.sha256
    if kept.own:
        return Change(path, now, None, note="" if untouched else "it was changed since; a copy is kept")
    if untouched:
        return Change(path, now, record.before(path), entries=names)
    with _about(path):
        after = Entries(path, kept.entries).removed(now.decode("utf-8")).encode()
    gone = not kept.backup and after.decode().strip() in ("", "{}")
    return Change(path, now, None if gone else after, entries=names)


def _copy_aside(change: Change, record: Record) -> Path:
    """A file that was ours but changed by somebody, kept beside the record's folder."""
    folder = record.home.parent / "changed"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=f"{change.path.stem}-", suffix=change.path.suffix)
    with os.fdopen(handle, "wb") as stream:
        stream.write(change.before or b"")
    return Path(name)


# ---------------------------------------------------------------- the disk


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise CallerError("unreadable", f"{path} cannot be read: {error.strerror}.", "Check what it is.") from None


def _checked(changes: list[Change]) -> list[Change]:
    """The changes, if each of them can be written. Raises CallerError `read_only`."""
    for change in changes:
        if change.what != "same":
            _may_change(change.path.resolve())
    return changes


def _may_change(path: Path) -> None:
    folder = next(parent for parent in path.parents if parent.exists())
    # The mode is asked too: a superuser may write everything, but a read-only mark is somebody's wish.
    for place, needed in ((path, stat.S_IWUSR), (folder, stat.S_IWUSR)):
        if place.exists() and not (os.access(place, os.W_OK) and place.stat().st_mode & needed):
            raise CallerError("read_only", f"{place} may not be written to. Nothing was changed.",
                              "Make it writable, or change it by hand.")  # fmt: skip
    if not folder.is_dir():
        raise CallerError("no_folder", f"{folder} is no folder. Nothing was changed.", "Move it away.")


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder; those that were missing, outermost first."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing[::-1]


def _write(change: Change) -> None:
    """Replace a file whole. A link stays a link: what it points to is written. An existing file keeps its mode."""
    path = change.path.resolve()
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() and change.entries else change.mode
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(change.after or b"")
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def _about(path: Path) -> Iterator[None]:
    """Errors about a file's content name the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise CallerError("broken_text", f"{path}: it is no UTF-8 text. Nothing was changed.",
                          "Mend the file, then try again.") from None  # fmt: skip
    except CallerError as error:
        raise CallerError(error.code, f"{path}: {error.message} Nothing was changed.", error.hint) from None


def with_previous(entry: JsonEntry, path: Path, record: Record) -> JsonEntry:
    """The entry with what stands in its place now, or stood there before we first came."""
    for old in record.files[path].entries if path in record.files else ():
        if isinstance(old, JsonEntry) and old.keys == entry.keys:
            return replace(entry, previous=old.previous)
    current = _read(path)
    with _about(path):
        found = value_at(current.decode("utf-8"), entry.keys) if current and current.strip() else None
    return replace(entry, previous=None if found == entry.value else found)
