"""Settings: the only reader of the environment. Plain dataclasses, since a client's hook cannot pay for more."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_compact.compaction.policy import (
    MemoryPolicy,
    MicroPolicy,
    Policy,
    RestorePolicy,
    SessionMemoryCompactConfig,
)
from mcp_compact.places import default_database
from mcp_compact.presets import NO_PRESET, PRESETS, Preset, contradictions, preset_named
from mcp_compact.settings_reader import FALSY, SHOWN, TRUTHY, SettingsReader, is_truthy, setting_of
from mcp_compact.settings_table import (
    MEMORY_FIGURES,
    MICRO_FIGURES,
    MICRO_FLAGS,
    PROVIDERS_KEYS,
    RESTORE_FIGURES,
    SETTINGS,
    SUMMARIZERS,
    HttpSettings,
    LlmSettings,
    Settings,
)

__all__ = [
    "FALSY",
    "SETTINGS",
    "TRUTHY",
    "HttpSettings",
    "LlmSettings",
    "Settings",
    "default_db",
    "effective",
    "is_truthy",
    "load_settings",
]


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Read every setting once. Bad values are ignored and warned of."""
    reader = SettingsReader(os.environ if environ is None else environ)
    preset = _preset(reader)
    policy = Policy(
        session_memory=reader.flag("MCP_COMPACT_FLAG_SESSION_MEMORY", default=True),
        sm_compact=_sm_compact(reader),
        tail=_tail(reader),
        micro=_micro(reader, preset),
        memory=_memory(reader),
        restore=_restore(reader),
        min_gain_percent=reader.number("MCP_COMPACT_MIN_GAIN_PERCENT", preset.min_gain_percent or 5),
        require_instructions=reader.flag("MCP_COMPACT_REQUIRE_INSTRUCTIONS", default=True),
        compact_at=_compact_at(reader, preset),
    )
    window = reader.number("MCP_COMPACT_CONTEXT_WINDOW", 0)
    settings = Settings(
        policy=policy,
        preset=preset.name,
        db=_file(reader) or default_db(reader.environ),
        roots=_folders(reader),
        scope=reader.choice("MCP_COMPACT_SCOPE", ("project", "all")),
        context_window=window or None,
        synchronous=reader.choice("MCP_COMPACT_SYNCHRONOUS", ("normal", "full")),
        page_tokens=reader.number("MCP_COMPACT_PAGE_TOKENS", 18_000),
        request_bytes=reader.number("MCP_COMPACT_REQUEST_MB", 32) * 1_000_000,
        request_media=reader.number("MCP_COMPACT_REQUEST_MEDIA", 100),
        max_file_bytes=reader.number("MCP_COMPACT_MAX_FILE_MB", 1024) * 1024 * 1024,
        hooks=_hooks(reader),
        hook_timeout_s=reader.number("MCP_COMPACT_HOOK_TIMEOUT_S", 10),
        hook_entry_points=reader.flag("MCP_COMPACT_HOOK_ENTRY_POINTS", default=True),
        hold_manual=reader.flag("MCP_COMPACT_HOLD_MANUAL", default=False),
        injection_chars=reader.number("MCP_COMPACT_INJECTION_CHARS", 9_500),
        follow=reader.flag("MCP_COMPACT_FOLLOW", default=True),
        follow_seconds=reader.number("MCP_COMPACT_FOLLOW_SECONDS", 2),
        retention_days=reader.number("MCP_COMPACT_RETENTION_DAYS", 0),
        summarizers=_summarizers(reader),
        llm=_llm(reader),
        http=_http(reader),
        extract=reader.flag("MCP_COMPACT_EXTRACT", default=True),
        auto=reader.flag("MCP_COMPACT_AUTO", default=False),
        log_level=reader.choice("MCP_COMPACT_LOG_LEVEL", ("WARNING", "DEBUG", "INFO", "ERROR", "CRITICAL")),
        log_format=reader.choice("MCP_COMPACT_LOG_FORMAT", ("text", "json")),
    )
    for text in contradictions(policy, settings.context_window):
        reader.warn(text)
    reader.unknown_names()
    return replace(settings, warnings=tuple(reader.warnings), historic=reader.historic())


def default_db(environ: Mapping[str, str] | None = None) -> Path:
    """The archive's file in the user's data directory, as each system has it.

    Raises CallerError where the user has no home and the environment names no data directory.
    """
    return Path(default_database(environ))


