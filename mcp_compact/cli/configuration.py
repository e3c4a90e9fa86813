"""`mcp-compact config`: every setting, what is in force and why."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from mcp_compact.cli.environment import value_of
from mcp_compact.cli.output import print_json
from mcp_compact.cli.terminal import terminal
from mcp_compact.cli.text import shown, wrapped
from mcp_compact.config import SETTINGS, Settings, effective, load_settings


def run(arguments: argparse.Namespace) -> int:
    """Show every setting."""
    settings = load_settings()
    if arguments.json:
        print_json({"settings": rows(settings), "warnings": settings.warnings, "historic": settings.historic})
        return 0
    screen = terminal()
    for row in rows(settings):
        value = shown(row["shown"])
        default = "default" if row["is_default"] else f"default: {row['default'] or 'not set'}"
        print(f"{screen.bold(row['name'])} = {value}  {screen.faint(f'({default})')}")
        names = f" Also: {', '.join(row['historic'])}." if row["historic"] else ""
        print("\n".join(wrapped(f"{row['text']} Takes: {row['kind']}.{names}", screen.columns, "    ")))
    for warning in settings.warnings:
        print(f"\nwarning: {shown(warning)}")
    print("\nSettings are environment variables; `mcp-compact doctor` checks them.")
    return 0


def rows(settings: Settings) -> list[dict[str, Any]]:
    """Each setting: name, kind, default, the value in force (None: it decides others, or nothing is set), meaning."""
    values, defaults = effective(settings), effective(load_settings({}))
    return [
        {
            "name": item.name,
            "kind": item.kind,
            "default": item.default,
            "value": values.get(item.name),
            "is_default": _is_default(item.name, values, defaults),
            "shown": _shown(values.get(item.name), "" if item.name in values else value_of(item.name), item.default),
            "text": item.text,
            "historic": list(item.historic),
        }
        for item in SETTINGS
    ]


def _is_default(name: str, values: Mapping[str, object], defaults: Mapping[str, object]) -> bool:
    return values[name] == defaults[name] if name in values else not value_of(name)


def _shown(value: object, given: str, default: str) -> str:
    match value:
        case None:
            return given or default or "not set"
        case bool():
            return "on" if value else "off"
        case list():
            return ", ".join(map(str, value)) or "none"
        case _:
            return str(value)
