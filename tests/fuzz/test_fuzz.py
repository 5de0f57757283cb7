"""The short form of fuzzing: a few hundred inputs for every target. `make fuzz` runs for minutes."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.targets import PIECES, TARGETS


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_input_raises_what_its_reader_does_not_document(name: str, data: st.DataObject) -> None:
    piece = st.one_of(st.sampled_from(PIECES[name]), st.binary(max_size=6))
    TARGETS[name](b"".join(data.draw(st.lists(piece, max_size=30))))
