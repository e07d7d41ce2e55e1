"""The gate: decides from a judge's answers which uses of its verdicts are allowed.

A judge may rank if every criterion passes right edits more often than wrong ones, by the lower bound over independent
images; it may qualify if it also passes the controls. `gate.toml` has the thresholds and their reasons.

"May rank" needs all criteria at once, so each is tested at 5 % and all together err in at most 5 % (an
intersection-union test, Berger 1982). To qualify, single criteria are several tests, so their 5 % are divided by the
number of criteria (Bonferroni).
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path

from plantain.metrics.statistics.clusters import clustered_rate
from plantain.metrics.statistics.gap import Gap, gap_of, shares
from plantain.records import Figure, Gate, Observations, Rubric
from plantain.records.judging import FAIL, PASS, TOO_FEW, Check
from plantain.records.messages import counted
from plantain.rubrics import decide

DATA = Path(__file__).with_name("gate.toml")

ALL = "all"
"""Key of the gaps over all modalities."""

CLEAN, AGAIN = "clean", "clean again"
"""A right edit, and the same edit judged again."""
NAIVE = ("blob", "dots", "grey wash", "text", "copied patch")
IDENTICAL, UNEDITED, ACCEPTED = "identical", "unedited", "accepted"
BLACK = "black image"
ONE_DIMENSION = "different in one dimension"
CLEAN_EDITS = "clean edit"
"""The control of right edits: drawn by the procedural editor, or their exact undoing."""

_KNOWN = ("instruction_compliance", "structural_plausibility", "realism", "fidelity_preservation")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A limit that a judge must reach.

    Attributes:
        because: the reason for the limit.
        least, most: smallest and largest allowed value.
    """

    because: str
    least: float = 0.0
    most: float = 1.0


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The content of `gate.toml`: thresholds for ranking and qualifying, and rules for which edits are wrong.

    Attributes:
        rank, qualify: thresholds by name.
        wrong: by criterion, kinds of edit that are wrong for it, besides the defects that violate it.
        covers: by criterion of another rubric, the criteria of Med-Banana that it covers.
        compatible: by modality, pairs of a shown finding and another name that is not wrong for it.
        may_be: by naive editor, findings that it may really have drawn.
    """

    rank: Mapping[str, Threshold]
    qualify: Mapping[str, Threshold]
    wrong: Mapping[str, tuple[str, ...]]
    covers: Mapping[str, tuple[str, ...]]
    compatible: Mapping[str, frozenset[tuple[str, str]]]
    may_be: Mapping[str, tuple[str, ...]]

    def fits(self, modality: str, finding: str, other: str) -> bool:
        """Return True if an edit that shows `finding` is also correct under the name `other`."""
        return (finding, other) in self.compatible.get(modality, ())

    def wrong_for(self, criterion: str, kind: str, violates: Collection[str]) -> bool:
        """Return True if an edit is wrong by a criterion.

        Args:
            criterion: criterion of any rubric. By one that is unknown and not in `covers`, every edit is wrong.
            kind: kind of the edit.
            violates: criteria of Med-Banana that a planted defect violates.
        """
        asked = self.covers.get(criterion, (criterion,))
        if not any(name in self.wrong or name in violates for name in asked) and criterion not in _KNOWN:
            return criterion not in self.covers
        return any(kind in self.wrong.get(name, ()) or name in violates for name in asked)


@cache
def thresholds() -> Thresholds:
    """Return the project's thresholds, from `gate.toml`."""
    document = tomllib.loads(DATA.read_text("utf-8"))
    compatible: dict[str, set[tuple[str, str]]] = {}
    for row in document["compatible"]:
        pairs = compatible.setdefault(row["modality"], set())
        if "shown" in row:  # one way
            pairs.update((row["shown"], name) for name in row["named"])
        elif "with" in row:
            pairs.update(pair for name in row["findings"] for pair in permutations((name, row["with"])))
        else:
            pairs.update(permutations(row["findings"], 2))
    rank, qualify = (
        {name: Threshold(**row) for name, row in document[part].items()} for part in ("rank", "qualify")
    )
    wrong, covers, may_be = (
        {name: tuple(row) for name, row in document[part].items()} for part in ("wrong", "covers", "may_be")
    )
    frozen = {modality: frozenset(pairs) for modality, pairs in compatible.items()}
    return Thresholds(rank, qualify, wrong, covers, frozen, may_be)


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """A judge's answer on one edit of an audit.

    Attributes:
        kind: kind of the edit: `CLEAN`, `AGAIN`, or the name of a control or defect.
        modality, direction: modality and direction of the edit.
        cluster: patient or source file that it shares with other edits.
        violates: criteria that a planted defect violates.
        shares: degree to which each criterion is met, in [0, 1]; None if unscored; empty without an answer.
        qualified: True if accepted by the rubric's policy; None without an answer.
        failed: criteria that did not pass, without unscored ones.
        may_be: True if the drawing may really show the requested finding, so that the answer is not evidence.
        name, recipe: names of the edit and of the clean edit that it was made from.
    """

    kind: str
    modality: str
    direction: str
    cluster: str
    violates: tuple[str, ...]
    shares: Mapping[str, float | None]
    qualified: bool | None
    failed: frozenset[str] = frozenset()
    may_be: bool = False
    name: str = ""
    recipe: str = ""


