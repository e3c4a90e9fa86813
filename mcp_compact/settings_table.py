"""Every setting in one table: what the environment may hold, for the reader of it and for the documentation.

And the settings as they were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcp_compact.compaction.policy import MOST_TOKENS, Policy

SUMMARIZERS = ("agent", "provider", "sampling")
PROVIDERS_KEYS: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openai": ("OPENAI_API_KEY",),
}
"""Where a provider's users usually keep its key."""


MICRO_FIGURES: Mapping[str, str] = {
    "MCP_COMPACT_MICRO_OLDER_THAN_MINUTES": "older_than_minutes",
    "MCP_COMPACT_MICRO_KEEP": "keep_recent",
    "MCP_COMPACT_MICRO_MEDIA_TOKENS": "media_tokens",
    "MCP_COMPACT_MICRO_TRIGGER_TOKENS": "trigger_tokens",
    "MCP_COMPACT_MICRO_PROTECT_TOKENS": "protect_tokens",
    "MCP_COMPACT_MICRO_CLEAR_AT_LEAST": "clear_at_least",
    "MCP_COMPACT_MICRO_MAX_RESULT_TOKENS": "max_result_tokens",
}
"""Numbers of the micro-compaction policy, by their fields."""
MICRO_FLAGS: Mapping[str, str] = {
    "MCP_COMPACT_MICRO_CLEAR_INPUTS": "clear_tool_inputs",
    "MCP_COMPACT_MICRO_CLEAR_OUTDATED_READS": "clear_outdated_reads",
    "MCP_COMPACT_MICRO_CLEAR_REPEATED_CALLS": "clear_repeated_calls",
    "MCP_COMPACT_MICRO_CLEAR_FAILED_INPUTS": "clear_failed_inputs",
}
"""Its switches."""
MEMORY_FIGURES: Mapping[str, str] = {
    "MCP_COMPACT_MEMORY_TOKENS": "total_tokens",
    "MCP_COMPACT_MEMORY_SECTION_TOKENS": "section_tokens",
    "MCP_COMPACT_MEMORY_FIRST_TOKENS": "first_at_tokens",
    "MCP_COMPACT_MEMORY_STEP_TOKENS": "then_each_tokens",
    "MCP_COMPACT_MEMORY_STEP_CALLS": "then_each_calls",
}
"""Numbers of the memory policy, by their fields."""
RESTORE_FIGURES: Mapping[str, str] = {
    "MCP_COMPACT_RESTORE_TOKENS": "total_tokens",
    "MCP_COMPACT_RESTORE_SKILL_TOKENS": "skill_tokens",
    "MCP_COMPACT_RESTORE_SKILLS_TOKENS": "skills_tokens",
    "MCP_COMPACT_RESTORE_FILE_TOKENS": "file_tokens",
    "MCP_COMPACT_RESTORE_FILES": "files",
}
"""Numbers of what is put back after a compaction, by their fields."""


