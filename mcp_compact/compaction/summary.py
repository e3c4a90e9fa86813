"""Compaction by a written summary: somebody else writes it; it is checked, and what it lost is added."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcp_compact.compaction.answers import Refused, usable_text
from mcp_compact.compaction.assembly import assemble, hopeless
from mcp_compact.compaction.attempt import FEWEST_MEMORY_TOKENS, Attempt, NeedsRecords, Window, target_of
from mcp_compact.compaction.condense import condensed
from mcp_compact.compaction.cuts import calculate_messages_to_keep_index, open_call_index
from mcp_compact.compaction.extract import Material, extract
from mcp_compact.compaction.findings import found
from mcp_compact.compaction.identifiers import CODE, FLAG, HASH, SYMBOL, URL, identifiers, stands_alone
from mcp_compact.compaction.identifiers import PATH as PATH_NAME
from mcp_compact.compaction.material import material_text
from mcp_compact.compaction.plan import CompactionPlan, Declined
from mcp_compact.compaction.policy import UNKNOWN_WINDOW, levels, tail_limits
from mcp_compact.compaction.prompts import SYSTEM, summary_prompt
from mcp_compact.compaction.request import Bodies
from mcp_compact.compaction.restore import folded
from mcp_compact.compaction.session_memory import summaries_of
from mcp_compact.compaction.snapshot import Snapshot
from mcp_compact.compaction.summary_material import fitted
from mcp_compact.compaction.tail import fitted_tail, gone_results
from mcp_compact.messages.ids import ToolUseId
from mcp_compact.messages.weights import UNITS_PER_TOKEN, Weight
from mcp_compact.messages.words import users_words

PATH = "summary"
MAX_SUMMARY_TOKENS = 12_000
"""What a writer may write; fixed, whatever the length of the material."""
FEWEST_ADDED_TOKENS = 80
SHOWN_NAMES = 10
SUMMARY_SHARE = 0.04
"""Of the room before the tail, where a target was asked for: so much of a longer summary stands as it was written.
Its other lines compete with the session's own, which hold more of what is needed in the same room."""
FEWEST_QUOTED = 12
"""Characters of a line that is looked for in the user's words."""
QUOTES = " \t-*+>\"'“”„»«`_"
NAMES = frozenset((PATH_NAME, SYMBOL, HASH, CODE, URL, FLAG))
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
    if attempt.answer is None:
        return _request(attempt, bodies)
    text = usable_text(attempt.answer, prompt_of(attempt))
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


def prompt_of(attempt: Attempt) -> str:
    """What whoever writes is asked."""
    return summary_prompt(attempt.request.custom_instructions, attempt.request.must_keep)


def beside_material(attempt: Attempt) -> int:
    """Tokens that a writer needs beside the material: for what it is asked and for what it writes."""
    units = sum(attempt.around.count([SYSTEM, prompt_of(attempt)]))
    return MAX_SUMMARY_TOKENS + attempt.snapshot.family.tokens(Weight(units=units))


def _request(attempt: Attempt, bodies: Bodies) -> SummaryRequest:
    count, snapshot = attempt.around.count, attempt.snapshot
    # What is put back is not summarised: skills, and what an earlier compaction put back.
    apart = found(bodies.leaving).skill_seqs
    leaving = [record for record in bodies.leaving if record.seq not in apart]
    summaries = [item.text for item in snapshot.service if item.text and item.kind != "attachment"]
    window = levels(snapshot.context_window, attempt.policy.compact_at).window
    room = snapshot.family.units(_room(attempt, window)) - count([material_text(summaries, (), 0)])[0]
    shown = fitted(leaving, attempt.policy.micro, room, attempt.drop_tokens * UNITS_PER_TOKEN, count)
    material = material_text(summaries, shown.rendered, shown.dropped)
    tokens, prompt = count([material])[0] // UNITS_PER_TOKEN, prompt_of(attempt)
    return SummaryRequest(SYSTEM, prompt, material, tokens, MAX_SUMMARY_TOKENS, shown.dropped, context_window=window)