def scored(
    seen: Observations | None, rubric: Rubric
) -> tuple[dict[str, float | None], bool | None, frozenset[str]]:
    """Score an answer by a rubric; return (share of each criterion, True if it qualifies, names of failed criteria).

    An undecided edit does not qualify. Without an answer the result is ({}, None, no names).
    """
    if seen is None:
        return {}, None, frozenset()
    results = {c.name: seen.criteria[c.name] for c in rubric.criteria}
    verdict = decide(seen, rubric, judge="", policy=rubric.policy, threshold=rubric.threshold)
    return (
        {c.name: c.share(results[c.name]) for c in rubric.criteria},
        verdict.qualified is True,  # an undecided edit was not accepted
        frozenset(name for name, result in results.items() if result.passed is False),
    )


def gap_answers(answers: Iterable[TrialAnswer], criterion: str) -> list[tuple[str, bool, float]]:
    """Return (cluster, True if the edit is right, share in [0, 1]) of each usable answer, as `gap_of` needs."""
    limits = thresholds()
    found = []
    for answer in answers:
        share = answer.shares.get(criterion)
        right = answer.kind in (CLEAN, AGAIN)
        wrong = not answer.may_be and limits.wrong_for(criterion, answer.kind, answer.violates)
        if share is not None and (right or wrong):
            found.append((answer.cluster, right, share))
    return found


def gaps_of(answers: Sequence[TrialAnswer], criteria: Sequence[str]) -> dict[str, dict[str, Gap]]:
    """Compute the gap between right and wrong edits by modality ("all" first, which is tested) and criterion."""
    modalities = sorted({answer.modality for answer in answers})
    level = thresholds().rank["level"].most / max(1, len(criteria))
    found = {ALL: {c: gap_of(gap_answers(answers, c), level) for c in criteria}}
    for modality in modalities:
        own = [answer for answer in answers if answer.modality == modality]
        found[modality] = {c: gap_of(gap_answers(own, c)) for c in criteria}
    return found


def rate_of(answers: Iterable[TrialAnswer]) -> Figure:
    """Compute the share of answered edits that the judge accepted, with its interval over clusters."""
    return figure_of((one.cluster, one.qualified) for one in answers if one.qualified is not None)


def figure_of(answers: Iterable[tuple[str, bool]]) -> Figure:
    """Compute the share of True among (cluster, bool) pairs, with its interval over clusters."""
    rate = clustered_rate(shares(answers))
    return Figure(rate.n, rate.value, rate.low, rate.high, rate.clusters)


def gate_of(
    gaps: Mapping[str, Mapping[str, Gap]],
    controls: Mapping[str, Figure],
    repeats: Figure | None,
    answered: float,
) -> Gate:
    """Decide if a judge may rank editors and qualify edits; return the decision with reasons and checks.

    Args:
        gaps: the result of `gaps_of`.
        controls: share of accepted edits of each kind.
        repeats: share of identical answers; None if the judge was not asked twice.
        answered: share of all requests that it answered, in [0, 1].
    """
    limits, over_all = thresholds(), gaps.get(ALL, {})
    needed = int(limits.rank["images"].least)
    fewest = min(over_all, key=lambda name: over_all[name].images, default="any criterion")
    few = over_all[fewest].images if over_all else 0
    together = [gap.alone is not None and gap.alone > 0 for gap in over_all.values()]
    checks = list(_control_checks(controls, repeats))
    criteria = [_criterion_check(name, gap, needed) for name, gap in over_all.items()]
    why: list[str] = []
    if few < needed:
        why.append(f"n = {counted(few, 'independent image')} for {_words(fewest)}, {needed} are needed")
    elif answered < limits.rank["answered"].least:
        why.append(f"answered {100 * answered:.0f} % of the requests")
    else:
        why += [check.found for check in criteria if check.result != PASS]
    rank = bool(together) and all(together) and not why
    objections = [f"{check.name}: {check.found}" for check in checks if check.result != PASS]
    weak = [name for name, gap in over_all.items() if not _usually_right(gap)]
    qualify = rank and not objections and not weak
    if rank:
        objections += [
            f"{_words(c)}: right {_share(over_all[c].right)}, wrong {_share(over_all[c].wrong)}" for c in weak
        ]

    reasons = (*why, *objections)
    if few >= needed and answered < limits.rank["answered"].least:
        criteria.append(Check("answers", FAIL, why[0]))
    verdict = _sentence(criteria, rank, qualify, objections)
    return Gate(qualify, rank, reasons, verdict, (*criteria, *checks))


