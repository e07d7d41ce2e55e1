"""From answers to rates: how often a judge sees each planted defect, and how often it fails a clean edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plantain.metrics.statistics.intervals import wilson
from plantain.records import Criterion

CLEAN = "clean"
"""Stands for a defect's name where nothing was planted."""


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """What a judge said of one edit of the audit.

    Attributes:
        defect: name of the planted defect, or "clean".
        modality, finding, direction: of the edit.
        picture: id of the real picture under it.
        violates: the criteria that the defect violates; empty for a clean edit.
        failed: the criteria that the judge failed; None when it gave no answer.
        reason: the judge's words, or why it gave no answer.
        name: of the edit.
    """

    defect: str
    modality: str
    finding: str
    direction: str
    picture: str
    violates: tuple[Criterion, ...]
    failed: tuple[Criterion, ...] | None
    reason: str
    name: str

    @property
    def caught(self) -> bool:
        """Every criterion that the defect violates failed."""
        return self.failed is not None and bool(self.violates) and set(self.violates) <= set(self.failed)


@dataclass(frozen=True, slots=True)
class AuditRate:
    """A share with its interval."""

    successes: int
    n: int

    @property
    def share(self) -> float | None:
        return self.successes / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval, as if edits of one picture were independent."""
        return wilson(self.successes, self.n)


@dataclass(frozen=True, slots=True)
class DefectRates:
    """One defect.

    Attributes:
        defect: its name.
        caught: how often every violated criterion failed, over the answers.
        by_modality: the same by modality.
        failed: how often each criterion failed, violated or not.
        unanswered: edits without an answer; they count in no rate.
        pictures: number of different real pictures under the pairs.
    """

    defect: str
    caught: AuditRate
    by_modality: dict[str, AuditRate]
    failed: dict[Criterion, AuditRate]
    unanswered: int
    pictures: int


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Everything that an audit found.

    Attributes:
        judge: its name.
        amplitude: of the defects.
        seed, split: which edits.
        clean: false alarms: how often each criterion failed on clean edits, and any of them.
        clean_any: how often at least one criterion failed on a clean edit.
        clean_by_modality: the same by modality.
        defects: one entry for each kind.
        not_made: why edits or defects were left out, with how often.
    """

    judge: str
    amplitude: str
    seed: int
    split: str
    clean: DefectRates
    clean_any: AuditRate
    clean_by_modality: dict[str, AuditRate]
    defects: tuple[DefectRates, ...]
    not_made: tuple[tuple[str, int], ...]

    def as_json(self) -> dict[str, object]:
        """The report as plain values, for `--json`."""
        return {
            "judge": self.judge,
            "amplitude": self.amplitude,
            "seed": self.seed,
            "split": self.split,
            "false_alarms": {
                "any": _rate_json(self.clean_any),
                "by_criterion": {c.value: _rate_json(r) for c, r in self.clean.failed.items()},
                "by_modality": {m: _rate_json(r) for m, r in self.clean_by_modality.items()},
                "unanswered": self.clean.unanswered,
                "pictures": self.clean.pictures,
            },
            "defects": [
                {
                    "defect": rates.defect,
                    "caught": _rate_json(rates.caught),
                    "by_modality": {m: _rate_json(r) for m, r in rates.by_modality.items()},
                    "failed": {c.value: _rate_json(r) for c, r in rates.failed.items()},
                    "unanswered": rates.unanswered,
                    "pictures": rates.pictures,
                }
                for rates in self.defects
            ],
            "not_made": [{"reason": reason, "n": n} for reason, n in self.not_made],
        }


def report_of(
    answers: Sequence[TrialAnswer],
    *,
    judge: str,
    amplitude: str,
    seed: int,
    split: str,
    not_made: Counter[str],
) -> AuditReport:
    """Counts the answers. Defects come in the order of their first answer."""
    clean = [answer for answer in answers if answer.defect == CLEAN]
    names = list(dict.fromkeys(answer.defect for answer in answers if answer.defect != CLEAN))
    spoken = [answer for answer in clean if answer.failed is not None]
    return AuditReport(
        judge=judge,
        amplitude=amplitude,
        seed=seed,
        split=split,
        clean=_rates(CLEAN, clean),
        clean_any=AuditRate(sum(bool(answer.failed) for answer in spoken), len(spoken)),
        clean_by_modality={
            modality: AuditRate(sum(bool(answer.failed) for answer in own), len(own))
            for modality, own in _by_modality(spoken).items()
        },
        defects=tuple(_rates(name, [a for a in answers if a.defect == name]) for name in names),
        not_made=tuple(not_made.most_common()),
    )


def _rates(name: str, answers: Sequence[TrialAnswer]) -> DefectRates:
    spoken = [answer for answer in answers if answer.failed is not None]
    return DefectRates(
        name,
        _caught(spoken),
        {modality: _caught(own) for modality, own in _by_modality(spoken).items()},
        {
            criterion: AuditRate(sum(criterion in (answer.failed or ()) for answer in spoken), len(spoken))
            for criterion in Criterion
        },
        len(answers) - len(spoken),
        len({answer.picture for answer in spoken}),
    )


def _caught(answers: Sequence[TrialAnswer]) -> AuditRate:
    return AuditRate(sum(answer.caught for answer in answers), len(answers))


def _by_modality(answers: Iterable[TrialAnswer]) -> dict[str, list[TrialAnswer]]:
    grouped: dict[str, list[TrialAnswer]] = {}
    for answer in answers:
        grouped.setdefault(answer.modality, []).append(answer)
    return dict(sorted(grouped.items()))


def _rate_json(rate: AuditRate) -> dict[str, object]:
    low, high = rate.interval
    share = None if rate.share is None else round(rate.share, 4)
    return {"rate": share, "n": rate.n, "low": round(low, 4), "high": round(high, 4)}