def _room(attempt: Attempt, window: int) -> int:
    """Tokens for the material. A model's own window is not known: it is taken to be as large as the session's."""
    if attempt.room_tokens is not None:
        return attempt.room_tokens
    return max(window - beside_material(attempt), window // 2)


def _plan(attempt: Attempt, bodies: Bodies, window: Window, text: str) -> CompactionPlan | Declined:
    completion = _Completion(
        attempt,
        bodies,
        gone_results(attempt, window, fitted_tail(attempt, window)),
        said=_said(attempt.snapshot, bodies),
        told=folded("\n".join(filter(None, map(users_words, bodies.leaving)))),
    )
    newest = _current_request(bodies)
    current = f"\n\n{CURRENT}\n{newest}" if newest and folded(newest) not in folded(text) else ""

    def write(units: int) -> str | Declined:
        cost = attempt.around.count([text + current])[0]
        if cost > units:
            detail = f"it has {cost // UNITS_PER_TOKEN} tokens, {units // UNITS_PER_TOKEN} are allowed"
            return Declined(PATH, "too_large", detail)
        if attempt.request.target_tokens is None:
            # Plan, skills and files that are put back need room beside it, too.
            return completion.of(text + current, "", (units - cost) // 2)
        # A target that was asked for is a limit that the summary and what completes it share.
        shown = completion.shortened(text, int(units * SUMMARY_SHARE))
        cost = attempt.around.count([shown + current])[0]
        return completion.of(shown + current, "" if shown == text else text, units - cost)

    assembled = assemble(attempt, window, PATH, write)
    if isinstance(assembled, Declined):
        return assembled
    plan, _ = assembled
    invented = _unknown(text, completion.said)[:SHOWN_NAMES]
    notes = (f"names that never occurred before: {', '.join(invented)}",) if invented else ()
    return replace(plan, warnings=(*plan.warnings, *notes))


def _current_request(bodies: Bodies) -> str:
    """The user's newest words where they leave the context and nothing newer of the user stays."""
    if any(users_words(record) for record in bodies.kept):
        return ""
    return next((words for record in reversed(bodies.leaving) if (words := users_words(record))), "")


@dataclass(frozen=True, slots=True)
class _Completion:
    """What a written summary is shortened and completed by."""

    attempt: Attempt
    bodies: Bodies
    gone: frozenset[ToolUseId]
    """Calls of the tail whose results are not shown."""
    said: str
    """All messages and earlier summaries."""
    told: str
    """The user's words that leave, folded."""

    def shortened(self, text: str, units: int) -> str:
        """The summary, or so many units of it."""
        return condensed(text, units, self._need_not_stay, self.attempt.around.count)

    def of(self, body: str, whole: str, units: int) -> str:
        """The summary, and what the extractor finds beside it in the room that is left.

        Of a summary that was shortened (`whole`: as it was) the other lines are among what it chooses from.
        """
        if units < FEWEST_ADDED_TOKENS * UNITS_PER_TOKEN:
            return body
        count = self.attempt.around.count
        shown = set(body.splitlines())
        others = "\n".join(own for own in whole.splitlines() if own not in shown and not self._need_not_stay(own))
        summaries = (*summaries_of(self.attempt.snapshot), *filter(None, [others]))
        known = Material(self.bodies.leaving, self.bodies.kept, None, summaries, self.gone, beside=body)
        room = units - count([f"\n\n{ADDED}\n\n"])[0]
        added = extract(known, room, None, count).render().strip()
        completed = f"{body}\n\n{ADDED}\n\n{added}"
        fits = count([completed])[0] <= count([body])[0] + units
        return completed if added and fits else body

    def _need_not_stay(self, line: str) -> bool:
        """Do the user's own words, which stand beside it, say it, or does it hold a name that never occurred?"""
        own = folded(line).strip(QUOTES)
        return (len(own) >= FEWEST_QUOTED and own in self.told) or bool(_unknown(line, self.said))


def _unknown(text: str, said: str) -> tuple[str, ...]:
    """Names in a text that stand nowhere in what was said; a part of a longer name is no such name."""
    names = (name for name, kind in identifiers(text).items() if kind in NAMES)
    return tuple(name for name in names if not stands_alone(said, name))


def _said(snapshot: Snapshot, bodies: Bodies) -> str:
    records = (*bodies.leaving, *bodies.kept)
    return "\n".join([*(item.text for item in snapshot.service), *(canonical_text(r.body) for r in records)])


def canonical_text(body: bytes) -> str:
    """A stored body as text, its JSON quoting undone where it hides names."""
    return body.decode("utf-8", "replace").replace('\\"', '"').replace("\\\\", "\\").replace("\\/", "/")
