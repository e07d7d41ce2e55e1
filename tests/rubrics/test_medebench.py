"""The rubric of MedEBench against what reads its scores."""

from __future__ import annotations

from dataclasses import fields

from plantain.models.hosted.scale_replies import DIMENSIONS
from plantain.records import ScaleReport
from plantain.rubrics import MEDEBENCH


def test_its_dimensions_are_those_of_reports_and_replies() -> None:
    names = tuple(dimension.name for dimension in MEDEBENCH.dimensions)
    assert names == DIMENSIONS
    assert set(names) <= {field.name for field in fields(ScaleReport)}
    assert [dimension.short for dimension in MEDEBENCH.dimensions] == ["EA", "CP", "VQ"]


def test_its_marks_span_the_scale_in_order() -> None:
    for dimension in MEDEBENCH.dimensions:
        scores = [score for score, _ in dimension.marks]
        assert scores == sorted(scores)
        assert (scores[0], scores[-1]) == (0, MEDEBENCH.most)