def _sm_compact(reader: SettingsReader) -> bool:
    """Forced on, forced off, else both feature flags."""
    if is_truthy(reader.text("ENABLE_CLAUDE_CODE_SM_COMPACT")):
        return True
    if is_truthy(reader.text("DISABLE_CLAUDE_CODE_SM_COMPACT")):
        return False
    both = [
        reader.flag(name, default=True) for name in ("MCP_COMPACT_FLAG_SESSION_MEMORY", "MCP_COMPACT_FLAG_SM_COMPACT")
    ]
    return all(both)


def _tail(reader: SettingsReader) -> SessionMemoryCompactConfig:
    default = SessionMemoryCompactConfig()
    given = _json_object(reader)

    def value(name: str, camel: str, fallback: int) -> int:
        own_name = "MCP_COMPACT_SM_" + name.upper()
        most = setting_of(own_name).most
        in_json = (reader.positive(f"{_CONFIG} {key}", given[key], most) for key in (name, camel) if key in given)
        own = reader.number(own_name, 0)
        return own or next((number for number in in_json if number is not None), fallback)

    return SessionMemoryCompactConfig(
        value("min_tokens", "minTokens", default.min_tokens),
        value("min_text_block_messages", "minTextBlockMessages", default.min_text_block_messages),
        value("max_tokens", "maxTokens", default.max_tokens),
    )


_CONFIG = "MCP_COMPACT_SM_COMPACT_CONFIG"


def _json_object(reader: SettingsReader) -> dict[str, Any]:
    def read(name: str, text: str) -> dict[str, Any] | None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict):
            return value
        reader.warn(f"{name} is no JSON object and is ignored")
        return None

    return reader.first(_CONFIG, read, {})


def _preset(reader: SettingsReader) -> Preset:
    def read(name: str, value: str) -> Preset | None:
        if (found := preset_named(value)) is None:
            reader.warn(f"{name}: {value[:SHOWN]!r} is none of {', '.join(preset.name for preset in PRESETS)}")
        return found

    return reader.first("MCP_COMPACT_PRESET", read, NO_PRESET)


def _compact_at(reader: SettingsReader, preset: Preset) -> str:
    """As asked for, else as the preset has it."""
    asked = reader.compact_at()
    if asked and preset.compact_at not in ("", asked):
        reader.warn(f"MCP_COMPACT_AT ({asked}) wins over the preset {preset.name} ({preset.compact_at})")
    return asked or preset.compact_at


def _micro(reader: SettingsReader, preset: Preset) -> MicroPolicy:
    default = preset.micro(MicroPolicy())
    given: dict[str, Any] = {
        "tools": (*default.tools, *_names(reader.text("MCP_COMPACT_MICRO_TOOLS"))),
        "exclude_tools": _names(reader.text("MCP_COMPACT_MICRO_EXCLUDE")),
    }
    given |= {field: reader.number(name, getattr(default, field)) for name, field in MICRO_FIGURES.items()}
    given |= {field: reader.flag(name, default=getattr(default, field)) for name, field in MICRO_FLAGS.items()}
    return replace(default, **given)


def _memory(reader: SettingsReader) -> MemoryPolicy:
    default = MemoryPolicy()
    return MemoryPolicy(**{f: reader.number(name, getattr(default, f)) for name, f in MEMORY_FIGURES.items()})


def _restore(reader: SettingsReader) -> RestorePolicy:
    default = RestorePolicy()
    return RestorePolicy(**{f: reader.number(name, getattr(default, f)) for name, f in RESTORE_FIGURES.items()})


def _summarizers(reader: SettingsReader) -> tuple[str, ...]:
    name = "MCP_COMPACT_SUMMARIZERS"
    given = [part.lower() for part in _names(reader.text(name))]
    for part in given:
        if part not in SUMMARIZERS:
            reader.warn(f"{name}: {part[:SHOWN]!r} is none of {', '.join(SUMMARIZERS)}")
    known = [part for part in given if part in SUMMARIZERS]
    return tuple(dict.fromkeys(known)) or ("agent",)


