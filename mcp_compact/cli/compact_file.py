"""`mcp-compact compact`: a transcript or message list on disk or stdin, without a server."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mcp_compact.cli.files import about_file, readable_file
from mcp_compact.cli.output import plain, print_json, write_whole
from mcp_compact.cli.terminal import Terminal, terminal
from mcp_compact.errors import CallerError

CHUNK_BYTES = 1 << 20
STDIN = "-"
MEMORY_LINES = 12
LISTED_WARNINGS = 8


def run(arguments: argparse.Namespace) -> int:
    """Compact a file; the messages go to OUT or stdout, what was done is said beside them.

    Ends with 2 where the target leaves no room, with 1 where it fails otherwise: the messages are the ones that
    were read.
    """
    from mcp_compact.config import load_settings
    from mcp_compact.library import compact_transcript
    from mcp_compact.transcripts.outs import out_of

    if arguments.format:
        out_of(arguments.format)
    settings = load_settings()
    name = "stdin" if arguments.file == STDIN else arguments.file
    path = None if arguments.file == STDIN else readable_file(arguments.file)
    if path is not None and arguments.output:
        _refuse_itself(path, arguments.output)
    try:
        result = compact_transcript(
            chunks_of(path, settings.max_file_bytes),
            output=arguments.format or "",
            target_tokens=arguments.target,
            context_window=settings.context_window,
            policy=settings.policy,
        )
    except CallerError as error:
        raise about_file(_naming_import(error, path), name) from error
    _hand_over(result, arguments, name)
    if result.report.status != "failed":
        return 0
    return 2 if any(item.reason == "no_room" for item in result.report.declined) else 1


def _refuse_itself(path: Path, output: str) -> None:
    """The file that is read stays as it is, by whatever name it is given once more."""
    out = Path(output).expanduser()
    try:
        is_itself = out.samefile(path)
    except OSError:
        return
    if is_itself:
        raise CallerError(
            "output_is_input",
            f"{output!r} is the file that is read, and what leaves the conversation would be nowhere any more.",
            "Name another file with -o; `mcp-compact import` keeps all of it in an archive.",
        )


def _naming_import(error: CallerError, path: Path | None) -> CallerError:
    """Of a file of several conversations: the command that takes this one."""
    if error.code != "several_conversations" or path is None:
        return error
    return CallerError(error.code, error.message, error.hint.replace("FILE", shlex.quote(str(path))))


def chunks_of(path: Path | None, most_bytes: int) -> Iterator[bytes]:
    """A file's bytes, or those of stdin. Raises CallerError `file_too_large`."""
    if path is None:
        yield from _limited(sys.stdin.buffer, most_bytes)
        return
    with path.open("rb") as stream:
        yield from _limited(stream, most_bytes)


def _limited(stream: BinaryIO, most_bytes: int) -> Iterator[bytes]:
    left = most_bytes
    while chunk := stream.read(CHUNK_BYTES):
        left -= len(chunk)
        if left < 0:
            raise CallerError(
                "file_too_large",
                f"The transcript is larger than {most_bytes // 1024**2:,} MB.",
                "Raise MCP_COMPACT_MAX_FILE_MB to read it all the same.",
            )
        yield chunk


def _hand_over(result: Any, arguments: argparse.Namespace, name: str) -> None:  # noqa: ANN401 (a FileResult)
    content = encoded(result.messages, result.format)
    is_replaced = False
    if arguments.output:
        out = Path(arguments.output).expanduser()
        is_replaced = out.is_file()
        write_whole(out, content)
    if arguments.json:
        print_json(report_json(result, name, arguments.output or ""))
        return
    if not arguments.output:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    lines = report_lines(result, name, terminal("stderr"), arguments.output or "")
    lines += ["The file that was there before is replaced."] if is_replaced else []
    print("\n".join(lines), file=sys.stderr)


def encoded(messages: Sequence[Mapping[str, Any]], format_name: str) -> bytes:
    """Messages as a file: a JSON list, a message a line; JSON lines for a client's session file."""
    from mcp_compact.messages.codec import clean
    from mcp_compact.transcripts.outs import out_of

    lines = [json.dumps(clean(item), ensure_ascii=False, separators=(",", ":")) for item in messages]
    if out_of(format_name).by_line:
        return "".join(f"{line}\n" for line in lines).encode()
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def report_json(result: Any, name: str, output: str) -> dict[str, Any]:  # noqa: ANN401 (a FileResult)
    """Everything that is known of one compaction, but not the messages."""
    report = plain(result.report)
    return {
        "source": name,
        "output": output,
        "format": result.format,
        "session_id": result.session_id,
        "messages": len(result.messages),
        **report,
        "read": result.read.as_json(),
    }


def report_lines(result: Any, name: str, screen: Terminal, output: str) -> list[str]:  # noqa: ANN401 (a FileResult)
    """What was done, to be read: figures, the picture, what was kept, the memory's beginning, warnings."""
    from mcp_compact.cli.account import kept_lines, outcome_line, reading_lines, warning_lines
    from mcp_compact.cli.picture import comparison, scaled
    from mcp_compact.cli.text import shown

    report = result.report
    lines = [screen.bold(f"{shown(name)}: {outcome_line(report)}")]
    before, after = scaled(report.before, report.tokens_before), scaled(report.after, report.tokens_after)
    lines += ["", *comparison(before, after, screen), ""]
    if report.status == "compacted":
        lines += kept_lines(report)
        head = report.memory.splitlines()
        lines += ["", screen.bold("The memory begins:"), *_head(head, screen)]
    lines += warning_lines([*reading_lines(result.read), *report.warnings], LISTED_WARNINGS)
    if output:
        lines += ["", f"Written to {shown(output)}."]
    return lines


def _head(text: Sequence[str], screen: Terminal) -> list[str]:
    from mcp_compact.cli.text import cut, shown_line

    lines = [f"  {cut(shown_line(line), screen.columns - 2)}" for line in text[:MEMORY_LINES]]
    return [*lines, screen.faint(f"  ... {len(text) - MEMORY_LINES} more lines")] if len(text) > MEMORY_LINES else lines