def _sentence(criteria: Sequence[Check], rank: bool, qualify: bool, objections: Sequence[str]) -> str:
    """Return the verdict of the card in one sentence."""
    if qualify:
        return "Yes: it scores right edits above wrong ones, and every control passed."
    if rank:
        return f"Only to rank editors: a yes does not mean that the edit is right ({objections[0]})."
    failed = [check for check in criteria if check.result == FAIL]
    if any(check.name == "answers" for check in failed):
        return f"No: it {failed[-1].found}."
    if failed and len(failed) == len(criteria):
        return "No: it scores right and wrong edits alike."
    if failed:
        names = ", ".join(check.name for check in failed)
        return f"No: it scores right and wrong edits alike by {names}."
    return "Not known: too few images to decide whether it scores right edits above wrong ones."


def _criterion_check(name: str, gap: Gap, needed: int) -> Check:
    words = _words(name)
    if gap.value is None or gap.alone is None:
        return Check(words, TOO_FEW, f"{words}: never asked about both right and wrong edits of an image")
    if gap.images < needed:
        return Check(words, TOO_FEW, f"n = {counted(gap.images, 'independent image')}, {needed} are needed")
    more = f"passes right edits more often than wrong ones by {100 * gap.value:z.0f} points, "
    if gap.alone > 0:
        return Check(words, PASS, f"{more}at least {100 * gap.alone:z.0f}")
    return Check(words, FAIL, f"{words}: {more}which may be {100 * gap.alone:z.0f}: no better than chance")


def _usually_right(gap: Gap) -> bool:
    """Return True if a criterion passes most right edits and few wrong ones, and its lower bound is above 0."""
    least = thresholds().qualify["right"].least
    above = gap.bound is not None and gap.bound > 0
    return (
        above
        and gap.right is not None
        and gap.wrong is not None
        and gap.right >= least
        and gap.wrong < 1 - least
    )


def _control_checks(controls: Mapping[str, Figure], repeats: Figure | None) -> Iterator[Check]:
    """Yield the controls that verdicts must pass to qualify edits; an unmeasured one has too few images."""
    limits = thresholds().qualify
    right, least = controls.get(CLEAN_EDITS), limits["right"].least
    found = _in_words("accepted", right, f"the lower bound must reach {_share(least)}")
    yield Check("clean edits, which are right", _result(right, "low", least=least), found)
    unedited = [name for name in controls if name.startswith(UNEDITED) or name == IDENTICAL] or [UNEDITED]
    most = {"swapped label": limits["swapped label"].most, **dict.fromkeys(NAIVE, limits["naive"].most)}
    most[BLACK] = limits["black"].most
    for name, limit in (most | dict.fromkeys(unedited, limits["unedited"].most)).items():
        figure = controls.get(name)
        found = _in_words("accepted", figure, f"the upper bound must stay within {_share(limit)}")
        yield Check(name, _result(figure, "high", most=limit), found)
    kept = {name: figure for name, figure in controls.items() if name.startswith(f"{ACCEPTED} ")}
    least_kept = limits["kept"].least
    for name, figure in kept.items():
        if figure.value is not None:
            found = _in_words("kept", figure, f"at least {_share(least_kept)} is needed")
            yield Check(name, _result(figure, "value", least=least_kept), found)
    if all(figure.value is None for figure in kept.values()):
        found = "no accepted edit was judged again after another codec, a resize or a shift"
        yield Check("edits encoded again", TOO_FEW, found)
    same = limits["repeats"].least
    found = _in_words("answered the same", repeats, f"at least {_share(same)} is needed")
    yield Check("asked again", _result(repeats, "value", least=same), found)


def _result(figure: Figure | None, end: str, least: float = 0.0, most: float = 1.0) -> str:
    """Return PASS if an end ("low", "high", "value") is within bounds, FAIL if the value is not, else TOO_FEW."""
    if figure is None or figure.value is None:
        return TOO_FEW
    bound = {"low": figure.low, "high": figure.high, "value": figure.value}[end]
    if bound is not None and least <= bound <= most:
        return PASS
    return TOO_FEW if least <= figure.value <= most else FAIL


def _in_words(verb: str, figure: Figure | None, needed: str) -> str:
    if figure is None or figure.value is None:
        return f"no such edit was judged; of the share {verb}, {needed}"
    known = figure.low is not None and figure.high is not None
    between = f" ({_share(figure.low)} to {_share(figure.high)})" if known else ""
    return f"{verb} {_share(figure.value)}{between} of {figure.n}, {needed}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _words(name: str) -> str:
    return name.replace("_", " ")
