"""The command `mcp-compact`: how a command is run and how it ends. Loads no more than the command that is run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from mcp_compact.cli.parser import PROGRAM, build_parser
from mcp_compact.errors import CallerError, CompactError

DONE, OUR_FAULT, CALLERS_FAULT = 0, 1, 2
INTERRUPTED, READER_GONE = 130, 141
"""As a shell reports programs that end by an interrupt or a broken pipe."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code: 0 done, 1 our own failure, 2 what the caller can mend."""
    from mcp_compact.cli.terminal import prepare_streams

    prepare_streams()
    try:
        arguments, unknown = build_parser().parse_known_args(argv)
        if unknown:
            # With the usage of the command that was given, not that of all.
            arguments.refuse(f"unrecognized arguments: {' '.join(unknown)[:200]}")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else DONE
    return _guarded(lambda: _run(arguments))


def _run(arguments: argparse.Namespace) -> int:
    module, _, name = arguments.run.partition(":")
    command: Callable[[argparse.Namespace], int] = getattr(import_module(module), name)
    code = command(arguments)
    sys.stdout.flush()
    return code


def _guarded(run: Callable[[], int]) -> int:
    """The exit code of a command; expected failures become one message on stderr. Defects are left alone."""
    try:
        return run()
    except BaseException as raised:
        code = _exit_code(raised)
        if code is None:
            raise
        return code


def _exit_code(raised: BaseException) -> int | None:
    from mcp_compact.cli.raised import cause_of

    match cause_of(raised):
        case KeyboardInterrupt():
            return INTERRUPTED
        case BrokenPipeError():
            from mcp_compact.cli.terminal import no_more_output

            no_more_output()
            return READER_GONE
        case CompactError() as error:
            complain(error.message, error.hint)
            return CALLERS_FAULT if isinstance(error, CallerError) else OUR_FAULT
        case OSError() as error:
            complain(f"the system refused: {error}.", _what_helps(error))
            return OUR_FAULT
        case _:
            return None


def _what_helps(error: OSError) -> str:
    import errno

    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "The disk is full: free some space."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Check who may write there, and how the disk is mounted."
    return "Check the path." if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG) else ""


def complain(message: str, hint: str = "") -> None:
    """One message on stderr: what was wrong and where, then what to do."""
    from mcp_compact.cli.text import shown

    sys.stdout.flush()
    print(f"{PROGRAM}: {shown(message)}", *([f"  {shown(hint)}"] if hint else []), sep="\n", file=sys.stderr)
