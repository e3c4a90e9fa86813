"""The command line: every command with its options. What a command needs is loaded when it runs."""

from __future__ import annotations

import argparse

from mcp_compact import __version__

PROGRAM = "mcp-compact"

MIN_SECONDS, MAX_SECONDS = 0.1, 3600.0

MANIFESTS = (
    *("claude-desktop", "claude-code", "vscode", "cursor", "codex"),
    *("gemini-cli", "opencode", "goose", "zed", "windsurf"),
)
"""The clients of cli/manifest_clients.py by name, which the parser needs and must not load more for."""
WRITTEN = ("anthropic", "openai", "responses", "gemini", "claude-code", "codex")
"""The formats of transcripts/outs.py by name, for the same reason."""
PROVIDERS = ("anthropic", "openai-chat", "openai-responses", "gemini")
"""Those of transcripts/validity/providers.py."""
Subparsers = argparse._SubParsersAction  # noqa: SLF001 (argparse gives its type no public name)
TOKENS_HELP = "tokens that the result may have"
JSON_HELP = "answer as one JSON object on stdout"
SESSION_OR_PATH_HELP = "its id, the first characters of it, or a transcript file (default: the last active one here)"
FOUND_HELP = "its id, the first characters of it, or a transcript (default: the last one of this folder)"
SESSION_HELP = "its id, or the first characters of it (default: the last active one of this folder)"


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Keeps the conversations of agents inside their context window, and loses nothing for good.",
        epilog=f"Start with `{PROGRAM} demo`. `{PROGRAM} COMMAND --help` says more of a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for add in (
        *(_demo, _compact, _serve, _import, _status, _sessions, _search, _memory, _undo, _resume, _handoff),
        *(_now, _watch, _rules, _report, _forget, _export, _validate, _backup, _restore, _rescue),
        *(_stats, _retention, _vacuum),
        *(_install, _uninstall, _manifest, _hook, _statusline, _token, _config, _doctor),
    ):
        add(commands)
    return parser


def _command(commands: Subparsers[argparse.ArgumentParser], name: str, run: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(run=f"mcp_compact.cli.{run}", refuse=parser.error)
    return parser


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help=JSON_HELP)


def _positive(text: str) -> int:
    """A positive whole number, `_` and `,` between its digits allowed."""
    try:
        number = int(text.replace(",", "").replace("_", ""))
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no positive whole number")
    return number


def _port(text: str) -> int:
    """A port; 0 takes one that is free."""
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:  # noqa: PLR2004 - as TCP has them
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no port")
    return int(text)


def _demo(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "watch a compaction: the real server, a real client, a temporary archive"
    parser = _command(commands, "demo", "demo:run", text)
    parser.add_argument("transcript", nargs="?", metavar="TRANSCRIPT", help="a transcript (default: a shipped sample)")
    _json(parser)


def _compact(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "compact", "compact_file:run", "compact a transcript or message list without a server")
    parser.add_argument("file", metavar="FILE", help="the file, or - for stdin")
    parser.add_argument("-o", "--output", metavar="OUT", help="where the messages go (default: stdout)")
    parser.add_argument("--target", type=_positive, metavar="N", help=TOKENS_HELP)
    parser.add_argument(
        "--format",
        default="",
        metavar="F",
        help=f"of the result: {', '.join(WRITTEN)} (default: as it is; where that can only be read, its model's API)",
    )
    parser.add_argument(
        "--json", action="store_true", help="the report as one JSON object on stdout; messages only to OUT"
    )


def _serve(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands, "serve", "serving:run", "serve MCP: over stdin and stdout for a client, or on a network"
    )
    parser.add_argument("--transport", choices=("stdio", "http", "sse"), default="stdio", help="how (default: stdio)")
    parser.add_argument("--host", metavar="H", help="where http and sse listen (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, metavar="N", help="and at which port (default: 8765)")
    parser.add_argument("--stateless", action="store_true", help="http: keep no MCP sessions between requests")
    parser.add_argument(
        "--profile", metavar="P", default="core", help="agent, core (default) or full; or names of tools, with commas"
    )


def _import(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "import", "importing:run", "import transcripts into the archive")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="transcript files, and folders of them")
    parser.add_argument("--history", metavar="CLIENT", help="all sessions of claude-code, codex or gemini-cli")
    parser.add_argument("--session", default="", metavar="ID", help="store one file under this id (default: its own)")
    parser.add_argument("--format", default="", metavar="F", help="its format (default: told from its content)")
    _json(parser)


def _status(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "status", "show:status", "how full a session's context is, and of what")
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help=SESSION_HELP)
    _json(parser)


