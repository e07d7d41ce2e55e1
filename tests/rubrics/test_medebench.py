"""The rubric of MedEBench against what reads its scores."""

from __future__ import annotations

from plantain.models.hosted.reports import LABELS
from plantain.rubrics import MEDEBENCH


def test_its_dimensions_are_those_of_reports_and_replies() -> None:
    names = tuple(dimension.name for dimension in MEDEBENCH.criteria)
    assert names == tuple(LABELS)
    assert [criterion.short for criterion in MEDEBENCH.criteria] == ["EA", "CP", "VQ"]


def test_its_marks_span_the_scale_in_order() -> None:
    for dimension in MEDEBENCH.criteria:
        scores = [score for score, _ in dimension.marks]
        assert scores == sorted(scores)
        assert (scores[0], scores[-1]) == dimension.scale
