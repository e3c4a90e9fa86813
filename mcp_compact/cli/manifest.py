"""`mcp-compact manifest CLIENT`: the server's entry for a client, printed or put into the client's own file."""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mcp_compact.cli.install_entries import Entries, JsonEntry, TomlBlock
from mcp_compact.cli.install_files import changes_for, install, with_previous
from mcp_compact.cli.install_json import value_at
from mcp_compact.cli.install_program import this_program
from mcp_compact.cli.install_record import Record, record_of
from mcp_compact.cli.manifest_clients import JSON, TOML, YAML, Client, Entry, client_named
from mcp_compact.cli.manifest_server import server
from mcp_compact.cli.manifest_text import as_json, as_toml, as_yaml, toml_block, yaml_block
from mcp_compact.cli.output import print_json
from mcp_compact.cli.text import shown
from mcp_compact.errors import CallerError

LOCAL_KEYS = ("command", "args", "env", "environment", "cmd", "envs", "source")
REMOTE_KEYS = ("url", "httpUrl", "serverUrl", "uri", "headers")
"""Of an entry that is there already, the one or the other goes when the server is reached in the other way."""
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
"""Capitals only, so that a token itself is never taken for one."""
WRITERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {JSON: as_json, TOML: as_toml, YAML: as_yaml}
PASTE = "Put in by hand what is printed above; or mend the file and try again."


@dataclass(frozen=True, slots=True)
class Written:
    """What was done to a client's file."""

    path: Path
    changed: bool
    backup: Path | None = None


def run(arguments: argparse.Namespace) -> int:
    """Print a client's entry, or merge it into its file."""
    client = client_named(arguments.client)
    program = None if arguments.http else this_program()
    url, token = _address(arguments.http, arguments.token_env)
    entry = client.entry(server(arguments.profile or client.profile, program, url=url, token=token))
    place = client.place(project=arguments.project)
    text = as_text(client.kind, client.document(entry))
    if not arguments.write:
        _say(arguments, client, entry, Written(place, changed=False), text)
        return 0
    try:
        written = merge(client, entry, place)
    except CallerError as error:
        if not arguments.json:
            sys.stdout.write(text)
        raise CallerError(error.code, error.message, error.hint if arguments.json else PASTE) from error
    _say(arguments, client, entry, written, text)
    return 0


def as_text(kind: str, document: Mapping[str, Any]) -> str:
    """A document in the client's kind of file."""
    return WRITERS[kind](document)


def merge(client: Client, entry: Entry, place: Path) -> Written:
    """Put the entry into the client's file, with a backup of it. Raises CallerError where that is not safe.

    What else the file holds stays byte for byte; of an entry of ours in it, what we do not set stays.
    """
    record = record_of(f"manifest-{client.key}", place.parent)
    text = _text(place)
    try:
        wanted = _wanted(client, entry, place, text, record)
    except CallerError as error:
        raise CallerError(error.code, f"{place}: {error.message} Nothing was changed.", error.hint) from None
    if wanted is None:
        return Written(place, changed=False)
    entries = tuple(with_previous(own, place, record) if isinstance(own, JsonEntry) else own for own in wanted.entries)
    wanted = Entries(place, entries)
    changes = changes_for([wanted], record)
    install(changes, [wanted], record)
    kept = record.files.get(place)
    backup = record.home / kept.backup if kept and kept.backup else None
    return Written(place, changed=any(change.what != "same" for change in changes), backup=backup)


def _wanted(client: Client, entry: Entry, place: Path, text: str, record: Record) -> Entries | None:
    """What belongs into the file; None where somebody put just that there already."""
    ours = place in record.files
    match client.kind:
        case "toml":
            if not ours and _toml_value(text, client.keys) == entry:
                return None
            return Entries(place, (toml_block(client.keys[-1], client.document(entry)),))
        case "yaml":
            for old in record.files[place].entries if ours else ():
                text = old.removed(text) if isinstance(old, TomlBlock) else text
            return Entries(place, (yaml_block((client.keys[0], client.keys[1]), entry, text),))
        case _:
            with_old = _merged(value_at(text, client.keys), entry)
            if not ours and value_at(text, client.keys) == with_old:
                return None
            return Entries(place, (JsonEntry(client.keys, with_old),))


def _merged(old: object, entry: Entry) -> Entry:
    """An entry with what a person added to the old one: other keys, and variables of its environment."""
    if not isinstance(old, dict):
        return entry
    other = REMOTE_KEYS if any(key in entry for key in LOCAL_KEYS) else LOCAL_KEYS
    # Ours come first, in their order: written again, the same entry is the same text.
    made = _with_others(entry, {key: value for key, value in old.items() if key not in (*other, "type")})
    for key in ("env", "environment"):
        if isinstance(old.get(key), dict) and key not in other:
            made[key] = _with_others(entry.get(key, {}), old[key])
    return made


def _with_others(ours: Entry, theirs: Entry) -> Entry:
    return ours | {key: value for key, value in theirs.items() if key not in ours}


def _toml_value(text: str, keys: tuple[str, ...]) -> object:
    """What stands there in a TOML file; None where nothing does, or where it is none (told when it is written)."""
    try:
        value: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _text(place: Path) -> str:
    """The file as it is, empty where it is missing. Raises CallerError where it cannot be read."""
    try:
        return place.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        raise CallerError("broken_text", f"{place} is no UTF-8 text. Nothing was changed.", "Mend the file.") from None
    except OSError as error:
        raise CallerError("unreadable", f"{place} cannot be read: {error.strerror}.", "Check what it is.") from None


def _address(url: str, token: str) -> tuple[str, str]:
    """Where the server is reached, and the variable that holds the token. Raises CallerError."""
    if token and not url:
        raise CallerError("no_address", "--token-env belongs to --http.", "Give the server's address too.")
    if token and not VARIABLE.fullmatch(token):
        raise CallerError(
            "bad_variable",
            "--token-env takes the name of an environment variable in capitals, never the token itself.",
            "For example --token-env MCP_COMPACT_TOKEN.",
        )
    if not url:
        return "", ""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise CallerError(
            "bad_address",
            "What --http gives is no address of a server, or holds a password.",
            "Write it whole, e.g. http://127.0.0.1:8765/mcp; for a token there is --token-env.",
        )
    return url, token


def _say(arguments: argparse.Namespace, client: Client, entry: Entry, written: Written, text: str) -> None:
    if arguments.json:
        print_json(
            {
                "client": client.key,
                "file": written.path,
                "keys": client.keys,
                "entry": entry,
                "text": text,
                "changed": written.changed,
                "backup": written.backup,
            }
        )
        return
    path = shown(str(written.path))
    if not arguments.write:
        sys.stdout.write(text)
        sys.stdout.flush()
        sys.stderr.write(f"That belongs into {path}; --write puts it there.\n")
        return
    if not written.changed:
        print(f"{path}: it is there already; nothing was changed.")
        return
    print(f"{path}: {'.'.join(client.keys)} is written. Start {client.title} anew.")
    if written.backup:
        print(f"The file as it was: {shown(str(written.backup))}")
