"""What a judge says of an edit, what follows from it, and other numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Criterion(StrEnum):
    """The four criteria of Med-Banana-50K, 4.1."""

    INSTRUCTION_COMPLIANCE = "instruction_compliance"
    STRUCTURAL_PLAUSIBILITY = "structural_plausibility"
    REALISM = "realism"
    FIDELITY_PRESERVATION = "fidelity_preservation"


@dataclass(frozen=True, slots=True)
class RubricCriterion:
    """One criterion: its weight in the score and the question that it asks."""

    name: Criterion
    weight: float
    question: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """A named, versioned set of criteria whose weights sum to 1."""

    name: str
    version: int
    criteria: tuple[RubricCriterion, ...]

    def __post_init__(self) -> None:
        total = sum(criterion.weight for criterion in self.criteria)
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"rubric {self.name}: weights sum to {total:g}, not 1")


class FailureCode(StrEnum):
    """Why a criterion failed, coded (Med-Banana-50K, Table 2)."""

    TOO_SUBTLE = "too_subtle"
    OVERCORRECTED = "overcorrected"
    WRONG_LOCATION = "wrong_location"
    DISTORTION = "distortion"
    NON_TARGET_FINDING = "non_target_finding"
    BLENDING_ARTEFACT = "blending_artefact"
    REPETITION = "repetition"
    HARD_EDGE = "hard_edge"
    LOST_GRAIN = "lost_grain"
    EXCESS_CHANGE = "excess_change"


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """One criterion as a judge observed it."""

    passed: bool
    confidence: float | None = None
    codes: tuple[FailureCode, ...] = ()
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class Observations:
    """What a judge reports of one edit; it does not decide.

    Attributes:
        criteria: every criterion of the rubric, by its name.
        has_disease: the target finding is visible in the edited image (right for `add`, wrong for `remove`).
        other_disease: a finding other than the target appeared.
        opinion: the judge's own overall yes or no, where it gave one.
        reason: free text, with evidence.
    """

    criteria: dict[Criterion, CriterionResult]
    has_disease: bool
    other_disease: bool
    opinion: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Observations and what each policy makes of them; `qualified` is the run's own policy's."""

    judge: str
    observations: Observations
    qualified_all_pass: bool
    qualified_weighted: bool
    score: float
    qualified: bool


@dataclass(frozen=True, slots=True)
class Score:
    """A measured number, or the reason why there is none. Unscored is never 0 and never -1."""

    value: float | None
    reason: str = ""

    @property
    def scored(self) -> bool:
        return self.value is not None


def unscored(reason: str) -> Score:
    """A score without a value, and why."""
    return Score(None, reason)


@dataclass(frozen=True, slots=True)
class ScaleReport:
    """What a judge says of one output on MedEBench's scales.

    Attributes:
        editing_accuracy, context_preservation, visual_quality: 0 to 10, or unscored with the reason.
        differences: the differences that the judge described before it scored.
        reason: free text, with evidence.
    """

    editing_accuracy: Score
    context_preservation: Score
    visual_quality: Score
    differences: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rating:
    """What one person said about one attempt."""

    rater: str
    task_id: str
    generation: int
    round: int
    dimension: str
    value: float
    at: str = ""
    note: str = ""
