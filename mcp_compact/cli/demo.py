"""`mcp-compact demo`: a whole compaction to look at, in under ten seconds."""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from mcp_compact.cli.clients import next_step
from mcp_compact.cli.files import about_file, readable_file
from mcp_compact.cli.output import plain, print_json
from mcp_compact.cli.terminal import is_screen, terminal
from mcp_compact.errors import CallerError

HEAD_BYTES = 4 * 1024 * 1024
COLUMNS = 78


def run(arguments: argparse.Namespace) -> int:
    """Play the demo; 0 if everything held that it shows, 1 if something did not."""
    transcript = readable_file(arguments.transcript) if arguments.transcript else sample()
    _refuse_no_transcript(transcript, arguments.transcript or transcript.name)
    steps = plain(_played(transcript))
    steps["is_sample"] = not arguments.transcript
    steps["next"] = plain(next_step(Path.home()))
    steps["failures"] = failures(steps)
    if arguments.json:
        print_json(steps)
    else:
        from mcp_compact.cli.demo_report import lines

        print("\n".join(lines(steps, terminal())))
    # The process ends now; collecting the garbage of so many modules would only keep the user waiting.
    gc.freeze()
    return 1 if steps["failures"] else 0


def sample() -> Path:
    """The transcript that the package ships."""
    return Path(str(resources.files("mcp_compact") / "samples" / "session.jsonl"))


def _refuse_no_transcript(path: Path, name: str) -> None:
    """What cannot be read at all is said before a server is started."""
    from mcp_compact.transcripts.registry import detect_format

    try:
        with path.open("rb") as stream:
            detect_format(stream.read(HEAD_BYTES))
    except CallerError as error:
        raise about_file(error, name) from error


def _played(transcript: Path) -> dict[str, Any]:
    import anyio

    from mcp_compact.cli.demo_client import play

    with tempfile.TemporaryDirectory(prefix="mcp-compact-demo-", ignore_cleanup_errors=True) as folder:
        try:
            return anyio.run(play, transcript, Path(folder), _say)
        finally:
            _say("")


def _say(text: str) -> None:
    """What happens now, on one line that is written over; nothing where nobody watches."""
    if is_screen(sys.stderr):
        print(f"\r{text + ' ...' if text else '':<{COLUMNS}}\r", end="", file=sys.stderr, flush=True)


def failures(steps: dict[str, Any]) -> list[str]:
    """What the demo shows but did not hold."""
    compacted = steps["compact"]["status"] in ("compacted", "prepared")
    checks = (
        (not compacted or steps["undo"]["same_hash"], "undo did not bring the context back as it was"),
        (not steps["original"] or steps["original"]["same_bytes"], "an original is not what the transcript holds"),
    )
    return [text for held, text in checks if not held]