MOST: Mapping[str, int] = {
    "calls": 10**9,
    "characters": 10**9,
    "days": 36_500,
    "files": 10**9,
    "images": 10**9,
    "megabytes": 10**9,
    "messages": 10**9,
    "minutes": 52_560_000,
    "percent": 99,
    "port": 65_535,
    "requests": 10**9,
    "results": 10**9,
    "seconds": 31_536_000,
    "sessions": 10**9,
    "tokens": MOST_TOKENS,
}
"""The kinds of settings that are whole numbers from 1 on, and how large such a number can be."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable: its name, what kind of value it takes, its default and what it does."""

    name: str
    kind: str
    default: str
    text: str
    historic: tuple[str, ...] = ()
    limit: int | None = None
    """Where it is lower than that of other numbers of its kind."""

    @property
    def most(self) -> int:
        """The largest number that it takes."""
        return MOST[self.kind] if self.limit is None else self.limit


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """How the model that writes summaries is reached. Whether it is asked, `Settings.summarizers` says."""

    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_s: int = 120
    max_tokens: int = 12_000


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How the server stands on a network, and what each tenant may use there."""

    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str = ""
    """What clients call it, where a proxy stands before it."""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body_bytes: int = 16 * 1024 * 1024
    max_connections: int = 1_000
    idle_s: int = 1_800
    receive_timeout_s: int = 30
    """For a request's headers, and again for its body."""
    calls_per_minute: int = 6_000
    max_sessions: int = 10_000
    max_storage_bytes: int = 10 * 1024 * 1024 * 1024
    max_message_bytes: int = 32 * 1024 * 1024
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_keys_url: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says, checked. `warnings` tells what was ignored and why."""

    policy: Policy = field(default_factory=Policy)
    preset: str = ""
    """The harness whose thresholds were taken."""
    db: Path = Path("mcp-compact.db")
    roots: tuple[Path, ...] | None = None
    """None: the defaults of the transport."""
    scope: str = "project"
    context_window: int | None = None
    synchronous: str = "normal"
    page_tokens: int = 18_000
    max_file_bytes: int = 1024 * 1024 * 1024
    hooks: Path | None = None
    hook_timeout_s: int = 10
    hook_entry_points: bool = True
    hold_manual: bool = False
    """Is the first compaction that a person asks their client for held back?"""
    injection_chars: int = 9_500
    """What a client is given back after its own compaction."""
    follow: bool = True
    """Does a server follow the transcript of its client's session?"""
    follow_seconds: int = 2
    retention_days: int = 0
    """Sessions that nobody worked on for so long may be removed; 0: none."""
    summarizers: tuple[str, ...] = ("agent",)
    """Who is asked for a summary, in this order."""
    llm: LlmSettings = field(default_factory=LlmSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    extract: bool = True
    """Does the server bring session memory up to date in the background?"""
    auto: bool = False
    """Does the server compact a loop's session by itself when it is due?"""
    request_bytes: int = 32_000_000
    """The largest request that the provider takes."""
    request_media: int = 100
    """The most images and documents that it takes in one request."""
    log_level: str = "WARNING"
    log_format: str = "text"
    warnings: tuple[str, ...] = ()
    historic: tuple[str, ...] = ()
    """Historic names that are set; a client may read some of them itself."""


SETTINGS: tuple[Setting, ...] = (
    Setting("MCP_COMPACT_DB", "path", "in the user's data directory", "The archive's file."),
    Setting(
        "MCP_COMPACT_ROOTS",
        "folders",
        "working directory, its transcript folders",
        "Folders whose files may be read by path over stdio, separated as in PATH.",
    ),
    Setting("MCP_COMPACT_SCOPE", "project, all", "project", "Whether lookups stay in the current project."),
    Setting(
        "MCP_COMPACT_AT",
        "60%, tokens, window-20000",
        "by the preset, else window - 33000",
        "Where compaction is due.",
    ),
    Setting(
        "MCP_COMPACT_PRESET",
        "a harness",
        "",
        "Compact where this harness does: claude-code, codex, gemini-cli, opencode, pi, openhands, deepagents or "
        "agent-framework.",
    ),
    Setting(
        "MCP_COMPACT_AUTO",
        "flag",
        "off",
        "The server compacts a loop's session by itself after an append that makes it due.",
    ),
    Setting("MCP_COMPACT_CONTEXT_WINDOW", "tokens", "by session, else 200000", "Window of sessions that state none."),
    Setting(
        "MCP_COMPACT_FLAG_SESSION_MEMORY", "flag", "on", "Extraction of session memory.", ("TENGU_SESSION_MEMORY",)
    ),
    Setting("MCP_COMPACT_FLAG_SM_COMPACT", "flag", "on", "Session-memory compaction.", ("TENGU_SM_COMPACT",)),
    Setting("ENABLE_CLAUDE_CODE_SM_COMPACT", "flag", "", "Truthy: session-memory compaction is on, whatever else."),
    Setting("DISABLE_CLAUDE_CODE_SM_COMPACT", "flag", "", "Truthy: it is off, unless enabled by the former."),
    Setting(
        "MCP_COMPACT_SM_COMPACT_CONFIG",
        "JSON object",
        "{}",
        "min_tokens, min_text_block_messages and max_tokens of the kept tail (snake or camel case).",
        ("TENGU_SM_COMPACT_CONFIG",),
    ),
    Setting("MCP_COMPACT_SM_MIN_TOKENS", "tokens", "10000", "The kept tail reaches back at least so far."),
    Setting("MCP_COMPACT_SM_MIN_TEXT_BLOCK_MESSAGES", "messages", "5", "And over so many messages with text."),
    Setting("MCP_COMPACT_SM_MAX_TOKENS", "tokens", "40000", "But no further once it holds so much."),
    Setting("MCP_COMPACT_MEMORY_TOKENS", "tokens", "12000", "Size of the session memory."),
    Setting("MCP_COMPACT_MEMORY_SECTION_TOKENS", "tokens", "2000", "Size of one section of it."),
    Setting("MCP_COMPACT_MEMORY_FIRST_TOKENS", "tokens", "10000", "Session memory is first due at so many tokens."),
    Setting("MCP_COMPACT_MEMORY_STEP_TOKENS", "tokens", "5000", "And again after so many more."),
    Setting("MCP_COMPACT_MEMORY_STEP_CALLS", "calls", "3", "If so many tools were called meanwhile."),
    Setting("MCP_COMPACT_EXTRACT", "flag", "on", "The server does so in the background, after appends and imports."),
    Setting("MCP_COMPACT_MICRO_TOOLS", "names, globs", "", "More tools whose old results may be cleared."),
    Setting("MCP_COMPACT_MICRO_EXCLUDE", "names, globs", "", "Tools whose results are never cleared."),
    Setting("MCP_COMPACT_MICRO_OLDER_THAN_MINUTES", "minutes", "60", "Age from which results are cleared."),
    Setting("MCP_COMPACT_MICRO_KEEP", "results", "5", "So many newest results stay."),
    Setting("MCP_COMPACT_MICRO_MEDIA_TOKENS", "tokens", "2000", "Media of at least this size may be cleared."),
    Setting("MCP_COMPACT_REQUEST_MB", "megabytes", "32", "Largest request of the provider: near it, media should go."),
    Setting("MCP_COMPACT_REQUEST_MEDIA", "images", "100", "The most images and documents in one request."),
    Setting(
        "MCP_COMPACT_MICRO_TRIGGER_TOKENS",
        "tokens",
        "the warning level",
        "Clearing by tokens does nothing in a smaller context.",
    ),
    Setting("MCP_COMPACT_MICRO_PROTECT_TOKENS", "tokens", "40000", "And keeps the newest results up to this sum."),
    Setting("MCP_COMPACT_MICRO_CLEAR_AT_LEAST", "tokens", "20000", "And does nothing where it would free less."),
    Setting(
        "MCP_COMPACT_MICRO_MAX_RESULT_TOKENS", "tokens", "no limit", "A larger result is cleared after the next answer."
    ),
    Setting("MCP_COMPACT_MICRO_CLEAR_INPUTS", "flag", "off", "The inputs of cleared calls go too."),
    Setting(
        "MCP_COMPACT_MICRO_CLEAR_OUTDATED_READS",
        "flag",
        "off",
        "Reads of a file that was read again or written since are cleared.",
    ),
    Setting("MCP_COMPACT_MICRO_CLEAR_REPEATED_CALLS", "flag", "off", "Of equal calls only the newest result stays."),
    Setting("MCP_COMPACT_MICRO_CLEAR_FAILED_INPUTS", "flag", "off", "The inputs of failed calls are cleared."),
    Setting("MCP_COMPACT_RESTORE_TOKENS", "tokens", "50000", "Pins, plan, skills and files put back: all together."),
    Setting("MCP_COMPACT_RESTORE_SKILL_TOKENS", "tokens", "5000", "One skill of them."),
    Setting("MCP_COMPACT_RESTORE_SKILLS_TOKENS", "tokens", "25000", "All skills of them."),
    Setting("MCP_COMPACT_RESTORE_FILE_TOKENS", "tokens", "5000", "One file of them."),
    Setting("MCP_COMPACT_RESTORE_FILES", "files", "5", "So many files last read or written."),
    Setting("MCP_COMPACT_MIN_GAIN_PERCENT", "percent", "5", "A compaction that frees less is not done."),
    Setting("MCP_COMPACT_REQUIRE_INSTRUCTIONS", "flag", "on", "Add standing instructions that would be lost."),
    Setting(
        "MCP_COMPACT_SYNCHRONOUS", "normal, full", "normal", "`full` survives a power loss; appends cost a disk flush."
    ),
    Setting("MCP_COMPACT_PAGE_TOKENS", "tokens", "18000", "Size of one page of messages."),
    Setting("MCP_COMPACT_MAX_FILE_MB", "megabytes", "1024", "Largest transcript that is imported."),
    Setting("MCP_COMPACT_HOOKS", "path", "", "JSON file of the commands that run around a compaction."),
    Setting("MCP_COMPACT_HOOK_TIMEOUT_S", "seconds", "10", "What one hook may take, unless the file says otherwise."),
    Setting("MCP_COMPACT_HOOK_ENTRY_POINTS", "flag", "on", "Hooks that installed Python packages offer."),
    Setting("MCP_COMPACT_HOLD_MANUAL", "flag", "off", "A client's first /compact of a session is held back, once."),
    Setting(
        "MCP_COMPACT_INJECTION_CHARS",
        "characters",
        "9500",
        "What a client is given back after its own compaction; above 10,000 Claude Code shows a preview.",
    ),
    Setting("MCP_COMPACT_FOLLOW", "flag", "on", "The server follows the transcript of its client's session."),
    Setting("MCP_COMPACT_FOLLOW_SECONDS", "seconds", "2", "How often it looks whether the transcript has grown."),
    Setting(
        "MCP_COMPACT_RETENTION_DAYS",
        "days",
        "never",
        "`mcp-compact retention` removes sessions that nobody worked on for so long. Nothing removes them by itself.",
    ),
    Setting(
        "MCP_COMPACT_SUMMARIZERS", "agent, provider, sampling", "agent", "Who is asked for a summary, in this order."
    ),
    Setting("MCP_COMPACT_LLM_MODEL", "provider:model", "", "The model that the writer `provider` asks."),
    Setting(
        "MCP_COMPACT_LLM_BASE_URL",
        "address",
        "the provider's own",
        "Where it is reached, e.g. `http://127.0.0.1:8080/v1`.",
    ),
    Setting(
        "MCP_COMPACT_LLM_API_KEY",
        "key",
        "",
        "Its key. Else, at the provider's own address, the provider's usual variable.",
    ),
    Setting("MCP_COMPACT_LLM_TIMEOUT_S", "seconds", "120", "Limit for a summary by `provider` or `sampling`."),
    Setting("MCP_COMPACT_LLM_MAX_TOKENS", "tokens", "12000", "What either may write: at most 12000.", limit=12_000),
    Setting("MCP_COMPACT_HTTP_HOST", "address", "127.0.0.1", "Where a server on HTTP or SSE listens."),
    Setting("MCP_COMPACT_HTTP_PORT", "port", "8765", "And at which port."),
    Setting("MCP_COMPACT_HTTP_PUBLIC_URL", "address", "", "What clients call it, where a proxy stands before it."),
    Setting(
        "MCP_COMPACT_HTTP_ALLOWED_HOSTS",
        "names",
        "this machine's own, where it listens there",
        "Host headers that are answered besides, as `name` or `name:port`, separated by commas.",
    ),
    Setting(
        "MCP_COMPACT_HTTP_ALLOWED_ORIGINS",
        "origins",
        "pages of this machine",
        "Web pages that may call it, e.g. `https://app.example`.",
    ),
    Setting("MCP_COMPACT_HTTP_MAX_BODY_MB", "megabytes", "16", "Largest request."),
    Setting("MCP_COMPACT_HTTP_MAX_CONNECTIONS", "sessions", "1000", "MCP sessions open at once."),
    Setting("MCP_COMPACT_HTTP_IDLE_S", "seconds", "1800", "An MCP session that is silent for so long is closed."),
    Setting("MCP_COMPACT_HTTP_RECEIVE_TIMEOUT_S", "seconds", "30", "For a request's headers, and again for its body."),
    Setting("MCP_COMPACT_HTTP_CALLS_PER_MINUTE", "requests", "6000", "Of one tenant over the network."),
    Setting("MCP_COMPACT_HTTP_MAX_SESSIONS", "sessions", "10000", "That one tenant may store."),
    Setting("MCP_COMPACT_HTTP_MAX_STORAGE_MB", "megabytes", "10240", "That one tenant may store."),
    Setting("MCP_COMPACT_HTTP_MAX_MESSAGE_MB", "megabytes", "32", "Largest message that one tenant may store."),
    Setting("MCP_COMPACT_JWT_ISSUER", "address", "", "Accept the signed tokens of this authorization server."),
    Setting("MCP_COMPACT_JWT_AUDIENCE", "text", "the server's own address", "Whom they must be meant for."),
    Setting("MCP_COMPACT_JWT_KEYS_URL", "address", "", "Where that server publishes its keys (JWKS)."),
    Setting("MCP_COMPACT_LOG_LEVEL", "level", "WARNING", "What is logged to stderr."),
    Setting("MCP_COMPACT_LOG_FORMAT", "text, json", "text", "And how: lines for people, or one JSON object a line."),
)
