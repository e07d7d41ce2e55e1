"""Records survive the way to JSON and back exactly, in value and in order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plantain.journal import payload
from plantain.records import (
    Consent,
    Criterion,
    CriterionResult,
    FailureCode,
    Geometry,
    Licence,
    Observations,
    SourceImage,
    Usage,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
whole = st.integers(0, 2**40)
real = st.floats(allow_nan=False, allow_infinity=False)
counts = st.none() | whole
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
geometries = st.builds(Geometry, whole, whole, text, whole, whole, whole, whole)
images = st.builds(
    SourceImage,
    text,
    text,
    text,
    st.lists(text).map(tuple),
    st.sampled_from(Licence),
    text,
    text,
    geometries,
    group=st.none() | text,
    frame=whole,
    view=text,
    spacing_mm=st.none() | real,
    text_checked=st.booleans(),
    synthetic=st.booleans(),
    consent=st.none() | st.builds(Consent, text, text),
    note=text,
)
usages = st.builds(Usage, text, counts, counts, counts, counts, counts, counts, counts, text, text, text)


@given(images)
def test_image_round_trip(image: SourceImage) -> None:
    assert payload.from_json(SourceImage, payload.to_json(image)) == image


@given(usages)
def test_usage_round_trip(usage: Usage) -> None:
    assert payload.from_json(Usage, payload.to_json(usage)) == usage


@given(observations)
def test_observations_round_trip_keeps_order(seen: Observations) -> None:
    back = payload.from_json(Observations, payload.to_json(seen))
    assert back == seen
    assert list(back.criteria) == list(seen.criteria)  # a replayed prompt lists them as the first did


def test_lone_surrogate_becomes_a_question_mark() -> None:
    # json.loads('"\\ud83d"') gives one; UTF-8, SQLite and orjson all refuse it.
    usage = Usage(thought_summary="half of \ud83d an emoji", finish_reason="é")
    back = payload.from_json(Usage, payload.to_json(usage))
    assert back.thought_summary == "half of ? an emoji"
    assert back.finish_reason == "é"
    assert payload.clean_text("é\ud83d") == "é?"


def test_dict_from_json_refuses_a_list() -> None:
    with pytest.raises(ValueError, match="JSON object"):
        payload.dict_from_json("[1]")