def _llm(reader: SettingsReader) -> LlmSettings:
    default = LlmSettings()
    model, base_url = reader.text("MCP_COMPACT_LLM_MODEL"), reader.text("MCP_COMPACT_LLM_BASE_URL")
    # A provider's own key goes to that provider's own address only.
    usual = () if base_url else PROVIDERS_KEYS.get(model.partition(":")[0], ())
    keys = (reader.environ.get(name, "").strip() for name in usual)
    return LlmSettings(
        model,
        base_url,
        reader.text("MCP_COMPACT_LLM_API_KEY") or next((key for key in keys if key), ""),
        reader.number("MCP_COMPACT_LLM_TIMEOUT_S", default.timeout_s),
        reader.number("MCP_COMPACT_LLM_MAX_TOKENS", default.max_tokens),
    )


def _http(reader: SettingsReader) -> HttpSettings:
    default, megabyte = HttpSettings(), 1024 * 1024
    return HttpSettings(
        host=reader.text("MCP_COMPACT_HTTP_HOST") or default.host,
        port=reader.number("MCP_COMPACT_HTTP_PORT", default.port),
        public_url=reader.text("MCP_COMPACT_HTTP_PUBLIC_URL").rstrip("/"),
        allowed_hosts=_names(reader.text("MCP_COMPACT_HTTP_ALLOWED_HOSTS")),
        allowed_origins=_names(reader.text("MCP_COMPACT_HTTP_ALLOWED_ORIGINS")),
        max_body_bytes=reader.number("MCP_COMPACT_HTTP_MAX_BODY_MB", default.max_body_bytes // megabyte) * megabyte,
        max_connections=reader.number("MCP_COMPACT_HTTP_MAX_CONNECTIONS", default.max_connections),
        idle_s=reader.number("MCP_COMPACT_HTTP_IDLE_S", default.idle_s),
        receive_timeout_s=reader.number("MCP_COMPACT_HTTP_RECEIVE_TIMEOUT_S", default.receive_timeout_s),
        calls_per_minute=reader.number("MCP_COMPACT_HTTP_CALLS_PER_MINUTE", default.calls_per_minute),
        max_sessions=reader.number("MCP_COMPACT_HTTP_MAX_SESSIONS", default.max_sessions),
        max_storage_bytes=reader.number("MCP_COMPACT_HTTP_MAX_STORAGE_MB", default.max_storage_bytes // megabyte)
        * megabyte,
        max_message_bytes=reader.number("MCP_COMPACT_HTTP_MAX_MESSAGE_MB", default.max_message_bytes // megabyte)
        * megabyte,
        jwt_issuer=reader.text("MCP_COMPACT_JWT_ISSUER"),
        jwt_audience=reader.text("MCP_COMPACT_JWT_AUDIENCE"),
        jwt_keys_url=reader.text("MCP_COMPACT_JWT_KEYS_URL"),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _file(reader: SettingsReader) -> Path | None:
    text = reader.text("MCP_COMPACT_DB")
    return reader.path("MCP_COMPACT_DB", text) if text else None


def _hooks(reader: SettingsReader) -> Path | None:
    text = reader.text("MCP_COMPACT_HOOKS")
    # A path that cannot be resolved is left to those who load the file: to ignore it would drop a hook that forbids.
    return Path(text) if text else None


def _folders(reader: SettingsReader) -> tuple[Path, ...] | None:
    parts = [part.strip() for part in reader.text("MCP_COMPACT_ROOTS").split(os.pathsep) if part.strip()]
    found = [reader.path("MCP_COMPACT_ROOTS", part) for part in parts]
    return tuple(path.resolve() for path in found if path is not None) if parts else None


def effective(settings: Settings) -> dict[str, object]:
    """The value in force of each setting, by its name."""
    p = settings.policy
    return {
        "MCP_COMPACT_DB": str(settings.db),
        "MCP_COMPACT_ROOTS": None if settings.roots is None else [str(root) for root in settings.roots],
        "MCP_COMPACT_SCOPE": settings.scope,
        "MCP_COMPACT_AT": p.compact_at or None,
        "MCP_COMPACT_PRESET": settings.preset or None,
        "MCP_COMPACT_AUTO": settings.auto,
        "MCP_COMPACT_CONTEXT_WINDOW": settings.context_window,
        "MCP_COMPACT_FLAG_SESSION_MEMORY": p.session_memory,
        "MCP_COMPACT_FLAG_SM_COMPACT": p.sm_compact,
        "MCP_COMPACT_SM_MIN_TOKENS": p.tail.min_tokens,
        "MCP_COMPACT_SM_MIN_TEXT_BLOCK_MESSAGES": p.tail.min_text_block_messages,
        "MCP_COMPACT_SM_MAX_TOKENS": p.tail.max_tokens,
        **{name: getattr(p.memory, field) for name, field in MEMORY_FIGURES.items()},
        "MCP_COMPACT_EXTRACT": settings.extract,
        "MCP_COMPACT_MICRO_TOOLS": list(p.micro.tools),
        "MCP_COMPACT_MICRO_EXCLUDE": list(p.micro.exclude_tools),
        **{name: getattr(p.micro, field) or None for name, field in MICRO_FIGURES.items()},
        **{name: getattr(p.micro, field) for name, field in MICRO_FLAGS.items()},
        **{name: getattr(p.restore, field) for name, field in RESTORE_FIGURES.items()},
        "MCP_COMPACT_MIN_GAIN_PERCENT": p.min_gain_percent,
        "MCP_COMPACT_REQUIRE_INSTRUCTIONS": p.require_instructions,
        "MCP_COMPACT_SYNCHRONOUS": settings.synchronous,
        "MCP_COMPACT_PAGE_TOKENS": settings.page_tokens,
        "MCP_COMPACT_REQUEST_MB": settings.request_bytes // 1_000_000,
        "MCP_COMPACT_REQUEST_MEDIA": settings.request_media,
        "MCP_COMPACT_MAX_FILE_MB": settings.max_file_bytes // (1024 * 1024),
        "MCP_COMPACT_HOOKS": None if settings.hooks is None else str(settings.hooks),
        "MCP_COMPACT_HOOK_TIMEOUT_S": settings.hook_timeout_s,
        "MCP_COMPACT_HOOK_ENTRY_POINTS": settings.hook_entry_points,
        "MCP_COMPACT_HOLD_MANUAL": settings.hold_manual,
        "MCP_COMPACT_INJECTION_CHARS": settings.injection_chars,
        "MCP_COMPACT_FOLLOW": settings.follow,
        "MCP_COMPACT_FOLLOW_SECONDS": settings.follow_seconds,
        "MCP_COMPACT_RETENTION_DAYS": settings.retention_days or None,
        "MCP_COMPACT_SUMMARIZERS": list(settings.summarizers),
        "MCP_COMPACT_LLM_MODEL": settings.llm.model or None,
        "MCP_COMPACT_LLM_BASE_URL": re.sub(r"//[^/@]*@", "//***@", settings.llm.base_url) or None,
        "MCP_COMPACT_LLM_API_KEY": "set" if settings.llm.api_key else "not set",
        "MCP_COMPACT_LLM_TIMEOUT_S": settings.llm.timeout_s,
        "MCP_COMPACT_LLM_MAX_TOKENS": settings.llm.max_tokens,
        **_effective_http(settings.http),
        "MCP_COMPACT_LOG_LEVEL": settings.log_level,
        "MCP_COMPACT_LOG_FORMAT": settings.log_format,
    }


def _effective_http(http: HttpSettings) -> dict[str, object]:
    megabyte = 1024 * 1024
    return {
        "MCP_COMPACT_HTTP_HOST": http.host,
        "MCP_COMPACT_HTTP_PORT": http.port,
        "MCP_COMPACT_HTTP_PUBLIC_URL": http.public_url or None,
        "MCP_COMPACT_HTTP_ALLOWED_HOSTS": list(http.allowed_hosts),
        "MCP_COMPACT_HTTP_ALLOWED_ORIGINS": list(http.allowed_origins),
        "MCP_COMPACT_HTTP_MAX_BODY_MB": http.max_body_bytes // megabyte,
        "MCP_COMPACT_HTTP_MAX_CONNECTIONS": http.max_connections,
        "MCP_COMPACT_HTTP_IDLE_S": http.idle_s,
        "MCP_COMPACT_HTTP_RECEIVE_TIMEOUT_S": http.receive_timeout_s,
        "MCP_COMPACT_HTTP_CALLS_PER_MINUTE": http.calls_per_minute,
        "MCP_COMPACT_HTTP_MAX_SESSIONS": http.max_sessions,
        "MCP_COMPACT_HTTP_MAX_STORAGE_MB": http.max_storage_bytes // megabyte,
        "MCP_COMPACT_HTTP_MAX_MESSAGE_MB": http.max_message_bytes // megabyte,
        "MCP_COMPACT_JWT_ISSUER": http.jwt_issuer or None,
        "MCP_COMPACT_JWT_AUDIENCE": http.jwt_audience or None,
        "MCP_COMPACT_JWT_KEYS_URL": http.jwt_keys_url or None,
    }
