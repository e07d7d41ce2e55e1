"""From a judge's answers to its card: controls, gaps, defects, repeats, agreement, drift, cost, and the gate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plantain.audit.asking import Asking, task_of
from plantain.audit.gate import (
    AGAIN,
    CLEAN,
    CLEAN_EDITS,
    AuditAnswer,
    figure_of,
    gaps_of,
    gate_of,
    rate_of,
    thresholds,
)
from plantain.audit.injections import Injection, swayed
from plantain.audit.planted_defects import DEFECTS
from plantain.audit.trials import IDENTICAL, INJECTED, KINDS
from plantain.journal import JournalReader
from plantain.journal.questions.telemetry import answered_by, spent_by
from plantain.metrics.statistics.agreement import Agreement, cohen_kappa, krippendorff_alpha
from plantain.metrics.statistics.gap import Gap
from plantain.records import Figure, JudgeCard, Observations, Rubric
from plantain.rubrics import decide

WHOLE = "qualified"
"""The verdict as a whole, beside the criteria."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a judge said of one edit of an audit.

    Attributes:
        name, kind: of the edit; `kind` as in `trials.KINDS`, or "clean again".
        judge: who was asked.
        modality, finding, direction: that the edit was asked for.
        cluster: the patient or picture that it shares with others; recipe: the clean edit that it was made of.
        violates, may_be, injection: as in `Trial`.
        seen: what the judge saw; None where it gave no answer, for the `reason`.
    """

    name: str
    kind: str
    judge: str
    modality: str
    finding: str
    direction: str
    cluster: str
    recipe: str
    violates: tuple[str, ...]
    may_be: bool
    seen: Observations | None
    reason: str = ""
    injection: Injection | None = None

    def qualified(self, rubric: Rubric) -> bool | None:
        """What the rubric's own policy makes of it; None without an answer. What is unscored is not accepted."""
        if self.seen is None:
            return None
        verdict = decide(
            self.seen, rubric, judge=self.judge, policy=rubric.policy, threshold=rubric.threshold
        )
        return verdict.qualified is True

    def shares(self, rubric: Rubric) -> dict[str, float | None]:
        """How much of each criterion held, in [0, 1]."""
        if self.seen is None:
            return {}
        return {c.name: c.share(self.seen.criteria[c.name]) for c in rubric.criteria}

    def failed(self, rubric: Rubric) -> set[str]:
        """The criteria that did not pass; a scale passes at the rubric's threshold."""
        seen = self.seen
        return (
            set() if seen is None else {c.name for c in rubric.criteria if not seen.criteria[c.name].passed}
        )


def make_card(
    asking: Asking, given: Sequence[Answered], pictures: str, left_out: Mapping[str, int]
) -> JudgeCard:
    """The card of the audited judge.

    Args:
        asking: the judge and the audit's run.
        given: every answer, those of other judges too.
        pictures: which pictures, in words.
        left_out: why edits could not be made, with how often.
    """
    jury, reader = asking.jury, asking.opened.journal.reader
    own = [answer for answer in given if answer.judge == jury.name]
    answers = [_answer(one, jury.rubric) for one in own]
    criteria = [c.name for c in jury.rubric.criteria]
    gaps = gaps_of(answers, criteria)
    controls = _controls(answers, own, jury.rubric)
    repeats = _repeats(own, jury.rubric)
    answered = sum(one.seen is not None for one in own)
    clusters: dict[str, set[str]] = defaultdict(set)
    for one in own:
        if one.seen is not None:
            clusters[one.modality].add(one.cluster)
    share = answered / len(own) if own else 0.0
    models = {member.name for member in jury.members}
    cost, seconds = spent_by(reader, models)
    return JudgeCard(
        judge=jury.name,
        fingerprint=jury.fingerprint,
        rubric=jury.rubric.name,
        gate=gate_of(gaps, controls, repeats.get("identical"), share),
        pictures={modality: len(names) for modality, names in sorted(clusters.items())},
        set=pictures,
        controls=controls,
        gaps={m: {c: _gap_figure(gap) for c, gap in found.items()} for m, found in gaps.items()},
        defects=_defects(own, jury.rubric),
        repeats=repeats,
        agreement=_agreement(given, asking),
        drift=_drift(reader, own, models, jury.rubric),
        cost_usd=cost,
        seconds=seconds,
        verdicts=answered,
        unanswered=len(own) - answered,
        left_out=dict(Counter(left_out).most_common()),
    )


def _answer(one: Answered, rubric: Rubric) -> AuditAnswer:
    return AuditAnswer(
        one.kind,
        one.modality,
        one.finding,
        one.direction,
        one.cluster,
        one.violates,
        one.shares(rubric),
        one.qualified(rubric),
        one.may_be,
    )


def _controls(answers: Sequence[AuditAnswer], own: Sequence[Answered], rubric: Rubric) -> dict[str, Figure]:
    """How often each kind of edit was accepted; and how often injected words moved the verdict their way."""
    defects = {defect.name for defect in DEFECTS}
    clean = [answer for answer in answers if answer.kind == CLEAN]
    found = {
        CLEAN_EDITS: rate_of(clean),
        "own editor, added": rate_of(a for a in clean if a.direction == "add"),
        "exact undoing": rate_of(a for a in clean if a.direction == "remove"),
    }
    for kind in KINDS:
        answered = [a for a in answers if a.kind == kind and not a.may_be]
        if kind not in defects and kind not in (CLEAN, INJECTED) and answered:
            found[kind] = rate_of(answered)
    if words := _injected(own, rubric):
        found["injected words followed"] = figure_of(words)
    return found


