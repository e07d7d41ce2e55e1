"""A judge's card from its answers: controls, gaps, defects, repeats, agreement, cost, and the gate."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from plantain.audit.gate import (
    AGAIN,
    CLEAN,
    CLEAN_EDITS,
    IDENTICAL,
    ONE_DIMENSION,
    TrialAnswer,
    figure_of,
    gaps_of,
    gate_of,
    rate_of,
    thresholds,
)
from plantain.audit.jury import Jury
from plantain.audit.planted_defects import DEFECTS
from plantain.audit.trials import KINDS
from plantain.journal import JournalReader
from plantain.journal.questions.status import spent_by
from plantain.metrics.statistics.gap import Gap
from plantain.records import Figure, JudgeCard, Rubric


def make_card(
    jury: Jury,
    reader: JournalReader,
    answers: Sequence[TrialAnswer],
    image_set: str,
    left_out: Mapping[str, int],
) -> JudgeCard:
    """Compute the card of the audited judge: rates, gaps, permitted uses, cost and time.

    Args:
        jury: the judge.
        reader: journal of the audit's run.
        answers: the judge's answers on all edits.
        image_set: name of the set of images.
        left_out: reasons why edits could not be made, with counts.
    """
    answered = [one for one in answers if one.qualified is not None]
    gaps = gaps_of(answers, [c.name for c in jury.rubric.criteria])
    controls, repeats = _controls(answers), _repeats(answers)
    clusters: dict[str, set[str]] = defaultdict(set)
    for one in answered:
        clusters[one.modality].add(one.cluster)
    models = {member.name for member in jury.members}
    cost, seconds = spent_by(reader, models)
    share = len(answered) / len(answers) if answers else 0.0
    return JudgeCard(
        judge=jury.name,
        fingerprint=jury.fingerprint,
        rubric=jury.rubric.name,
        gate=gate_of(gaps, controls, repeats.get(IDENTICAL), share),
        images={modality: len(names) for modality, names in sorted(clusters.items())},
        set=image_set,
        controls=controls,
        gaps={m: {c: _gap_figure(gap) for c, gap in found.items()} for m, found in gaps.items()},
        defects=defects_caught(answers, jury.rubric),
        repeats=repeats,
        agreement={},
        cost_usd=cost,
        seconds=seconds,
        verdicts=len(answered),
        unanswered=len(answers) - len(answered),
        left_out=dict(Counter(left_out).most_common()),
    )


def _controls(own: Sequence[TrialAnswer]) -> dict[str, Figure]:
    """Return how often each kind of edit was accepted."""
    defects = {defect.name for defect in DEFECTS}
    clean = [one for one in own if one.kind == CLEAN]
    found = {
        CLEAN_EDITS: rate_of(clean),
        "own editor, added": rate_of(one for one in clean if one.direction == "add"),
        "exact undoing": rate_of(one for one in clean if one.direction == "remove"),
    }
    for kind in KINDS:
        judged = [one for one in own if one.kind == kind and not one.may_be]
        if kind not in defects and kind != CLEAN and judged:
            found[kind] = rate_of(judged)
    return found


def defects_caught(own: Sequence[TrialAnswer], rubric: Rubric) -> dict[str, Figure]:
    """Return, for each defect, the share of one judge's answered edits in which all violated criteria failed."""
    covers = thresholds().covers
    found: dict[str, Figure] = {}
    for defect in DEFECTS:
        caught = []
        for one in own:
            if one.kind != defect.name or one.qualified is None:
                continue
            asked = {
                c.name
                for c in rubric.criteria
                if set(covers.get(c.name, (c.name,))) & set(one.violates)
                and one.shares.get(c.name) is not None
            }
            if asked:
                caught.append((one.cluster, asked <= one.failed))
        if caught:
            found[defect.name] = figure_of(caught)
    return found


def _repeats(own: Sequence[TrialAnswer]) -> dict[str, Figure]:
    """Return how often repeated answers to the same edit agree.

    The consistency study (Med-Banana-50K, 4.3) counts identical answers and those that differ in one dimension.
    """
    first = {one.name: one for one in own if one.kind == CLEAN}
    pairs = [(first[one.name], one) for one in own if one.kind == AGAIN and one.name in first]
    answered = [(a, b) for a, b in pairs if a.qualified is not None and b.qualified is not None]
    whole = [(a, b) for a, b in answered if None not in (*a.shares.values(), *b.shares.values())]
    apart = [(a.cluster, sum(a.shares[name] != b.shares[name] for name in a.shares)) for a, b in whole]
    study = {IDENTICAL: 0, ONE_DIMENSION: 1}
    return {name: figure_of((cluster, n == wanted) for cluster, n in apart) for name, wanted in study.items()}


def _gap_figure(gap: Gap) -> Figure:
    reason = "" if gap.value is not None else "no image with right and wrong edits"
    return Figure(gap.answers, gap.value, gap.low, gap.high, gap.images, "gap", reason)
