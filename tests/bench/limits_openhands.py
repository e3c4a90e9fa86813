"""OpenHands' condenser on the same messages, with a stub in its model's place: what remains is its own work.

It needs Python 3.12 and an older `mcp` than ours, so it runs in a Python of its own, which has `openhands-sdk`. It goes
by the number of events: twice as many as may stay set it off.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.limits_peers import BUDGET, MESSAGES, Peer, Said, corpus, left_of
from tests.bench.measuring import Times, milliseconds

NAME = "openhands-sdk"
LONGEST_S = 600.0

EVENTS = MESSAGES * BUDGET // 2_050_000
"""So many events of the corpus are about the tokens that the others are given."""
SUMMARY = "What came before: files were read, one after the other."


def row(python: str, repeats: int) -> Mapping[str, object]:
    """The row of the table, measured by that Python; why there is none, where it cannot."""
    if not python:
        return {"name": NAME, "missing": "pass --openhands with a Python 3.12 that has it"}
    command = [python, "-m", "tests.bench.limits_openhands", str(repeats)]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    if done.returncode:
        return {"name": NAME, "missing": done.stderr.strip().rpartition("\n")[2]}
    found: dict[str, object] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return found


def peer_of(messages: Sequence[Said]) -> Peer:
    """Its condensation of the view, and the view after it. Raises ImportError where it is not installed."""
    os.environ.setdefault("OPENHANDS_SUPPRESS_BANNER", "1")
    # Else a list of prices is fetched.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from openhands.sdk.context.condenser import LLMSummarizingCondenser
    from openhands.sdk.context.view import View
    from openhands.sdk.llm import Message, TextContent
    from openhands.sdk.testing import TestLLM

    events = _events(messages)

    def condense() -> Callable[[], list[Any]]:
        said = Message(role="assistant", content=[TextContent(text=SUMMARY)])
        condenser = LLMSummarizingCondenser(llm=TestLLM.from_messages([said]), max_size=2 * EVENTS, keep_first=2)

        def run() -> list[Any]:
            condensation = condenser.condense(View.from_events(events))
            return list(View.from_events([*events, condensation]).events)

        return run

    return Peer("OpenHands condenser, a stub writes", "cut", len(messages), "in its event log", condense, _said)


def _events(messages: Iterable[Said]) -> list[Any]:
    from openhands.sdk.event import ActionEvent, MessageEvent, ObservationEvent
    from openhands.sdk.llm import Message, MessageToolCall, TextContent
    from openhands.sdk.tool import Action, Observation

    # Actions and observations are told by their classes' names.
    class BenchReadAction(Action):  # type: ignore[misc, unused-ignore]
        path: str

    class BenchReadObservation(Observation):  # type: ignore[misc, unused-ignore]
        pass

    out: list[Any] = []
    made: dict[str, str] = {}
    for at, (role, call, said) in enumerate(messages):
        match role:
            case "call":
                asked = MessageToolCall(
                    id=call, name="read_file", arguments=f'{{"path": "{said}"}}', origin="completion"
                )
                event = ActionEvent(
                    thought=[],
                    action=BenchReadAction(path=said),
                    tool_name="read_file",
                    tool_call_id=call,
                    tool_call=asked,
                    llm_response_id=f"r{at}",
                )
                made[call] = event.id
                out.append(event)
            case "result":
                read = BenchReadObservation.from_text(said)
                out.append(
                    ObservationEvent(tool_name="read_file", tool_call_id=call, observation=read, action_id=made[call])
                )
            case _:
                message = Message(role=role, content=[TextContent(text=said)])
                out.append(MessageEvent(source="user" if role == "user" else "agent", llm_message=message))
    return out


def _said(events: Iterable[Any]) -> list[Said]:
    out: list[Said] = []
    for event in events:
        match type(event).__name__:
            case "ActionEvent":
                out.append(("call", event.tool_call_id, event.tool_call.arguments))
            case "ObservationEvent":
                out.append(("result", event.tool_call_id, " ".join(part.text for part in event.observation.content)))
            case "MessageEvent":
                text = " ".join(part.text for part in event.llm_message.content)
                out.append((event.llm_message.role, "", text))
            case _:
                out.append(("assistant", "", event.summary))
    return out


def main() -> None:
    """Measure it in this process, and print the row as JSON."""
    messages, times, kept = corpus(MESSAGES), Times(), []
    peer = peer_of(messages)
    for _ in range(int(sys.argv[1])):
        work = peer.prepared()
        found: list[Any] = []
        times.add(peer.name, milliseconds(lambda work=work, found=found: found.append(work())))  # type: ignore[misc]
        kept = peer.said(found[0])
    print(json.dumps(asdict(left_of(peer, messages, kept, times.median(peer.name)))))


if __name__ == "__main__":
    main()
