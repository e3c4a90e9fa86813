"""Conversations as agents have them, for laws: parallel calls, thinking, media, scripts of all kinds, an open end."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from mcp_compact.messages.live import LiveContext, live_context
from mcp_compact.testing import Talk, image, tool_result

WORDS = (
    "look at src/app.py line 12, value 4711. ",
    "ошибка 500 в модуле; ",
    "请把这个函数改成异步的。",
    "def f(): return {'a': 1}\n",
    "\\\"'\t",
)
RULES = (
    "Never touch the file legacy.py.",
    "Always use tabs in src/app.py.",
    "必须使用中文注释。",
    "Please answer in German.",
)
TOOLS = ("Read", "Bash", "Edit", "mcp__memory__load")

texts = st.builds(lambda word, times: word * times, st.sampled_from(WORDS), st.integers(1, 60))
large_texts = st.builds(lambda word, times: word * times, st.sampled_from(WORDS), st.sampled_from([1, 20, 400]))
asks = st.one_of(texts, st.builds("{} {}".format, texts, st.sampled_from(RULES)), st.sampled_from(RULES))


@st.composite
def talks(draw: st.DrawFn, least: int = 0, most: int = 10, *, open_end: bool = True) -> Talk:
    """A talk that begins with the user's words; every call is answered but perhaps those of the last answer."""
    talk = Talk()
    talk.user(draw(asks))
    for _ in range(draw(st.integers(least, most))):
        step = draw(st.sampled_from([_ask, _answer, _work, _work, _search, _picture]))
        step(draw, talk)
    if open_end and draw(st.booleans()):
        talk.call("open1", "open2", message_id="m-open")
        if draw(st.booleans()):
            talk.results("open2", text=draw(texts))
    return talk


def live(talk: Talk) -> LiveContext:
    """The live context of a talk without markers."""
    return live_context(talk.records, [])


def _ask(draw: st.DrawFn, talk: Talk) -> None:
    talk.user(draw(asks))


def _answer(draw: st.DrawFn, talk: Talk) -> None:
    name = f"m{len(talk.records)}"
    if draw(st.booleans()):
        thinking = draw(
            st.sampled_from(
                [
                    {"type": "thinking", "thinking": "hm", "signature": "S"},
                    {"type": "redacted_thinking", "data": "QUJD"},
                ]
            )
        )
        talk.add("assistant", [thinking], message_id=name)
    talk.assistant(draw(texts), message_id=name)


def _work(draw: st.DrawFn, talk: Talk) -> None:
    """One to three parallel calls, each a record of its own, their results in any order."""
    first = len(talk.records)
    ids = [f"t{first}-{i}" for i in range(draw(st.integers(1, 3)))]
    for call in ids:
        talk.call(call, name=draw(st.sampled_from(TOOLS)), message_id=f"m{first}")
    for call in draw(st.permutations(ids)):
        content: Any = draw(large_texts)
        if draw(st.integers(0, 5)) == 0:
            content = [{"type": "text", "text": content}, image(draw(st.sampled_from([1, 28, 3000])))]
        talk.add("user", [{**tool_result(call, "", is_error=draw(st.booleans())), "content": content}])


def _search(draw: st.DrawFn, talk: Talk) -> None:
    """A search that the provider answers inside the answer itself."""
    call = f"s{len(talk.records)}"
    talk.add("assistant", [
        {"type": "server_tool_use", "id": call, "name": "web_search", "input": {"query": draw(texts)}},
        {"type": "web_search_tool_result", "tool_use_id": call, "content": []},
        {"type": "text", "text": "found"},
    ])  # fmt: skip


def _picture(draw: st.DrawFn, talk: Talk) -> None:
    talk.add("user", [{"type": "text", "text": "see"}, image(draw(st.sampled_from([None, 28, 3000])))])