def _sessions(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "sessions", "show:sessions", "list the sessions of this folder, the last active first")
    parser.add_argument("--all", action="store_true", help="of every folder")
    parser.add_argument("--limit", type=_positive, default=50, metavar="N", help="so many at most (default: 50)")
    _json(parser)


def _search(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "search", "show:search", "find messages that hold all these words, the newest first")
    parser.add_argument("text", nargs="+", metavar="TEXT", help="words, taken literally")
    parser.add_argument("--session", default="", metavar="ID", help="only in this session")
    parser.add_argument("--all", action="store_true", help="in every folder's sessions")
    parser.add_argument("--role", choices=("user", "assistant", "tool", "system"), help="only what is of this role")
    parser.add_argument("--tool", default="", metavar="NAME", help="only calls of this tool and their results")
    parser.add_argument("--since", default="", metavar="TIME", help="only from this time on, e.g. 2026-11-30")
    parser.add_argument("--until", default="", metavar="TIME", help="and only before this one")
    side = parser.add_mutually_exclusive_group()
    side.add_argument("--before-boundary", action="store_true", help="only what a session's last compaction knew of")
    side.add_argument("--after-boundary", action="store_true", help="only what came since")
    parser.add_argument("--best", action="store_true", help="those that hold the words most often first")
    parser.add_argument("--limit", type=_positive, default=20, metavar="N", help="so many at most (default: 20)")
    _json(parser)


def _memory(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "memory", "show:memory", "show a session's memory")
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help=SESSION_HELP)
    _json(parser)


def _rules(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "rules", "rules:run", "list the rules that you gave in a session; drop or pin one")
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help=FOUND_HELP)
    change = parser.add_mutually_exclusive_group()
    change.add_argument("--drop", type=_positive, metavar="N", help="take rule N out of memory and what is given back")
    change.add_argument("--pin", type=_positive, metavar="N", help="keep rule N whatever is said later")
    _json(parser)


