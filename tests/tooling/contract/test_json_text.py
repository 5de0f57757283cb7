"""Tests of JSON as text: the same as `json.dumps`."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooling.contract.json_text import json_encoder

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(_VALUES)
def test_a_value_is_encoded_as_by_the_standard_library(value: object) -> None:
    assert json_encoder()(value) == json.dumps(value)
    assert json_encoder(ensure_ascii=False)(value) == json.dumps(value, ensure_ascii=False)
    assert json_encoder(sort_keys=True)(value) == json.dumps(value, sort_keys=True)
    compact = json_encoder(ensure_ascii=False, separators=(",", ":"))
    assert compact(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.fixture(params=["with the encoder of CPython", "without it"])
def encode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[object], str]:
    if request.param == "without it":
        monkeypatch.setattr("json.encoder.c_make_encoder", None)
    return json_encoder(ensure_ascii=False)


def test_tuples_are_lists_and_lone_surrogates_stay(encode: Callable[[object], str]) -> None:
    assert encode({"a": (1, "é\ud800")}) == '{"a": [1, "é\ud800"]}'


def test_what_is_not_json_is_refused(encode: Callable[[object], str]) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        encode({"a": object()})
