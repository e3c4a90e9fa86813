from __future__ import annotations

import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages.json_writer import writer

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(VALUES, st.sampled_from(["c_make_encoder", "no_such_encoder"]))
def test_a_value_is_written_as_python_writes_it(value: object, made_by: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if made_by != "c_make_encoder":
            patch.setattr(json.encoder, "c_make_encoder", None)
        write = writer(default=str)
        assert write(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def test_what_is_no_json_is_refused() -> None:
    write = writer(allow_nan=False)
    with pytest.raises(ValueError, match="Out of range float values"):
        write(float("nan"))
    with pytest.raises(TypeError):
        write(date(2026, 1, 1))