def _report(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "show what a session's last compaction lost, and what is given back"
    parser = _command(commands, "report", "report:run", text)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("session", nargs="?", default="", metavar="SESSION", help=FOUND_HELP)
    which.add_argument(
        "--last", action="store_true", help="the last session of this folder that was compacted (the default)"
    )
    parser.add_argument("--html", default="", metavar="OUT", help="write it as one HTML file too")
    _json(parser)


def _undo(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "undo", "show:undo", "take back a session's last compaction")
    parser.add_argument("session", metavar="SESSION", help="its id, or the first characters of it")
    _json(parser)


def _resume(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "write a new session file for a client: the memory and the newest messages of an old one"
    parser = _command(commands, "resume", "resume:run", text)
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help=SESSION_OR_PATH_HELP)
    parser.add_argument("--target", type=_positive, metavar="N", help=TOKENS_HELP)
    parser.add_argument(
        "--format", choices=("claude-code", "codex"), default="", help="of which client (default: the session's own)"
    )
    parser.add_argument("--cwd", metavar="FOLDER", help="where to go on (default: the session's folder)")
    _json(parser)


def _install(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "install", "install:run", "put hooks, tools and commands into a coding agent")
    _client(parser)
    status_line = parser.add_mutually_exclusive_group()
    status_line.add_argument(
        "--statusline", action="store_true", default=None, help="show a status line, also in place of your own"
    )
    status_line.add_argument("--no-statusline", dest="statusline", action="store_false", help="leave it alone")


def _uninstall(commands: Subparsers[argparse.ArgumentParser]) -> None:
    _client(_command(commands, "uninstall", "install:run_uninstall", "take what `install` did back out of a client"))


def _manifest(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "print the server's entry for an MCP client, or put it into the client's own file"
    parser = _command(commands, "manifest", "manifest:run", text)
    parser.add_argument("client", choices=MANIFESTS, metavar="CLIENT", help=", ".join(MANIFESTS))
    parser.add_argument("--write", action="store_true", help="merge it into the client's file, which is backed up")
    parser.add_argument("--project", action="store_true", help="the file of this folder (default: your own)")
    parser.add_argument("--http", default="", metavar="URL", help="of a server that runs on a network")
    parser.add_argument("--token-env", default="", metavar="NAME", help="the variable that holds its bearer token")
    parser.add_argument(
        "--profile", choices=("agent", "core", "full"), help="which tools (default: as suits the client)"
    )
    _json(parser)


def _hook(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "answer a hook of a coding agent, which starts this with JSON on stdin"
    parser = _command(commands, "hook", "hook:run", text)
    parser.add_argument("event", nargs="?", default="", metavar="EVENT", help="for clients that do not say it in JSON")
    parser.add_argument("--client", default="claude-code", metavar="NAME", help="which client starts it")


def _statusline(commands: Subparsers[argparse.ArgumentParser]) -> None:
    _command(commands, "statusline", "statusline:run", "print a line for Claude Code's status line, which starts this")


def _client(parser: argparse.ArgumentParser) -> None:
    names = ("claude-code", "codex", "gemini-cli", "opencode", "pi")
    parser.add_argument("client", choices=names, metavar="CLIENT", help=", ".join(names))
    parser.add_argument("--dry-run", action="store_true", help="show what would change, change nothing")
    _json(parser)


def _handoff(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "a brief for a fresh session: rules, open work, files, git, how to search"
    parser = _command(commands, "handoff", "handoff:run", text)
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help=SESSION_OR_PATH_HELP)
    parser.add_argument("-o", "--output", metavar="OUT", help="write it to a file")
    parser.add_argument("--after-clear", action="store_true", help="give it to the project's next session after /clear")
    _json(parser)


def _token(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "token", "tokens:show", "who may call the server over a network, each as a tenant")
    kinds = parser.add_subparsers(title="what to do", metavar="ACTION", dest="action", required=True)
    add = _command(kinds, "add", "tokens:add", "make tokens, each shown this once")
    add.add_argument("name", nargs="+", metavar="NAME", help="what it is called in lists; its tenant, too")
    add.add_argument("--namespace", default="", metavar="T", help="the tenant of all of them (local: this user's own)")
    add.add_argument("--days", type=_positive, metavar="N", help="good for so many days (default: until revoked)")
    add.add_argument("--count", type=_positive, metavar="N", help="so many of each name, numbered")
    _json(add)
    _json(_command(kinds, "list", "tokens:show", "list the tokens and their state"))
    revoke = _command(kinds, "revoke", "tokens:revoke", "revoke tokens: they open nothing from the next request on")
    revoke.add_argument("name", nargs="*", metavar="NAME", help="which ones")
    revoke.add_argument("--namespace", metavar="T", help="or all of a tenant")
    _json(revoke)


def _now(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "run Claude Code's own compaction of a session, with the lines that must be kept"
    parser = _command(commands, "now", "now:run", text)
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help=SESSION_OR_PATH_HELP)
    _json(parser)


def _watch(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "follow the transcripts of clients without hooks, and import what is new"
    parser = _command(commands, "watch", "watching:run", text)
    parser.add_argument(
        "what",
        nargs="*",
        metavar="CLIENT|PATH",
        help="claude-code, codex, gemini-cli, pi, a file or a folder (default: claude-code)",
    )
    parser.add_argument("--all", action="store_true", help="of every project, not of this folder alone")
    parser.add_argument("--every", type=_seconds, default=2.0, metavar="S", help="seconds between looks (default: 2)")
    parser.add_argument("--once", action="store_true", help="look once and end")


def _seconds(text: str) -> float:
    """Seconds from 0.1 to an hour."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not MIN_SECONDS <= number <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number of seconds from 0.1 to 3600")
    return number


def _forget(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "forget", "forget:run", "remove a session or a whole project for good")
    parser.add_argument("target", metavar="SESSION|PROJECT", help="an id or the first characters of it, or a folder")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    _json(parser)


def _stats(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "stats", "stats:run", "how large the archive is, of what, and which sessions hold most")
    parser.add_argument("--limit", type=_positive, default=10, metavar="N", help="so many sessions (default: 10)")
    _json(parser)


def _retention(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "remove sessions that nobody worked on for so many days; off unless it is set"
    parser = _command(commands, "retention", "retention:run", text)
    parser.add_argument("--days", type=_positive, metavar="N", help="(default: MCP_COMPACT_RETENTION_DAYS)")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only show what would go")
    _json(parser)


def _vacuum(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "give back to the disk what the archive's file holds for nothing"
    parser = _command(commands, "vacuum", "vacuum:run", text)
    parser.add_argument("--anyway", action="store_true", help="also a large file that others have open: they wait")
    _json(parser)


def _export(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "write a session as messages that a provider or a client takes, or byte for byte for another archive"
    parser = _command(commands, "export", "export:run", text)
    parser.add_argument("session", nargs="?", default="", metavar="SESSION", help=SESSION_HELP)
    parser.add_argument(
        "--all", action="store_true", help="everything that was said, not its context alone; with --raw: every session"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--format", choices=WRITTEN, default="", metavar="F", help=f"{', '.join(WRITTEN)} (default: anthropic)"
    )
    form.add_argument("--raw", action="store_true", help="byte for byte, with all that was made of it, unmasked")
    parser.add_argument("--request", action="store_true", help="as a request: the system prompt beside the messages")
    parser.add_argument("-o", "--output", metavar="OUT", help="where it goes (default: stdout)")
    _json(parser)


def _validate(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "say what a provider would refuse in a list of messages, and where; or repair it"
    parser = _command(commands, "validate", "validate:run", text)
    parser.add_argument("file", metavar="FILE", help="a list of messages, a request, or a message a line; - for stdin")
    parser.add_argument(
        "--provider", choices=PROVIDERS, default="", metavar="P", help=f"{', '.join(PROVIDERS)} (default: as it looks)"
    )
    parser.add_argument("--repair", action="store_true", help="write a list that is accepted, and tell each change")
    parser.add_argument("-o", "--output", metavar="OUT", help="where the repaired list goes (default: stdout)")
    parser.add_argument(
        "--json", action="store_true", help="the report as one JSON object on stdout; a repaired list only to OUT"
    )


def _backup(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "backup", "backup:run", "copy the whole archive to a file, checked, also while in use")
    parser.add_argument("file", metavar="FILE", help="the file to write, or a folder (named by the time then)")
    _json(parser)


def _restore(commands: Subparsers[argparse.ArgumentParser]) -> None:
    text = "make the archive what a backup is; what it was is kept beside it"
    parser = _command(commands, "restore", "backup:run_restore", text)
    parser.add_argument("file", metavar="FILE", help="what `backup` wrote")
    _json(parser)


def _rescue(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "rescue", "rescue:run", "save what can be read of a damaged archive into a new file")
    parser.add_argument("file", nargs="?", default="", metavar="FILE", help="the damaged file (default: the archive)")
    parser.add_argument("-o", "--output", metavar="NEW", help="the new file (default: a name beside it)")
    _json(parser)


def _config(commands: Subparsers[argparse.ArgumentParser]) -> None:
    _json(_command(commands, "config", "configuration:run", "show every setting: its value, default and meaning"))


def _doctor(commands: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "doctor", "doctor:run", "check the installation and the archive, and say what to do")
    parser.add_argument("--deep", action="store_true", help="look at every byte of the archive; takes its time")
    _json(parser)
