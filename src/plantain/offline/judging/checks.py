"""One measurement against its thresholds, and the criterion that it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plantain.records import CriterionResult, FailureCode


@dataclass(frozen=True, slots=True)
class Check:
    """The comparison of one measurement with its thresholds.

    Attributes:
        passed: True or False; None if the measurement is between the thresholds.
        margin: relative distance from the deciding threshold, at most 1.
        text: the measurement in words and numbers.
        code: the reason if it failed.
    """

    passed: bool | None
    margin: float
    text: str
    code: FailureCode


def at_least(value: float, passes: float, fails: float, text: str, code: FailureCode) -> Check:
    """Return a check that passes from `passes` upwards and fails below `fails`; undecided in between.

    `text` describes the measurement, and `code` is the reason of a failure.
    """
    passed = True if value >= passes else (False if value < fails else None)
    line = passes if passed else fails
    return Check(passed, min(1.0, abs(value - line) / max(abs(line), 1e-6)), text, code)


def at_most(value: float, passes: float, fails: float, text: str, code: FailureCode) -> Check:
    """Return a check that passes up to `passes` and fails above `fails`; undecided in between; else as `at_least`."""
    passed = True if value <= passes else (False if value > fails else None)
    line = passes if passed else fails
    return Check(passed, min(1.0, abs(value - line) / max(abs(line), 1e-6)), text, code)


def result_of(checks: Sequence[Check]) -> CriterionResult:
    """Combine checks to a criterion's result: failed if one fails, else undecided if one is, else passed.

    The confidence is the margin of the deciding check: 0.5 on its threshold, 1 far from it. It is not a probability.
    """
    failed = [check for check in checks if check.passed is False]
    if failed:
        codes = tuple(dict.fromkeys(check.code for check in failed))
        return CriterionResult(False, _confidence(max(c.margin for c in failed)), codes, _text(failed))
    undecided = [check for check in checks if check.passed is None]
    if undecided:
        return CriterionResult(None, None, (), f"cannot tell: {_text(undecided)}")
    return CriterionResult(True, _confidence(min((c.margin for c in checks), default=0.0)), (), _text(checks))


def _confidence(margin: float) -> float:
    return round(0.5 + 0.5 * margin, 3)


def _text(checks: Sequence[Check]) -> str:
    return "; ".join(check.text for check in checks)
