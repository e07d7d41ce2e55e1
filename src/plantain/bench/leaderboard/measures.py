"""What a benchmark's table knows of each metric by its stored name: how it is printed, which way is up, its range."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.metrics.registry import registered


@dataclass(frozen=True, slots=True)
class Measure:
    """One metric of a table.

    Attributes:
        name: in tables and JSON: "EA", "CP", "VQ", "CP judge", else the stored name.
        stored: in the journal.
        label: for a reader.
        higher_is_better: which way is up.
        low, high: the range, where it is bounded: an unscored output is counted at either end for the bounds.
        digits: after the decimal point.
    """

    name: str
    stored: str
    label: str
    higher_is_better: bool = True
    low: float | None = None
    high: float | None = None
    digits: int = 2


_UNREGISTERED = {
    "ssim_previous": ("ssim_previous", "plain SSIM with the image before", True, -1.0, 1.0, 2),
    "attention_iou": ("attention_iou", "overlap of attention and region", True, 0.0, 1.0, 2),
    "attention_chance": (
        "attention_chance",
        "overlap expected of as many pixels at random",
        True,
        0.0,
        1.0,
        2,
    ),
    "attention_mass": (
        "attention_mass",
        "attention inside over the region's share of the area",
        True,
        0.0,
        None,
        2,
    ),
    "attention_pointing": ("attention_pointing", "strongest attention lies in the region", True, 0.0, 1.0, 2),
    "attention_auroc": ("attention_auroc", "attention ranks the region first", True, 0.0, 1.0, 2),
    "demo_similarity": ("demo_similarity", "likeness to the demonstrations", False, None, None, 2),
}
"""What is measured beside the outputs, by `attend` or of an arm, and so is no metric that can be asked for."""


def _known() -> dict[str, tuple[str, str, bool, float | None, float | None, int]]:
    """What tables need of every metric but the judges', by stored name."""
    from_registry = {
        name: (m.column or name, m.label, m.higher_is_better, m.low, m.high, m.digits)
        for name, m in registered().items()
    }
    return {**_UNREGISTERED, **from_registry}


_FIRST = (
    *(
        "masked_ssim",
        "masked_ssim_fov",
        "cp_reference",
        "ssim_previous",
        "ssim",
        "psnr",
        "text_kept",
        "lpips",
    ),
    *("clip_isim", "clip_talign", "clip_dalign", "image_reward"),
)
"""Their order in a table, before all others."""

_JUDGED = {
    "ea": ("EA", "editing accuracy"),
    "cp": ("CP judge", "context preservation"),
    "vq": ("VQ", "visual quality"),
}
_PUBLISHED = {"ea": "Accuracy", "cp": "Preservation", "vq": "Quality"}
"""MedEBench's names of its judge's scores, before the variant: Accuracy_P, Accuracy_D."""

MAIN = ("EA", "CP", "VQ")
"""The three columns of the paper's Table 2, per organ."""


def measure(stored: str, judge: str | None = None) -> Measure:
    """What is known of a stored metric.

    Args:
        stored: as in the journal, e.g. "masked_ssim", "lpips:tiny", "ea@offline/instruments/D".
        judge: the one whose scores are EA, VQ and "CP judge"; another's keep their stored names.
    """
    dimension, _, who = stored.partition("@")
    if who and dimension in _JUDGED:
        name, label = _JUDGED[dimension]
        return Measure(name if who == judge else stored, stored, f"{label} by {who}", True, 0.0, 1.0)
    base, _, wording = dimension.partition(":")
    if who and base in _JUDGED and wording == "published":
        model, _, variant = who.rpartition("/")
        name = f"{_PUBLISHED[base]}_{variant}" if judge is None or judge.startswith(f"{model}/") else stored
        return Measure(name, stored, f"{_JUDGED[base][1]} by {who}, published protocol", True, 0.0, 1.0)
    if who and base in _JUDGED and wording:
        return Measure(
            stored, stored, f"{_JUDGED[base][1]} by {who}, asked in the words of {wording}", True, 0.0, 1.0
        )
    if who:  # by a rubric of somebody's own: the share of its scale
        return Measure(
            stored, stored, f"{base.replace('_', ' ')} by {who}, by the rubric {wording}", True, 0.0, 1.0
        )
    base, _, variant = stored.partition(":")
    known = _known()
    if base not in known and base.rpartition("_")[0] in known:  # "clip_talign_d", "image_reward_p"
        base, variant = base.rpartition("_")[0], f"{base.rpartition('_')[2]}{':' * bool(variant)}{variant}"
    if base not in known:
        return Measure(stored, stored, stored)
    name, label, higher, low, high, digits = known[base]
    if variant:
        return Measure(stored, stored, f"{label} ({variant})", higher, low, high, digits)
    return Measure(name, stored, label, higher, low, high, digits)


def judges(stored: list[str]) -> list[str]:
    """The judges that scored something, best first.

    Whoever sees the truth comes before the blind, the description of the change before the prompt, a model before an
    instrument.
    """
    found = sorted(
        {name.partition("@")[2] for name in stored if name.partition("@")[0] in _JUDGED and "@" in name}
    )
    return sorted(
        found,
        key=lambda who: (
            who.endswith("-blind"),
            who.startswith("offline/"),
            who.rpartition("/")[2][:1] != "D",
        ),
    )


def ordered(stored: list[str], judge: str | None) -> list[Measure]:
    """All metrics in the order of a table: EA, CP, VQ, then the known ones, then the rest by name."""
    known = _known()
    names = sorted(known, key=lambda name: name not in _FIRST)
    order = [*MAIN, "CP judge", *(known[name][0] for name in (*_FIRST, *names) if name in known)]
    rank = {name: i for i, name in enumerate(dict.fromkeys(order))}
    measures = [measure(name, judge) for name in stored]
    return sorted(
        measures,
        key=lambda m: (rank.get(m.name, rank.get(m.stored.partition(":")[0], len(rank))), m.name),
    )
