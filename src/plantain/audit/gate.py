"""The gate: from a judge's answers to what its verdicts may be used for. Its thresholds and their reasons are data.

A judge may rank when every criterion passes what is right more often than what is wrong, by the lower bound over
independent pictures; it may qualify when it also withstands the controls. `gate.toml` says how far, and why.

Two claims, two levels. "It may rank" needs all criteria at once, so each is tested at 5 % and all together err in at
most 5 % (an intersection-union test, Berger 1982). That one criterion may rank by itself is said for several, so the
5 % are shared out over them (Bonferroni), and within each over the modalities.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any

from plantain.metrics.statistics.clusters import clustered_rate
from plantain.metrics.statistics.gap import Gap, gap_of, shares
from plantain.records import Figure, Gate
from plantain.records.card import MAY_QUALIFY, MAY_RANK, NEITHER
from plantain.records.counts import counted

DATA = Path(__file__).with_name("gate.toml")

ALL = "all"
"""Stands for a modality's name where all count together."""

CLEAN, AGAIN = "clean", "clean again"
"""An edit that is right, and the same when the judge is asked once more."""
NAIVE = ("blob", "dots", "grey wash", "text", "copied patch")
UNEDITED = "unedited"
ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True)
class Threshold:
    """A bound and why it is there."""

    because: str
    least: float = 0.0
    most: float = 1.0


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What `gate.toml` says.

    Attributes:
        rank, qualify: by name.
        wrong: kinds of edit that are wrong for a criterion, by its name, beside the defects that violate it.
        stands_for: of criteria of other rubrics, which of Med-Banana's they stand for.
        compatible: by modality, pairs of a finding that is shown and another that it is not wrong to call it.
        may_be: findings that a naive editor may truly have drawn.
    """

    rank: Mapping[str, Threshold]
    qualify: Mapping[str, Threshold]
    wrong: Mapping[str, tuple[str, ...]]
    stands_for: Mapping[str, tuple[str, ...]]
    compatible: Mapping[str, frozenset[tuple[str, str]]]
    may_be: Mapping[str, tuple[str, ...]]

    def fits(self, modality: str, finding: str, other: str) -> bool:
        """Whether an edit of one finding is not wrong under the name of the other."""
        return (finding, other) in self.compatible.get(modality, ())

    def wrong_for(self, criterion: str, kind: str, violates: Collection[str]) -> bool:
        """Whether an edit of a kind is wrong in what a criterion asks.

        Args:
            criterion: of any rubric; one that stands for nothing known counts every kind.
            kind: of the edit; violates: the criteria of Med-Banana that a planted defect violates.
        """
        asked = self.stands_for.get(criterion, (criterion,))
        if not any(name in self.wrong or name in violates for name in asked) and criterion not in _KNOWN:
            return criterion not in self.stands_for
        return any(kind in self.wrong.get(name, ()) or name in violates for name in asked)


_KNOWN = ("instruction_compliance", "structural_plausibility", "realism", "fidelity_preservation")


@cache
def thresholds() -> Thresholds:
    """The project's thresholds."""
    document = tomllib.loads(DATA.read_text("utf-8"))
    compatible: dict[str, set[tuple[str, str]]] = {}
    for row in document["compatible"]:
        compatible.setdefault(row["modality"], set()).update(_pairs(row))
    return Thresholds(
        {name: Threshold(**row) for name, row in document["rank"].items()},
        {name: Threshold(**row) for name, row in document["qualify"].items()},
        {name: tuple(kinds) for name, kinds in document["wrong"].items()},
        {name: tuple(others) for name, others in document["stands_for"].items()},
        {modality: frozenset(pairs) for modality, pairs in compatible.items()},
        {name: tuple(findings) for name, findings in document["may_be"].items()},
    )


