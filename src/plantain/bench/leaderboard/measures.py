"""Metrics as a benchmark's tables show them, and which models differ in one of them.

A metric has a name, a label, a better end and a range. Marks and ranks follow from paired differences on common
samples.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from plantain.metrics.metric import registered
from plantain.metrics.statistics.paired import Difference, holm, paired_differences
from plantain.metrics.statistics.ranks import RESOLUTION
from plantain.pixels.arrays import Floats


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of a table.

    Attributes:
        name: name in tables and JSON: "EA", "CP", "VQ", "ISim", "CP judge" …, else the stored name.
        stored: name in the journal, e.g. "masked_ssim", "lpips:tiny", "ea@offline/instruments/D".
        label: description for readers.
        higher_is_better: True if higher values are better.
        low, high: ends of the range, None if unbounded; they bound means over unscored outputs.
        digits: digits after the decimal point.
    """

    name: str
    stored: str
    label: str
    higher_is_better: bool = True
    low: float | None = None
    high: float | None = None
    digits: int = 2


MAIN = ("EA", "CP", "CP (strict)", "VQ")
"""The columns of the paper's Table 2, per organ, and our stricter CP."""

STRICTER = (
    "CP is the published masked SSIM, which empties the region in both images and so counts it as kept; "
    "CP (strict) is stricter because it averages only windows wholly outside the region."
)

ATTENTION = {
    "iou": ("IoU", "overlap of region and attention above 1.3 × Otsu’s threshold"),
    "chance": ("chance IoU", "overlap expected of as many pixels at random"),
}
"""Measures of attention: short name and label."""

_NOT_REGISTERED = (
    *(
        Measure(f"attention_{name}", f"attention_{name}", label, True, 0.0, 1.0)
        for name, (_, label) in ATTENTION.items()
    ),
    *(
        Measure(f"{name} rank", f"rank_{name.lower()}", f"rank by people in {name}, 1 is best", False, 0.0)
        for name in ("EA", "CP", "VQ")
    ),
)
"""Measured by `bench attention` or of an arm, not by a metric of `--metrics`."""

_FIRST = (
    *("cp_reference", "masked_ssim", "ssim", "psnr", "text_kept", "lpips"),
    *("clip_isim", "clip_talign", "clip_dalign", "image_reward"),
)
"""Metrics that come first in tables, in this order."""

_JUDGED = {
    "ea": ("EA", "editing accuracy"),
    "cp": ("CP judge", "context preservation"),
    "vq": ("VQ", "visual quality"),
}
_PUBLISHED = {"ea": "Accuracy", "cp": "Context", "vq": "Quality"}
"""MedEBench's names of its judge's scores, before the variant: Accuracy_P, Accuracy_D."""
_TABLE_3 = {"CP": "Masked SSIM", "psnr": "PSNR", "ssim": "SSIM", "lpips": "LPIPS"}
_TABLE_3 |= {"image_reward": "ImageReward_P", "image_reward_d": "ImageReward_D"}


@cache
def _known() -> dict[str, Measure]:
    """Return every metric but the judges', by stored name."""
    known = {one.stored: one for one in _NOT_REGISTERED}
    for name, m in registered().items():
        known[name] = Measure(m.column or name, name, m.label, m.higher_is_better, m.low, m.high, m.digits)
    return known


def measure(stored: str, judge: str | None = None) -> Measure:
    """Return the measure of a stored metric; an unregistered one keeps its stored name.

    Args:
        stored: name in the journal.
        judge: the judge whose scores are EA, VQ and "CP judge"; other judges' keep their stored names.
    """
    metric, _, who = stored.partition("@")
    base, _, variant = metric.partition(":")
    if who and base in _JUDGED and variant == "published":
        model, _, asked = who.rpartition("/")
        name = f"{_PUBLISHED[base]}_{asked}" if judge is None or judge.startswith(f"{model}/") else stored
        return Measure(name, stored, f"{_JUDGED[base][1]} by {who}, published protocol", True, 0.0, 1.0)
    if who:
        name, label = _JUDGED.get(base, (stored, base.replace("_", " ")))
        if not variant:
            return Measure(name if who == judge else stored, stored, f"{label} by {who}", True, 0.0, 1.0)
        how = "prompts" if base in _JUDGED else "the rubric"
        return Measure(stored, stored, f"{label} by {who}, {how} {variant}", True, 0.0, 1.0)
    known = _known()
    if base not in known and base.rpartition("_")[0] in known:  # "clip_talign_d", "image_reward_p"
        base, _, suffix = base.rpartition("_")
        variant = ":".join(filter(None, (suffix, variant)))
    if base not in known:
        return Measure(stored, stored, stored)
    if variant:
        return replace(known[base], name=stored, stored=stored, label=f"{known[base].label} ({variant})")
    return known[base]


def paper_name(one: Measure) -> str:
    """Return a measure's name in Table 3 of the paper, e.g. "Masked SSIM" or "Accuracy_D", else its own name."""
    metric, _, who = one.stored.partition("@")
    if one.name in _TABLE_3:
        return _TABLE_3[one.name]
    if one.name == one.stored or metric not in _PUBLISHED:
        return one.name
    return f"{_PUBLISHED[metric]}_{who.rpartition('/')[2]}"


