"""The rubric of MedEBench: three dimensions, each scored from 0 to 10."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of a scale rubric.

    Attributes:
        name: as judges write it and as it is read back.
        short: its abbreviation in tables and in the names of stored scores.
        question: what it asks.
        marks: what some scores stand for, from none of it to all of it.
    """

    name: str
    short: str
    question: str
    marks: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class ScaleRubric:
    """A named, versioned set of dimensions that are scored from 0 to `most`."""

    name: str
    version: int
    most: int
    dimensions: tuple[Dimension, ...]


MEDEBENCH = ScaleRubric(
    name="medebench",
    version=1,
    most=10,
    dimensions=(
        Dimension(
            "editing_accuracy",
            "EA",
            "Do the differences that you described amount to what was asked for: all of it, at the right place, and "
            "nothing in its stead?",
            (
                (0, "nothing of it was done, or the opposite was"),
                (5, "about half of it is there, or the right change at a doubtful place"),
                (10, "all of it, as a specialist would expect it"),
            ),
        ),
        Dimension(
            "context_preservation",
            "CP",
            "Is everything that was not asked for as it was before: anatomy, framing, colours, markers, background?",
            (
                (0, "this is another picture"),
                (5, "the same subject, with changes that anyone would notice"),
                (10, "nothing but the change that was asked for is different"),
            ),
        ),
        Dimension(
            "visual_quality",
            "VQ",
            "Would the second picture pass for a real one: sharp, without seams, smears, patterns or impossible parts?",
            (
                (0, "broken or blank"),
                (5, "plainly edited, but what it shows can be made out"),
                (10, "as good as a real picture of its kind"),
            ),
        ),
    ),
)
"""MedEBench, 2.2 and appendix H: editing accuracy, contextual preservation, visual quality. The wording is ours."""
