"""Validating messages by a provider's rules: a list that is given, or a session's live context. Nothing is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from anyio import to_thread

from mcp_compact.compaction.request import Surroundings
from mcp_compact.errors import CallerError
from mcp_compact.messages.blocks import OBJECT
from mcp_compact.messages.codec import canonical, clean
from mcp_compact.messages.valid import valid_turns
from mcp_compact.ports.store import SessionKey
from mcp_compact.service.deps import Deps
from mcp_compact.service.paging import page, pieces
from mcp_compact.service.reading import load_live, place_in
from mcp_compact.transcripts.outs import OUTS, origin_of
from mcp_compact.transcripts.registry import sniff
from mcp_compact.transcripts.validity.providers import ANTHROPIC, provider_of, repaired
from mcp_compact.transcripts.validity.rules import DEPENDS, OPEN, REFUSED, Change, Finding
from mcp_compact.transcripts.whole_answers import whole_turns

LISTS = ("messages", "contents", "input")
"""Where a request holds its messages."""
VALID, REPAIRED = "valid", "repaired"
HEAD_BYTES, HEAD_MESSAGES = 1 << 20, 200


@dataclass(frozen=True, slots=True)
class Validation:
    """What a provider would refuse in a list, or might, and what a repair changed."""

    provider: str
    status: str
    """`valid`, `refused`, or `repaired`."""
    checked: int
    """Messages."""
    refused: int
    depends: int
    """What some models or settings would have refused."""
    open_calls: int
    findings: tuple[Finding, ...] = ()
    changes: tuple[Change, ...] = ()
    messages: tuple[Any, ...] = ()
    """The repaired list, or a page of it."""
    next_cursor: str = ""
    warnings: tuple[str, ...] = ()


def validation(provider_name: str, messages: Sequence[Any], *, repair: bool = False) -> Validation:
    """Check a list; with `repair` also make one that its provider takes. Raises CallerError `unknown_provider`."""
    provider = provider_of(provider_name)
    found = tuple(provider.check(messages))
    refused, depends, open_calls = (sum(f.severity == kind for f in found) for kind in (REFUSED, DEPENDS, OPEN))
    status = REFUSED if refused else VALID
    plain = Validation(provider.name, status, len(messages), refused, depends, open_calls, found)
    if not repair:
        return plain
    done = repaired(provider.name, messages)
    left = [finding for finding in done.left if finding.severity == REFUSED]
    return replace(
        plain,
        status=REFUSED if left else REPAIRED if done.changes else VALID,
        changes=done.changes,
        messages=tuple(done.messages),
        warnings=tuple(f"{finding.path}: {finding.text}; no repair can mend that" for finding in left),
    )


def listed(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """The messages of a list, or of a request that holds one. Raises CallerError `bad_messages`."""
    if isinstance(value, OBJECT):
        key = next((key for key in LISTS if key in value), None)
        value = [value] if key is None and ("role" in value or "type" in value) else value.get(key) if key else value
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise CallerError(
            "bad_messages",
            "This holds no list of messages.",
            "Pass a list, or a request with messages, contents or input.",
        )
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise CallerError(
            "bad_messages", "The list holds what JSON cannot carry.", "Send no NaN, no infinity, no endless nesting."
        ) from None
    return value


def provider_told(messages: Sequence[Any], file: bytes = b"") -> str:
    """The provider whose messages these look like, by the `file` that they come from where there is one.

    Raises CallerError `unknown_provider` for another format.
    """
    head = (file or canonical(clean(list(messages[:HEAD_MESSAGES]))))[:HEAD_BYTES]
    name = sniff(head) or ANTHROPIC
    if name not in OUTS or not OUTS[name].provider:
        raise CallerError(
            "unknown_provider",
            f"This looks like the format {name}, which no provider takes.",
            "`mcp-compact compact FILE --format responses -o OUT` (or anthropic, openai, gemini) writes a list; "
            "of a session in the archive, `mcp-compact export SESSION --format F`. Or say by whose rules this is one: "
            "anthropic, openai-chat, openai-responses, gemini.",
        )
    return OUTS[name].provider


async def validate(deps: Deps, messages: Any, provider: str, *, repair: bool, cursor: str) -> Validation:  # noqa: ANN401
    """Check a list that is given; a page of the repaired one."""
    items = listed(messages)
    name = provider or provider_told(items)
    done = await to_thread.run_sync(partial(validation, name, items, repair=repair))
    return await _page(deps, done, cursor)


async def validate_context(deps: Deps, key: SessionKey, provider: str, *, repair: bool, cursor: str) -> Validation:
    """Check a session's live context as it stands; what an agent is given of it is mended already.

    Raises CallerError `unknown_session`.
    """
    name = provider_of(provider or ANTHROPIC).name
    out = next(out for out in OUTS.values() if out.provider == name)
    await deps.row(key)
    live, _ = await load_live(deps, key)

    def work() -> tuple[Validation, list[str]]:
        turns, repairs = valid_turns(whole_turns(live, Surroundings(session_id=key.session_id)))
        return validation(name, out.encode(turns, origin_of(live)), repair=repair), repairs

    done, repairs = await to_thread.run_sync(work)
    shown = await _page(deps, done, cursor)
    return replace(shown, warnings=(*repairs, *shown.warnings))


async def _page(deps: Deps, done: Validation, cursor: str) -> Validation:
    """The repaired list cut to a page."""
    start = place_in(cursor, REPAIRED)
    if not done.messages:
        return done
    limit = deps.settings.page_tokens
    objects = [item if isinstance(item, Mapping) else {"value": item} for item in done.messages]
    taken, following = await to_thread.run_sync(lambda: page(list(pieces(objects, limit)), start, limit))
    more = f"{REPAIRED}:{following}" if following is not None else ""
    return replace(done, messages=tuple(taken), next_cursor=more)
