"""Does training with edits help on real held-out pictures? Beside real ones alone, and standard augmentation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plantain.metrics.statistics.areas import PairedArea, paired_areas
from plantain.models.probe.folder import logits_of
from plantain.models.probe.frame import framed
from plantain.pixels.arrays import Floats
from plantain.records import Direction, InputError, derive_seed
from plantain.train.probe.edits import MadeEdit
from plantain.train.probe.learning import ProbeSchedule, fit
from plantain.train.probe.pictures import LabelledFrames

REAL, EDITS, AUGMENTED = "real", "real + edits", "real + standard augmentation"
ARMS = (REAL, EDITS, AUGMENTED)
HELD_OUT = 0.4


@dataclass(frozen=True, slots=True)
class Utility:
    """What edits did to a probe.

    Attributes:
        n: real pictures that each arm learned from.
        edits: edits that the second arm learned from as well.
        seeds: trainings of each arm; each draws other real pictures.
        held_out: real pictures that all were measured by.
        areas: mean AUC by arm, then finding.
        differences: of an arm to the real pictures alone, then by finding.
    """

    n: int
    edits: int
    seeds: int
    held_out: int
    areas: Mapping[str, Mapping[str, float]]
    differences: Mapping[str, Mapping[str, PairedArea]]


def edited_frames(edits: Sequence[MadeEdit], real: LabelledFrames) -> LabelledFrames:
    """Edits with the label that they were meant to have: the finding added, or none where it was removed.

    Raises:
        InputError: no edit is about a finding of the real pictures.
    """
    about = [edit for edit in edits if edit.finding in real.findings]
    if not about:
        named = ", ".join(sorted({edit.finding for edit in edits}))
        raise InputError(f"no edit is about {', '.join(real.findings)}; they are about {named}")
    labels = np.array(
        [
            [name == edit.finding and edit.direction is Direction.ADD for name in real.findings]
            for edit in about
        ]
    )
    frames = np.stack([framed(edit.after) for edit in about])
    groups = np.array([edit.group for edit in about])
    return replace(real, frames=frames, labels=labels, groups=groups)


def utility(
    real: LabelledFrames,
    edits: LabelledFrames,
    n: int,
    seeds: int,
    schedule: ProbeSchedule,
    advanced: Callable[[int, int], None] = lambda done, of: None,
) -> Utility:
    """Trains each arm several times and measures all by the same real pictures.

    Args:
        real: labelled pictures; two fifths of their groups are held out, and no edit of them is learned from.
        edits: as `edited_frames` gives them.
        n: real pictures to learn from, drawn anew for each seed; as many with each finding and without as there are.
        seeds: how many, at least 2.
        schedule: of every training; all arms make the same number of steps.
        advanced: told how many trainings of how many are done, first of none.

    Raises:
        InputError: fewer real pictures than n, or no edit left.
    """
    rest, held_out = real.parts(derive_seed(0, "utility"), (1 - HELD_OUT, HELD_OUT))
    apart = ~np.isin(edits.groups, held_out.groups)
    made = edits.chosen(apart)
    if len(rest) < n or not len(made):
        lacks = f"{len(rest)} real pictures to learn from" if len(rest) < n else "no edit of other originals"
        raise InputError(f"{lacks}, with {len(held_out)} held out: give more pictures, or a smaller --n")
    scores: dict[str, list[Floats]] = {arm: [] for arm in ARMS}
    steps = schedule.epochs * max(1, n // schedule.batch)
    advanced(0, seeds * len(ARMS))
    for seed in range(seeds):
        some = rest.chosen(_drawn(rest, n, seed))
        for arm in ARMS:
            shown = joined(some, made) if arm == EDITS else some
            plan = replace(schedule, shares=None, augmented=arm == AUGMENTED, steps=steps)
            scores[arm].append(logits_of(fit(shown, plan, derive_seed(seed, arm)), held_out.frames))
            advanced(seed * len(ARMS) + ARMS.index(arm) + 1, seeds * len(ARMS))
    return _utility_of(real, held_out, made, n, seeds, {arm: np.stack(own) for arm, own in scores.items()})


def joined(one: LabelledFrames, other: LabelledFrames) -> LabelledFrames:
    """Both, one behind the other."""
    return replace(
        one,
        frames=np.concatenate([one.frames, other.frames]),
        labels=np.concatenate([one.labels, other.labels]),
        groups=np.concatenate([one.groups, other.groups]),
    )


def _utility_of(
    real: LabelledFrames,
    held_out: LabelledFrames,
    made: LabelledFrames,
    n: int,
    seeds: int,
    scores: Mapping[str, Floats],
) -> Utility:
    areas: dict[str, dict[str, float]] = {arm: {} for arm in ARMS}
    differences: dict[str, dict[str, PairedArea]] = {arm: {} for arm in ARMS if arm != REAL}
    for column, name in enumerate(real.findings):
        for arm in differences:
            found = paired_areas(
                scores[arm][:, :, column],
                scores[REAL][:, :, column],
                held_out.labels[:, column],
                held_out.groups,
            )
            differences[arm][name] = found
            areas[arm][name], areas[REAL][name] = found.first, found.second
    return Utility(n, len(made), seeds, len(held_out), areas, differences)


def _drawn(rest: LabelledFrames, n: int, seed: int) -> npt.NDArray[np.intp]:
    """n pictures, of every finding and of none about the same number."""
    rng = np.random.default_rng(derive_seed(seed, "utility pictures") % 2**31)
    kinds = [np.flatnonzero(rest.healthy), *(np.flatnonzero(column) for column in rest.labels.T)]
    orders = [rng.permutation(kind).tolist() for kind in kinds]
    chosen: dict[int, None] = {}
    while len(chosen) < n and any(orders):
        for order in orders:
            if order and len(chosen) < n:
                chosen.setdefault(order.pop())
    return np.array(sorted(chosen), np.intp)
