"""Records survive the way to JSON and back exactly, in value and in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plantain.journal.rows import from_json, to_json
from plantain.records import (
    Criterion,
    CriterionResult,
    FailureCode,
    Observations,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
real = st.floats(allow_nan=False, allow_infinity=False)
results = st.builds(
    CriterionResult,
    st.none() | st.booleans(),
    st.none() | real,
    st.lists(st.sampled_from(FailureCode)).map(tuple),
    text,
    st.none() | real,
)
observations = st.builds(
    Observations,
    st.permutations(list(Criterion)).flatmap(
        lambda names: st.fixed_dictionaries(dict.fromkeys(names, results))
    ),
    st.dictionaries(st.sampled_from(["has_disease", "other_disease", "artefact"]), st.booleans()),
    st.none() | st.booleans(),
    text,
    text,
)


@given(observations)
def test_observations_round_trip_keeps_order(seen: Observations) -> None:
    back = from_json(Observations, to_json(seen))
    assert back == seen
    assert list(back.criteria) == list(seen.criteria)  # a replayed prompt lists them as the first did
