"""Compaction by a written summary: somebody else writes it; it is checked, and what it lost is added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_compact.compaction.answers import Refused, usable_text
from mcp_compact.compaction.assembly import assemble, hopeless
from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, NeedsRecords, Window, target_of
from mcp_compact.compaction.cuts import calculate_messages_to_keep_index, open_call_index
from mcp_compact.compaction.extract import Material, extract
from mcp_compact.compaction.findings import found
from mcp_compact.compaction.identifiers import identifiers
from mcp_compact.compaction.material import Rendered, material_text, render
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import UNKNOWN_WINDOW, levels, tail_limits
from mcp_compact.compaction.prompts import SYSTEM, summary_prompt
from mcp_compact.compaction.request import Bodies
from mcp_compact.compaction.restore import folded
from mcp_compact.compaction.session_memory import summaries_of
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.messages.weights import UNITS_PER_TOKEN
from mcp_compact.messages.words import users_words

PATH = "summary"
MAX_SUMMARY_TOKENS = 12_000
"""What a writer may write; fixed, whatever the length of the material."""
FEWEST_ADDED_TOKENS = 80
SHOWN_NAMES = 10
CURRENT = "The newest request of the user, word for word:"
ADDED = "Beside that, from the session itself:"


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a writer is given. The same attempt makes the same request."""

    system: str
    prompt: str
    material: str
    material_tokens: int
    max_tokens: int
    dropped_messages: int
    declined: tuple[Declined, ...] = ()
    """Why the paths before this one did not compact."""
    context_window: int = UNKNOWN_WINDOW
    """Tokens; of the model whose session it is."""

    @property
    def text(self) -> str:
        """Prompt and material in one message."""
        return f"{self.prompt}\n\n{self.material}"


def compact_by_summary(attempt: Attempt) -> CompactionPlan | NeedsRecords | SummaryRequest | Declined:
    """A request for a summary, or (with the answer) the plan."""
    window = _window(attempt)
    if isinstance(window, Declined):
        return window
    if (declined := hopeless(attempt, window, PATH)) is not None:
        return declined
    bodies = window.bodies(attempt)
    if isinstance(bodies, NeedsRecords):
        return bodies
    request = _request(attempt, bodies)
    if attempt.answer is None:
        return request
    text = usable_text(attempt.answer, request.prompt)
    if isinstance(text, Refused):
        return Declined(PATH, text.reason, text.detail)
    return _plan(attempt, bodies, window, text)


def _window(attempt: Attempt) -> Window | Declined:
    snapshot, request = attempt.snapshot, attempt.request
    target = target_of(snapshot, request, attempt.policy)
    if target < FEWEST_MEMORY_TOKENS:
        return Declined(PATH, "no_room", f"{snapshot.overhead_tokens} tokens of overhead leave {target} for messages")
    if request.keep_tail:
        limits = tail_limits(attempt.policy.tail, target, capped=request.target_tokens is not None)
        index = calculate_messages_to_keep_index(snapshot.tail, None, limits, snapshot.family)
    else:
        still_open = open_call_index(snapshot.tail)
        index = len(snapshot.tail) if still_open is None else still_open
    if index == 0 and snapshot.tail_is_all:
        return Declined(PATH, "nothing_to_compact", "every live message belongs to the part that stays")
    return Window(target, index, snapshot.tail[index:], refresh=False)


def _request(attempt: Attempt, bodies: Bodies) -> SummaryRequest:
    # What is put back is not summarised: skills, and what an earlier compaction put back.
    apart = found(bodies.leaving).skill_seqs
    rendered = render([record for record in bodies.leaving if record.seq not in apart], attempt.policy.micro)
    units = attempt.around.count([item.text for item in rendered])
    first = _first_kept(rendered, units, attempt.drop_tokens)
    prompt = summary_prompt(attempt.request.custom_instructions, attempt.request.must_keep)
    summaries = [item.text for item in attempt.snapshot.service if item.text and item.kind != "attachment"]
    material = material_text(summaries, rendered[first:], first)
    tokens = attempt.around.count([material])[0] // UNITS_PER_TOKEN
    window = levels(attempt.snapshot.context_window, attempt.policy.compact_at).window
    return SummaryRequest(SYSTEM, prompt, material, tokens, MAX_SUMMARY_TOKENS, first, context_window=window)


