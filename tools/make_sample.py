"""Write the sample transcript that the package ships.

The story lies in ``sample_project/*.story.txt`` and the project it is about in
``sample_project/project.txt``. Answers of the file tools are computed from the project's
files as the story edits them; outputs of commands were recorded once by running them and
are part of the story. Nothing here reads a clock, so every run gives the same bytes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Run as a script, Python looks beside the script only.
sys.path.insert(0, str(HERE.parent))

from tools.sample_project.conversation import Conversation  # noqa: E402
from tools.sample_project.records import Transcript  # noqa: E402
from tools.sample_project.story import read_project, read_story  # noqa: E402
from tools.sample_project.tools import Tools  # noqa: E402
from tools.sample_project.workspace import Workspace  # noqa: E402

TARGET = HERE.parent / "mcp_compact" / "samples" / "session.jsonl"


def build() -> str:
    """The text of the transcript."""
    folder = HERE / "sample_project"
    transcript = Transcript()
    tools = Tools(Workspace(read_project(folder / "project.txt")))
    Conversation(transcript, tools).play(read_story(folder))
    return "\n".join(transcript.lines) + "\n"


def main() -> None:
    """Write the transcript to the place the package ships it from, or to ``--output``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=TARGET)
    target: Path = parser.parse_args().output
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(build().encode())


if __name__ == "__main__":
    main()
