"""One measurement against its threshold, and the criterion that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.records import Criterion, FailureCode

COMPLIANCE = Criterion.INSTRUCTION_COMPLIANCE
PLAUSIBILITY = Criterion.STRUCTURAL_PLAUSIBILITY
REALISM = Criterion.REALISM
FIDELITY = Criterion.FIDELITY_PRESERVATION


@dataclass(frozen=True, slots=True)
class Check:
    """One measurement against its threshold.

    Attributes:
        criterion: which criterion it belongs to.
        passed: whether it holds; None where what was measured cannot tell.
        margin: distance from the threshold relative to it, cut at 1.
        text: the measurement in words and numbers.
        code: why it failed.
    """

    criterion: Criterion
    passed: bool | None
    margin: float
    text: str
    code: FailureCode


def at_least(criterion: Criterion, value: float, threshold: float, text: str, code: FailureCode) -> Check:
    scale = max(abs(threshold), 1e-6)
    return Check(criterion, value >= threshold, min(1.0, abs(value - threshold) / scale), text, code)


def at_most(criterion: Criterion, value: float, threshold: float, text: str, code: FailureCode) -> Check:
    scale = max(abs(threshold), 1e-6)
    return Check(criterion, value <= threshold, min(1.0, abs(value - threshold) / scale), text, code)