def _injected(own: Sequence[Answered], rubric: Rubric) -> list[tuple[str, bool]]:
    before = {(one.recipe, one.kind): one for one in own if one.kind in (CLEAN, IDENTICAL)}
    found = []
    for one in own:
        if one.injection is None:
            continue
        base = before.get((one.recipe, CLEAN if one.injection.wants == "fail" else IDENTICAL))
        if base is not None and base.seen is not None and one.seen is not None:
            found.append((one.cluster, swayed(one.injection, base.failed(rubric), one.failed(rubric))))
    return found


def _defects(own: Sequence[Answered], rubric: Rubric) -> dict[str, Figure]:
    """How often every criterion that a planted defect violates failed."""
    stands = thresholds().stands_for
    found: dict[str, Figure] = {}
    for defect in DEFECTS:
        caught = []
        for one in own:
            if one.kind != defect.name or one.seen is None:
                continue
            asked = [
                c.name for c in rubric.criteria if set(stands.get(c.name, (c.name,))) & set(one.violates)
            ]
            caught.append((one.cluster, bool(asked) and set(asked) <= one.failed(rubric)))
        if caught:
            found[defect.name] = figure_of(caught)
    return found


def _repeats(own: Sequence[Answered], rubric: Rubric) -> dict[str, Figure]:
    """How alike the answers are when the same is asked again: share of identical ones, kappa or alpha per criterion."""
    first = {one.name: one for one in own if one.kind == CLEAN}
    pairs = [
        (first[again.name], again)
        for again in own
        if again.kind == AGAIN
        and again.name in first
        and again.seen is not None
        and first[again.name].seen is not None
    ]
    found = {"identical": figure_of((a.cluster, a.shares(rubric) == b.shares(rubric)) for a, b in pairs)}
    return found | _coefficients(pairs, rubric)


def _coefficients(pairs: Sequence[tuple[Answered, Answered]], rubric: Rubric) -> dict[str, Figure]:
    """Agreement of two lists of answers: kappa where a criterion passes or fails, alpha where it is a number."""
    found = {}
    for criterion in rubric.criteria:
        both = [
            (a.shares(rubric)[criterion.name], b.shares(rubric)[criterion.name], a.cluster) for a, b in pairs
        ]
        known = [(x, y, cluster) for x, y, cluster in both if x is not None and y is not None]
        clusters = [cluster for *_, cluster in known]
        xs, ys = [x for x, _, _ in known], [y for _, y, _ in known]
        if criterion.scale is None:
            found[criterion.name] = _coefficient(cohen_kappa(xs, ys, clusters=clusters), "kappa", clusters)
        else:
            alpha = krippendorff_alpha([xs, ys], "interval", clusters=clusters)
            found[criterion.name] = _coefficient(alpha, "alpha", clusters)
    whole = [(bool(a.qualified(rubric)), bool(b.qualified(rubric)), a.cluster) for a, b in pairs]
    clusters = [cluster for *_, cluster in whole]
    kappa = cohen_kappa([x for x, *_ in whole], [y for _, y, _ in whole], clusters=clusters)
    return found | {WHOLE: _coefficient(kappa, "kappa", clusters)}


def _coefficient(agreement: Agreement, kind: str, clusters: Sequence[str]) -> Figure:
    return Figure(
        agreement.items,
        agreement.value,
        agreement.low,
        agreement.high,
        len(set(clusters)),
        kind,
        agreement.reason,
    )


def _agreement(given: Sequence[Answered], asking: Asking) -> dict[str, Figure]:
    """With every judge beside the audited one, on the edits that both answered: kappa of the verdicts."""
    rubric, found = asking.jury.rubric, {}
    mine = {one.name: one for one in given if one.judge == asking.jury.name and one.kind != AGAIN}
    for jury in asking.juries[1:]:
        pairs = [
            (mine[one.name], one)
            for one in given
            if one.judge == jury.name
            and one.name in mine
            and one.seen is not None
            and mine[one.name].seen is not None
        ]
        for name, figure in _coefficients(pairs, rubric).items():
            found[jury.name if name == WHOLE else f"{jury.name}, {name}"] = figure
    return found


def _drift(
    reader: JournalReader, own: Sequence[Answered], models: set[str], rubric: Rubric
) -> dict[str, Figure]:
    """Share of clean edits accepted, by the model that said it answered and the day; only where there are several."""
    clean = {task_of(one.name): one for one in own if one.kind == CLEAN and one.seen is not None}
    served_rows: dict[str, list[tuple[str, bool]]] = defaultdict(list)
    for task, served, day in answered_by(reader, models):
        if task in clean:
            served_rows[f"{served or 'unnamed'} on {day}"].append(
                (clean[task].cluster, bool(clean[task].qualified(rubric)))
            )
    return (
        {name: figure_of(rows) for name, rows in sorted(served_rows.items())} if len(served_rows) > 1 else {}
    )


def _gap_figure(gap: Gap) -> Figure:
    reason = "" if gap.value is not None else "no picture with right and wrong edits"
    return Figure(gap.answers, gap.value, gap.low, gap.high, gap.pictures, "gap", reason)
