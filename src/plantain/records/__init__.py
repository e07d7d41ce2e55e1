"""The frozen records that every package shares. No I/O, standard library only."""

from plantain.records.card import Figure, Gate, JudgeCard
from plantain.records.destinations import Destination, NotAllowed, Outgoing, Reach
from plantain.records.errors import InputError
from plantain.records.findings import FORBID_UNKNOWN, Differential, Finding, Stroke, Visibility
from plantain.records.images import Consent, Geometry, Licence, SourceImage, Withdrawal
from plantain.records.judging import (
    Asked,
    Criterion,
    CriterionResult,
    FailureCode,
    Observations,
    Rubric,
    RubricCriterion,
    Score,
    Verdict,
    unscored,
)
from plantain.records.outcomes import OK, CallKey, Outcome, OutcomeKind, Step
from plantain.records.prices import FREE, Price, Usage
from plantain.records.tasks import (
    BUILD_DIRECTIONS,
    Attempt,
    Direction,
    EditTask,
    TaskKind,
    TaskState,
    derive_seed,
    state_after,
    task_id,
)

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
    "state_after",
    "task_id",
    "unscored",
]