def _first_kept(rendered: Sequence[Rendered], units: Sequence[int], drop_tokens: int) -> int:
    """How many of the oldest records are left out so that so many tokens go, by whole rounds."""
    gone, last = 0, max((i for i, item in enumerate(rendered) if item.record.type == "assistant"), default=0)
    for index, item in enumerate(rendered):
        if gone >= drop_tokens * UNITS_PER_TOKEN and (index == 0 or item.record.type == "assistant"):
            return index
        if index >= last:
            return last if drop_tokens else 0
        gone += units[index]
    return 0


def _plan(attempt: Attempt, bodies: Bodies, window: Window, text: str) -> CompactionPlan | Declined:
    newest = _current_request(bodies)
    body = f"{text}\n\n{CURRENT}\n{newest}" if newest and folded(newest) not in folded(text) else text

    def write(units: int) -> str | Declined:
        cost = attempt.around.count([body])[0]
        if cost > units:
            detail = f"it has {cost // UNITS_PER_TOKEN} tokens, {units // UNITS_PER_TOKEN} are allowed"
            return Declined(PATH, "too_large", detail)
        # Where no size was asked for, plan, skills and files that are put back need room beside it, too.
        left = units - cost if attempt.request.target_tokens else (units - cost) // 2
        return _completed(attempt, bodies, body, left)

    assembled = assemble(attempt, window, PATH, write)
    if isinstance(assembled, Declined):
        return assembled
    plan, _ = assembled
    invented = _invented(text, attempt.snapshot, bodies)
    notes = (f"names that never occurred before: {', '.join(invented)}",) if invented else ()
    return replace(plan, warnings=(*plan.warnings, *notes))


def _current_request(bodies: Bodies) -> str:
    """The user's newest words where they leave the context and nothing newer of the user stays."""
    if any(users_words(record) for record in bodies.kept):
        return ""
    return next((words for record in reversed(bodies.leaving) if (words := users_words(record))), "")


def _completed(attempt: Attempt, bodies: Bodies, body: str, units: int) -> str:
    """The summary, and what the extractor finds beside it in the room that is left."""
    if units < FEWEST_ADDED_TOKENS * UNITS_PER_TOKEN:
        return body
    room = units - attempt.around.count([f"\n\n{ADDED}\n\n"])[0]
    known = Material(bodies.leaving, bodies.kept, None, summaries_of(attempt.snapshot), beside=body)
    added = extract(known, room, None, attempt.around.count).render().strip()
    whole = f"{body}\n\n{ADDED}\n\n{added}"
    fits = attempt.around.count([whole])[0] <= attempt.around.count([body])[0] + units
    return whole if added and fits else body


def _invented(text: str, snapshot: Snapshot, bodies: Bodies) -> tuple[str, ...]:
    """Names in a summary that no message, and no earlier summary, holds."""
    names = [name for name, kind in identifiers(text).items() if kind in ("path", "symbol", "hash", "code", "url")]
    if not names:
        return ()
    said = "\n".join(
        [
            *(item.text for item in snapshot.service),
            *(canonical_text(record.body) for record in (*bodies.leaving, *bodies.kept)),
        ]
    )
    return tuple(name for name in names if name not in said)[:SHOWN_NAMES]


def canonical_text(body: bytes) -> str:
    """A stored body as text, its JSON quoting undone where it hides names."""
    return body.decode("utf-8", "replace").replace('\\"', '"').replace("\\\\", "\\").replace("\\/", "/")
