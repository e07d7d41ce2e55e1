"""Rubrics as data, and the policies that turn observations into a decision."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plantain.records import Rubric
from plantain.rubrics.loading import as_text, digest_of, read_rubric, rubric_named, rubric_of
from plantain.rubrics.policies import POLICIES, decide, majority

MED_BANANA = read_rubric(Path(__file__).with_name("med_banana.toml"))
MED_BANANA_PUBLISHED = read_rubric(Path(__file__).with_name("med_banana_published.toml"))
MEDEBENCH = read_rubric(Path(__file__).with_name("medebench.toml"))
EDITSCORE = read_rubric(Path(__file__).with_name("editscore.toml"))
EDITREWARD = read_rubric(Path(__file__).with_name("editreward.toml"))
OURS = (MED_BANANA, MED_BANANA_PUBLISHED, MEDEBENCH, EDITSCORE, EDITREWARD)


def identity_of(rubric: Rubric) -> list[str | int]:
    """Return what identifies a rubric in a request: ours by name and version, any other by its content too."""
    known: list[str | int] = [rubric.name, rubric.version]
    return known if rubric in OURS else [*known, digest_of(rubric)]


def frozen(rubric: Rubric) -> dict[str, str]:
    """Return a rubric as a run stores it."""
    return {"name": rubric.name, "sha256": digest_of(rubric), "text": as_text(rubric)}


def recorded(frozen: Mapping[str, Any]) -> Rubric:
    """Return the rubric that a run has stored; Med-Banana's for an import without one."""
    return rubric_of(frozen["rubric"]["text"]) if "rubric" in frozen else MED_BANANA


__all__ = [
    "EDITREWARD",
    "EDITSCORE",
    "MEDEBENCH",
    "MED_BANANA",
    "MED_BANANA_PUBLISHED",
    "POLICIES",
    "as_text",
    "decide",
    "digest_of",
    "frozen",
    "identity_of",
    "majority",
    "read_rubric",
    "recorded",
    "rubric_named",
    "rubric_of",
]
