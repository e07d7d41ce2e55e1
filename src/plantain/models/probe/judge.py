"""A probe as a judge: did the finding asked for become likely, or unlikely, and did the others stay as they were?"""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from plantain.engines.contract import remote_engine
from plantain.models.probe.folder import Probe
from plantain.models.probe.frame import framed
from plantain.models.remote import on_worker
from plantain.pixels.decode import BadImage, decode
from plantain.records import (
    Criterion,
    CriterionResult,
    Direction,
    FailureCode,
    Finding,
    InputError,
    Observations,
    Outcome,
    OutcomeKind,
    Rubric,
    Usage,
)
from plantain.roles import JudgeRequest, Reply, failed

Logits = npt.NDArray[np.float64]


class ProbeJudge:
    """`probe/FOLDER`: instruction compliance and fidelity by the probability of each finding before and after.

    It leaves out the criteria that it cannot see (plausibility, realism), so beside others on a panel it votes only on
    the two; alone it qualifies nothing.

    Raises:
        InputError: the probe's card does not pass.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._probe = Probe.open(folder)
        if why := self._probe.why_not:
            more = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
            raise InputError(
                f"models.judge: {name}: its card does not pass, so it judges nothing: {why[0]}{more}; see "
                f"{folder / 'probe.html'}"
            )

    @property
    def fingerprint(self) -> str:
        return f"probe {self._probe.digest[:16]}"

    def fingerprint_by(self, rubric: Rubric) -> str:
        """Its digest. Raises InputError for a rubric in which it can see nothing."""
        seen = {Criterion.INSTRUCTION_COMPLIANCE, Criterion.FIDELITY_PRESERVATION}
        if not any(c.name in seen and c.scale is None for c in rubric.criteria):
            raise InputError(
                f"models.judge: {self.name} cannot judge by the rubric {rubric.name!r}: it sees "
                f"{' and '.join(sorted(seen))}, which pass or fail, and nothing else"
            )
        return self.fingerprint

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        """Probabilities before and after; all unscored for findings and modalities that it was not trained for."""
        card, finding = self._probe.card, request.finding
        if finding is None or finding.name not in card.findings or request.image.modality != card.modality:
            asked = "no finding" if finding is None else f"{finding.name} of {request.image.modality}"
            reason = f"the probe tells {', '.join(card.findings)} of {card.modality}, not {asked}"
            unseen = CriterionResult(None, evidence=reason)
            return Reply(Observations({c.name: unseen for c in request.rubric.criteria}, reason=reason))
        try:
            found = await self._asked(request.original.data, request.edited.data)
        except (BadImage, cv2.error) as error:
            return failed(Outcome(OutcomeKind.MALFORMED, str(error)), Usage(served_model=self.name))
        if isinstance(found, Outcome):
            return failed(found)
        seen = observed(self._probe, *found, finding, request.direction, request.rubric)
        return Reply(seen, usage=Usage(served_model=f"{self.name}@{self._probe.digest[:12]}"))

    async def _asked(self, original: bytes, edited: bytes) -> tuple[Logits, Logits] | Outcome:
        """The logits of both pictures, from a worker of the run's engine where there is one."""
        engine, probe = remote_engine(), self._probe
        if engine is None:
            return await asyncio.to_thread(_logits, probe, original, edited)
        return await on_worker(engine, "judge", logits_here, probe.folder, probe.digest, original, edited)


def _logits(probe: Probe, original: bytes, edited: bytes) -> tuple[Logits, Logits]:
    both = probe.logits([framed(decode(original)), framed(decode(edited))])
    return both[0], both[1]


def logits_here(folder: Path, digest: str, original: bytes, edited: bytes) -> tuple[Logits, Logits] | Outcome:
    """The logits of both pictures by a worker's own copy of the probe, which it loads once."""
    try:
        probe = _opened(folder)
    except InputError as error:
        return Outcome(OutcomeKind.TRANSPORT, str(error), fatal=True)
    if probe.digest != digest:
        return Outcome(OutcomeKind.TRANSPORT, f"{folder}: another probe lies there on a worker", fatal=True)
    return _logits(probe, original, edited)


_opened = cache(Probe.open)


def observed(
    probe: Probe, before: Logits, after: Logits, finding: Finding, direction: Direction, rubric: Rubric
) -> Observations:
    """What two rows of calibrated logits say.

    The finding asked for must cross an even chance the right way, and by more than pictures move when nothing of
    meaning happens to them; no other finding may do so.
    """
    card = probe.card
    at = card.findings.index(finding.name)
    sign = 1.0 if direction is Direction.ADD else -1.0
    moved = after - before
    there = bool(after[at] >= 0)
    right = bool(sign * moved[at] > card.margins[at]) and there == (direction is Direction.ADD)
    readings = {
        name: f"{name} {_chance(b)} to {_chance(a)}"
        for name, b, a in zip(card.findings, before, after, strict=True)
    }
    others = [
        name
        for k, name in enumerate(card.findings)
        if k != at and (before[k] >= 0) != (after[k] >= 0) and abs(moved[k]) > card.margins[k]
    ]
    wrong = FailureCode.TOO_SUBTLE if there != (sign > 0) else FailureCode.NON_TARGET_FINDING
    results = {
        Criterion.INSTRUCTION_COMPLIANCE: CriterionResult(
            right, float(_expit(abs(after[at]))), () if right else (wrong.value,), readings[finding.name]
        ),
        Criterion.FIDELITY_PRESERVATION: CriterionResult(
            not others,
            None,
            (FailureCode.NON_TARGET_FINDING.value,) if others else (),
            "; ".join(readings[name] for name in card.findings if name != finding.name),
        ),
    }
    unseen = CriterionResult(None, evidence="the probe does not see this")
    facts = {
        "has_disease": there,
        "other_disease": any(bool(after[card.findings.index(n)] >= 0) for n in others),
    }
    return Observations(
        criteria={
            c.name: results.get(Criterion(c.name), unseen) if c.name in set(Criterion) else unseen
            for c in rubric.criteria
        },
        facts={name: facts[name] for name in rubric.facts if name in facts},
        reason="Probability of each finding before and after, by a trained probe: "
        + "; ".join(readings.values())
        + ".",
    )


def _expit(value: float) -> float:
    return float(1 / (1 + np.exp(-np.clip(value, -50, 50))))


def _chance(logit: float) -> str:
    return f"{_expit(logit):.2f}"
