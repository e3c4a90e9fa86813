"""Lists of messages as they should not be, in the form of each provider: mostly right, and wrong in every way."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ids = st.sampled_from(["a", "b", "c", "a b", "d" * 70])
words = st.sampled_from(["", " ", "hello", "done ", "x" * 30])
odd = st.sampled_from([None, 7, "text", [], {}, {"type": "mystery"}, {"text": "bare"}, ["x"]])
tools = st.sampled_from(["look", "mcp__a__b", "a tool!", ""])


def one_of_mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The usual, and now and then what does not belong there."""
    return st.one_of(usual, usual, usual, usual, odd)


texts = st.builds(lambda text: {"type": "text", "text": text}, words)
images = st.builds(
    lambda kind: {"type": "image", "source": {"type": "base64", "media_type": kind, "data": "QUJD"}},
    st.sampled_from(["image/png", "image/tiff"]),
)
calls = st.builds(
    # A provider's own tools have names of its own; others would be a tool that is newer than its library.
    lambda kind, own, name, given: {
        "type": kind,
        "id": own,
        "name": name if kind == "tool_use" else "web_search",
        "input": given,
    },
    st.sampled_from(["tool_use", "tool_use", "tool_use", "server_tool_use"]),
    ids,
    tools,
    st.sampled_from([{}, {"a": 1}, None, "x"]),
)
results = st.builds(
    lambda kind, own, content, failed: {"type": kind, "tool_use_id": own, "content": content, "is_error": failed},
    st.sampled_from(["tool_result", "tool_result", "tool_result", "web_search_tool_result"]),
    ids,
    st.one_of(words, st.lists(one_of_mostly(texts), max_size=2)),
    st.booleans(),
)
thinking = st.sampled_from(
    [
        {"type": "thinking", "thinking": "hm", "signature": "S"},
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "redacted_thinking", "data": "QUJD"},
    ]
)
blocks = one_of_mostly(st.one_of(texts, calls, results, images, thinking))
anthropic = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant", "user", "assistant", "model", "system"]),
    st.one_of(words, st.lists(blocks, max_size=3), odd),
)

functions = st.builds(
    lambda own, name, given: {"id": own, "type": "function", "function": {"name": name, "arguments": given}},
    ids,
    tools,
    st.sampled_from(["{}", '{"a":1}', "{", {"a": 1}, None]),
)
parts = one_of_mostly(
    st.one_of(texts, st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}))
)
contents = st.one_of(words, st.none(), st.lists(parts, max_size=2), odd)
chat = st.one_of(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["user", "assistant", "system", "model"]),
        contents,
    ),
    st.builds(
        lambda content, calls: {"role": "assistant", "content": content, "tool_calls": calls},
        contents,
        st.lists(one_of_mostly(functions), max_size=3),
    ),
    st.builds(lambda own, content: {"role": "tool", "tool_call_id": own, "content": content}, ids, contents),
    st.just({"role": "user", "content": "hi", "name": "a b"}),
)

in_parts = one_of_mostly(
    st.sampled_from(
        [
            {"type": "input_text", "text": "hi"},
            {"type": "output_text", "text": "ho"},
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
        ]
    )
)
items = st.one_of(
    st.builds(
        lambda role, content: {"type": "message", "role": role, "content": content},
        st.sampled_from(["user", "assistant", "developer", "tool"]),
        st.one_of(words, st.lists(in_parts, max_size=2), odd),
    ),
    st.builds(
        lambda own, name, given: {"type": "function_call", "call_id": own, "name": name, "arguments": given},
        ids,
        tools,
        st.sampled_from(["{}", {"a": 1}, None]),
    ),
    st.builds(
        lambda own, output: {"type": "function_call_output", "call_id": own, "output": output},
        ids,
        st.one_of(words, odd),
    ),
    st.builds(lambda own: {"type": "reasoning", "id": own, "summary": []}, st.sampled_from(["rs_1", "rs_2", "x"])),
    st.builds(
        lambda own, call: {"type": "custom_tool_call", "id": own, "call_id": call, "name": "patch", "input": "x"},
        st.sampled_from(["ctc_1", "fc_1"]),
        ids,
    ),
    st.builds(lambda own: {"type": "shell_call", "call_id": own, "action": {"commands": ["ls"]}}, ids),
)

gemini_parts = one_of_mostly(
    st.one_of(
        st.builds(lambda text: {"text": text}, words),
        st.builds(
            lambda name, args, own: {"functionCall": {"name": name, "args": args, **({"id": own} if own else {})}},
            tools,
            st.sampled_from([{}, {"a": 1}, None, [1]]),
            st.sampled_from(["", "", "1", "2"]),
        ),
        st.builds(
            lambda name, given, own: {
                "functionResponse": {"name": name, "response": given, **({"id": own} if own else {})}
            },
            tools,
            st.sampled_from([{"output": "x"}, "x", None]),
            st.sampled_from(["", "", "1", "2"]),
        ),
        st.just({"inlineData": {"mimeType": "image/png", "data": "QUJD"}}),
    )
)
gemini = st.builds(
    lambda role, parts: {"role": role, "parts": parts},
    st.sampled_from(["user", "model", "user", "model", "function", "tool"]),
    st.one_of(st.lists(gemini_parts, max_size=3), odd),
)
LISTS = {
    name: st.lists(one_of_mostly(message), max_size=8)
    for name, message in {
        "anthropic": anthropic,
        "openai-chat": chat,
        "openai-responses": items,
        "gemini": gemini,
    }.items()
}