def _pairs(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is shown and what it may be called: either way within `findings`, one way from `shown` to `named`."""
    if "shown" in row:
        yield from ((row["shown"], name) for name in row["named"])
    elif "with" in row:
        for one in row["findings"]:
            yield from ((one, row["with"]), (row["with"], one))
    else:
        yield from permutations(row["findings"], 2)


@dataclass(frozen=True, slots=True)
class AuditAnswer:
    """What a judge said of one edit of an audit.

    Attributes:
        kind: "clean", or the name of a control or defect.
        modality, finding, direction: of the edit.
        cluster: the patient or picture that it shares with others.
        violates: criteria that a planted defect violates.
        shares: how much of each criterion held, in [0, 1], None where unscored; empty where the judge gave no answer.
        qualified: what the rubric's policy makes of it; None where the judge gave no answer.
        may_be: the finding that was asked for may truly be what was drawn: no evidence either way.
    """

    kind: str
    modality: str
    finding: str
    direction: str
    cluster: str
    violates: tuple[str, ...]
    shares: Mapping[str, float | None]
    qualified: bool | None
    may_be: bool = False


def gap_answers(answers: Iterable[AuditAnswer], criterion: str) -> list[tuple[str, bool, float]]:
    """The answers that tell right from wrong by a criterion, as `gap_of` takes them."""
    limits = thresholds()
    found = []
    for answer in answers:
        share = answer.shares.get(criterion)
        right = answer.kind in (CLEAN, AGAIN)
        wrong = not answer.may_be and limits.wrong_for(criterion, answer.kind, answer.violates)
        if share is not None and (right or wrong):
            found.append((answer.cluster, right, share))
    return found


def gaps_of(answers: Sequence[AuditAnswer], criteria: Sequence[str]) -> dict[str, dict[str, Gap]]:
    """Right minus wrong by modality ("all" first) and criterion, each with the bound that the gate tests.

    The level is shared out over the criteria, and within each over the modalities: a modality counts only where its
    criterion passes over all, so that at most 5 % of ignorant judges pass anywhere.
    """
    modalities = sorted({answer.modality for answer in answers})
    level = thresholds().rank["level"].most / max(1, len(criteria))
    found = {ALL: {c: gap_of(gap_answers(answers, c), level) for c in criteria}}
    for modality in modalities:
        own = [answer for answer in answers if answer.modality == modality]
        found[modality] = {c: gap_of(gap_answers(own, c), level / len(modalities)) for c in criteria}
    return found


def rate_of(answers: Iterable[AuditAnswer]) -> Figure:
    """How often edits were accepted, over those that the judge answered."""
    answered = [answer for answer in answers if answer.qualified is not None]
    return figure_of((answer.cluster, bool(answer.qualified)) for answer in answered)


def figure_of(answers: Iterable[tuple[str, bool]]) -> Figure:
    """A share of yes over (picture, yes), with its interval over pictures."""
    rate = clustered_rate(shares(answers))
    return Figure(rate.n, rate.value, rate.low, rate.high, rate.clusters)


def gate_of(
    gaps: Mapping[str, Mapping[str, Gap]],
    controls: Mapping[str, Figure],
    repeats: Figure | None,
    answered: float,
) -> Gate:
    """What follows from a judge's answers.

    Args:
        gaps: from `gaps_of`.
        controls: how often edits of each kind were accepted.
        repeats: share of identical answers; None where the judge was not asked twice.
        answered: share of all requests that it answered.
    """
    limits, cells = thresholds(), dict[str, dict[str, str]]()
    why: list[str] = []
    over_all = gaps.get(ALL, {})
    passed = {name: _ranks(gap) for name, gap in over_all.items()}
    for modality, own in gaps.items():
        cells[modality] = {c: _standing(gap) if passed[c] else NEITHER for c, gap in own.items()}
    few = min((gap.pictures for gap in over_all.values()), default=0)
    needed = int(limits.rank["pictures"].least)
    together = {name: _over_nothing(gap.alone, gap) for name, gap in over_all.items()}
    rank = bool(together) and all(together.values())
    if few < needed:
        rank = False
        fewest = min(over_all, key=lambda name: over_all[name].pictures, default="any criterion")
        why.append(f"n = {counted(few, 'independent picture')} for {_words(fewest)}, {needed} are needed")
    elif answered < limits.rank["answered"].least:
        rank = False
        why.append(f"answered {100 * answered:.0f} % of what it was asked")
    else:
        why += [_no_gap(name, gap) for name, gap in over_all.items() if not together[name]]
    objections = _objections(controls, repeats)
    weak = [c for c, cell in cells.get(ALL, {}).items() if cell != MAY_QUALIFY]
    qualify = rank and not objections and not weak
    if rank and weak:
        objections += [
            f"{_words(c)}: right {_share(over_all[c].right)}, wrong {_share(over_all[c].wrong)}" for c in weak
        ]
    if not rank or not qualify:
        cells = {
            m: {c: _capped(cell, rank, qualify, few >= needed) for c, cell in own.items()}
            for m, own in cells.items()
        }
    return Gate(qualify, rank, (*why, *objections), cells)


def _capped(cell: str, rank: bool, qualify: bool, enough: bool) -> str:
    """A cell is never above the whole where that fails for want of pictures; a criterion may rank by itself."""
    if not enough:
        return NEITHER
    return MAY_RANK if cell == MAY_QUALIFY and not qualify else cell


def _ranks(gap: Gap) -> bool:
    return _over_nothing(gap.bound, gap)


def _over_nothing(bound: float | None, gap: Gap) -> bool:
    return bound is not None and bound > 0 and gap.pictures >= thresholds().rank["pictures"].least


def _standing(gap: Gap) -> str:
    """By one criterion: it ranks by its bound, and qualifies where it also is right more often than not."""
    if not _ranks(gap):
        return NEITHER
    least = thresholds().qualify["right"].least
    good = gap.right is not None and gap.wrong is not None and gap.right >= least and gap.wrong < 1 - least
    return MAY_QUALIFY if good else MAY_RANK


def _objections(controls: Mapping[str, Figure], repeats: Figure | None) -> list[str]:
    """Why verdicts may not qualify, a line each; what was not measured is an objection too."""
    limits = thresholds().qualify
    found = []
    right = controls.get(CLEAN_EDITS)
    if right is None or right.low is None or right.low < limits["right"].least:
        found.append(
            f"clean edits, which are right: accepted {_in_words(right)}, the lower bound must reach "
            f"{_share(limits['right'].least)}"
        )
    found += _too_many(controls, ("swapped label",), limits["swapped label"].most)
    found += _too_many(controls, NAIVE, limits["naive"].most)
    unedited = [name for name in controls if name.startswith(UNEDITED) or name == "identical"]
    found += _too_many(controls, unedited or (UNEDITED,), limits["unedited"].most)
    kept = {name: figure for name, figure in controls.items() if name.startswith(f"{ACCEPTED} ")}
    for name, figure in kept.items():
        if figure.value is not None and figure.value < limits["kept"].least:
            found.append(
                f"{name}: kept {_in_words(figure)}, at least {_share(limits['kept'].least)} is needed"
            )
    if not any(figure.value is not None for figure in kept.values()):
        found.append("no accepted edit was judged again after another codec, a resize or a shift")
    if repeats is None or repeats.value is None or repeats.value < limits["repeats"].least:
        found.append(
            f"asked again it answers the same {_in_words(repeats)}, "
            f"at least {_share(limits['repeats'].least)} is needed"
        )
    return found


CLEAN_EDITS = "clean edit"
"""The control that everything else is measured against: drawn by the procedural editor, or its exact undoing."""


def _too_many(controls: Mapping[str, Figure], names: Iterable[str], most: float) -> list[str]:
    found = []
    for name in names:
        figure = controls.get(name)
        if figure is None or figure.high is None or figure.high > most:
            found.append(
                f"{name}: accepted {_in_words(figure)}, the upper bound must stay within {_share(most)}"
            )
    return found


def _no_gap(name: str, gap: Gap) -> str:
    if gap.value is None or gap.alone is None:
        return f"{_words(name)}: never asked about both right and wrong edits of a picture"
    return (
        f"{_words(name)}: right minus wrong {100 * gap.value:+z.0f} points, which may be {100 * gap.alone:+z.0f}: "
        "no better than chance"
    )


def _in_words(figure: Figure | None) -> str:
    if figure is None or figure.value is None:
        return "never measured"
    between = (
        ""
        if figure.low is None or figure.high is None
        else f" ({_share(figure.low)} to {_share(figure.high)})"
    )
    return f"{_share(figure.value)}{between} of {figure.n}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def _words(name: str) -> str:
    return name.replace("_", " ")
