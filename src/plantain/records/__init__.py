"""The nouns of plantain: frozen records that every room shares. No I/O, standard library only."""

from plantain.records.calls import CallKey, Usage
from plantain.records.card import Figure, Gate, JudgeCard
from plantain.records.destinations import Destination, NotAllowed, Outgoing, Reach
from plantain.records.errors import InputError
from plantain.records.findings import FORBID_UNKNOWN, Differential, Finding, Stroke, Visibility
from plantain.records.images import Consent, Geometry, Licence, SourceImage
from plantain.records.judging import (
    Asked,
    Criterion,
    CriterionResult,
    FailureCode,
    Observations,
    Rating,
    Rubric,
    RubricCriterion,
    Score,
    Verdict,
    unscored,
)
from plantain.records.outcomes import OK, Outcome, OutcomeKind, Step
from plantain.records.prices import FREE, Price
from plantain.records.tasks import (
    BUILD_DIRECTIONS,
    Attempt,
    Direction,
    EditTask,
    TaskKind,
    TaskState,
    derive_seed,
    task_id,
)
from plantain.records.withdrawal import Withdrawal

__all__ = [
    "BUILD_DIRECTIONS",
    "FORBID_UNKNOWN",
    "FREE",
    "OK",
    "Asked",
    "Attempt",
    "CallKey",
    "Consent",
    "Criterion",
    "CriterionResult",
    "Destination",
    "Differential",
    "Direction",
    "EditTask",
    "FailureCode",
    "Figure",
    "Finding",
    "Gate",
    "Geometry",
    "InputError",
    "JudgeCard",
    "Licence",
    "NotAllowed",
    "Observations",
    "Outcome",
    "OutcomeKind",
    "Outgoing",
    "Price",
    "Rating",
    "Reach",
    "Rubric",
    "RubricCriterion",
    "Score",
    "SourceImage",
    "Step",
    "Stroke",
    "TaskKind",
    "TaskState",
    "Usage",
    "Verdict",
    "Visibility",
    "Withdrawal",
    "derive_seed",
    "task_id",
    "unscored",
]