def judges(stored: Iterable[str]) -> list[str]:
    """Return the labels of the judges in the names of stored scores, the best informed first.

    Judging by the description of the change comes before judging by the prompt, models before the offline instruments;
    the published protocol comes last.
    """
    metrics: dict[str, set[str]] = {}
    for name in stored:
        metric, _, who = name.partition("@")
        if who and metric.removesuffix(":published") in _JUDGED:
            metrics.setdefault(who, set()).add(metric)
    return sorted(
        metrics,
        key=lambda who: (
            metrics[who].isdisjoint(_JUDGED),
            who.startswith("offline/"),
            who.rpartition("/")[2][:1] != "D",
            who,
        ),
    )


def ordered(stored: Iterable[str], judge: str | None) -> list[Measure]:
    """Return all measures in a table's order: EA, CP, VQ, other known measures, then unknown ones by name.

    Args:
        stored: names of the scores in the journal.
        judge: label of the judge whose scores are EA, VQ and "CP judge"; None for no judge.
    """
    known = _known()
    order = [*MAIN, "CP judge", *(known[name].name for name in (*_FIRST, *known) if name in known)]
    rank = {name: i for i, name in reversed(list(enumerate(order)))}
    return sorted(
        (measure(name, judge) for name in stored),
        key=lambda m: (rank.get(m.name, rank.get(m.stored.partition(":")[0], len(rank))), m.name),
    )


BEST, SECOND = "best", "second"


def differences(
    measure: Measure,
    values: Mapping[str, Floats],
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None,
) -> tuple[Difference, ...]:
    """Compare all pairs of models; p values are corrected by Holm. Return () if fewer than two have scores.

    Args:
        measure: the measure of the values.
        values: one value per sample for each model, NaN where unscored.
        clusters, strata: cluster and stratum of each sample, as for `ClusteredMeans`.
    """
    known = {label: array for label, array in values.items() if np.isfinite(array).any()}
    if len(known) < 2:
        return ()
    return tuple(paired_differences(known, clusters, strata, low=measure.low, high=measure.high))


def against(
    measure: Measure,
    values: Mapping[str, Floats],
    reference: str,
    clusters: Sequence[Hashable],
    strata: Sequence[Hashable] | None,
) -> tuple[Difference, ...]:
    """Compare each model with one model, `reference`, on the samples that both have; other arguments as `differences`.

    The p values are corrected by Holm over all models.
    """
    found = [
        pair
        for label, array in values.items()
        if label != reference
        for pair in differences(measure, {label: array, reference: values[reference]}, clusters, strata)
    ]
    corrected = holm([pair.p for pair in found])
    return tuple(replace(pair, p_holm=p) for pair, p in zip(found, corrected, strict=True))


def indistinct(pairs: Sequence[Difference]) -> bool:
    """Return True if the scores do not show that the truth (first) is better than the unedited input (second)."""
    for pair in pairs:
        if pair.estimate.value is not None:
            return (pair.estimate.value if pair.estimate.low is None else pair.estimate.low) <= RESOLUTION
    return False


def ahead_of(measure: Measure, pairs: Sequence[Difference]) -> set[tuple[str, str]]:
    """Return (label of the better model, label of the worse) for each pair that differs significantly."""
    ahead = set()
    for pair in pairs:
        if pair.differs and pair.estimate.value:
            first_is_better = (pair.estimate.value > 0) == measure.higher_is_better
            ahead.add((pair.first, pair.second) if first_is_better else (pair.second, pair.first))
    return ahead


def marks(measure: Measure, means: Mapping[str, float | None], pairs: Sequence[Difference]) -> dict[str, str]:
    """Mark the best and the second best model, if they differ significantly from those behind them.

    Best is the model with the best mean if it differs from every other; second is the next one, if there is a best
    and it differs from every model behind it.

    Args:
        measure: decides which way is better.
        means: mean of each model; None if unscored.
        pairs: the differences of all pairs.

    Returns:
        `BEST` and `SECOND` by model; most models have none.
    """
    ahead = ahead_of(measure, pairs)
    sign = -1.0 if measure.higher_is_better else 1.0
    order = [label for _, label in sorted((sign * m, label) for label, m in means.items() if m is not None)]
    found: dict[str, str] = {}
    for place, mark in enumerate((BEST, SECOND)):
        behind = order[place + 1 :]
        if not behind or not all((order[place], other) in ahead for other in behind):
            break
        found[order[place]] = mark
    return found


def ranks(
    measure: Measure, means: Mapping[str, float | None], pairs: Sequence[Difference]
) -> dict[str, tuple[int, int]]:
    """Return each model's (lowest, highest) possible rank, 1 the best, with 95 % joint confidence.

    A model ranks behind those that are significantly better and before those that are significantly worse, by paired
    differences corrected over all pairs; the order of the others is open (Mogstad, Romano, Shaikh and Wilhelm 2024).

    Returns:
        Ranks by model; empty below two models with a mean.
    """
    scored = [label for label, mean in means.items() if mean is not None]
    if len(scored) < 2:
        return {}
    ahead = ahead_of(measure, pairs)
    return {
        label: (
            1 + sum(worse == label for _, worse in ahead),
            len(scored) - sum(better == label for better, _ in ahead),
        )
        for label in scored
    }
