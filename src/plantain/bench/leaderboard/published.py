"""MedEBench's published scores, ranks and images as a table: JSON files, with `{id}_{Model}.png` beside the first.

The published `masked_ssim` is `cp_reference` here, which is what its code computes; plain SSIM with the previous image
is measured too where the images exist. Masking by zeros can only raise a score, up to the one decimal that was
published: plain SSIM above the published number would contradict that reading of the code.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from plantain.bench.generate.arms import Arm, ArmKind
from plantain.bench.generate.runfile import SampleFacts
from plantain.bench.leaderboard.gallery import BYTES, SIDE, GalleryOutput, SampleStory
from plantain.bench.leaderboard.published_files import (
    COLLECTED,
    FAILED,
    RANKED,
    is_published_file,
    read_published,
)
from plantain.bench.leaderboard.scores import Scores
from plantain.bench.leaderboard.tables import Table
from plantain.files.opening import read_inside
from plantain.metrics.ssim import ssim
from plantain.metrics.statistics.ranks import spearman
from plantain.pages.thumbnails import data_uri
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode_output
from plantain.records import Licence

FILE = "published_scores.json"
JUDGE = "gpt-4o"
ROUNDING = 0.05
"""Half of the last published decimal."""

PLAIN = "ssim_previous"
"""Plain SSIM of output and previous image, over the whole frame."""

_STORED = {"masked_ssim": ("cp_reference", 1.0)} | {
    f"gpt4o_{name}{suffix}": (f"{short}@{JUDGE}/{variant}", 10.0)
    for suffix, variant in (("_detailed", "D"), ("", "P"))
    for name, short in (
        ("editing_accuracy", "ea"),
        ("contextual_preservation", "cp"),
        ("visual_quality", "vq"),
    )
}
_STORED |= {name: (f"rank_{ours.lower()}", 1.0) for name, ours in RANKED.items()}
"""Published name -> stored name, and the number that is 1."""


@dataclass(frozen=True, slots=True)
class PublishedAgreement:
    """Plain SSIM against the published masked SSIM.

    Attributes:
        pairs: (sample, model) with both; within: those whose plain SSIM is at most the published one and its rounding.
        rank_correlation: mean over images of Spearman's rho across models; None without images; lowest: of those.
    """

    pairs: int
    within: int
    rank_correlation: float | None
    lowest: float | None

    @property
    def line(self) -> str:
        """Return the comparison as one line."""
        if self.rank_correlation is None or self.lowest is None:
            return "Without images plain SSIM cannot be compared with the published masked SSIM."
        return (
            f"Plain SSIM is at most the published masked SSIM and its rounding in {self.within} of {self.pairs} "
            "pairs; within an image the two order models with a Spearman correlation of "
            f"{self.rank_correlation:z.2f} on average (lowest {self.lowest:z.2f})."
        )


def published_files(path: Path) -> list[Path]:
    """Return the published files that a path names: itself, or those in a folder; none in a run's."""
    if path.is_file():
        return [path] if path.suffix == ".json" else []
    if (path / "journal.sqlite").exists():
        return []
    return [file for file in sorted(path.glob("*.json")) if file.name == FILE or is_published_file(file)]


def published_scores(*paths: Path) -> Scores:
    """Read published scores and ranks, and measure plain SSIM where the images are beside them.

    Args:
        paths: files, or folders with them; ranks by people name the organs of samples.

    Raises:
        InputError: a file is no such table; names sample, model and field.
    """
    files = [read_published(file) for path in paths for file in published_files(path)]
    folder = files[0].path.parent
    organs = {sample: organ for file in files for sample, organ in file.organs.items()}
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for file in files:
        for sample, by_model in file.rows.items():
            for model, row in by_model.items():
                rows.setdefault(sample, {}).setdefault(model, {}).update(row)
    samples = sorted(rows, key=lambda key: (not key.isdecimal(), int(key) if key.isdecimal() else 0, key))
    models = list(dict.fromkeys(model for sample in samples for model in rows[sample]))
    scores = Scores(
        runs=("published",),
        benchmark="MedEBench, published numbers",
        seed=0,
        samples=tuple(_facts(folder, sample, organs.get(sample, "not published")) for sample in samples),
        arms=tuple(Arm(model, f"outputs/{model}", ArmKind.OUTPUTS) for model in models),
        remarks=(COLLECTED,) if any(file.ranks for file in files) else (),
    )

    def put(model: str, stored: str, i: int, value: float) -> None:
        scores.outputs.setdefault((model, stored), np.full((len(samples), 1), np.nan))[i, 0] = value

    for i, sample in enumerate(samples):
        before = _image(folder, sample, "Previous")
        for model in models:
            after = _image(folder, sample, model)
            if before is not None and after is not None and before.shape == after.shape:
                plain = ssim(before, after).value
                if plain is not None:
                    put(model, PLAIN, i, plain)
        for model, row in rows[sample].items():
            for name, value in row.items():
                stored, high = _STORED[name]
                if value == FAILED and high == 10.0:
                    reasons = scores.missing.setdefault((model, stored), Counter())
                    reasons["the published judge failed (-1)"] += 1
                else:
                    put(model, stored, i, value / high)
    return scores


def published_agreement(scores: Scores) -> PublishedAgreement:
    """Compare plain SSIM with the published masked SSIM."""
    published, plain = (
        np.stack([scores.values(arm, stored) for arm in scores.arms], axis=1)
        for stored in ("cp_reference", PLAIN)
    )
    both = np.isfinite(published) & np.isfinite(plain)
    within = both & (plain <= published + ROUNDING + 1e-9)
    rho = [spearman(a, b).value for a, b in zip(plain, published, strict=True)]
    known = [value for value in rho if value is not None]
    mean = float(np.mean(known)) if known else None
    return PublishedAgreement(int(both.sum()), int(within.sum()), mean, min(known, default=None))


def published_stories(path: Path, table: Table, size: int) -> list[SampleStory]:
    """Return the images of up to `size` samples; regions were not published."""
    folder, stories = (path.parent if path.is_file() else path), []
    for i, facts in enumerate(table.scores.samples[:size]):
        before, truth = _image(folder, facts.id, "Previous"), _image(folder, facts.id, "Ground Truth")
        if before is None:
            continue
        shown = []
        for arm in table.general:
            output = _image(folder, facts.id, arm.label)
            scores = [(m.name, float(table.scores.values(arm, m.stored)[i])) for m in table.main]
            values = tuple((name, f"{value:z.2f}" if math.isfinite(value) else "–") for name, value in scores)
            uri = None if output is None else data_uri(output, SIDE, BYTES, synthetic=True)
            shown.append(GalleryOutput(arm.label, False, uri, "" if uri else "no image", values))
        stories.append(
            SampleStory(
                facts=facts,
                size=facts.size,
                previous=data_uri(before, SIDE, BYTES, synthetic=False),
                truth=None if truth is None else data_uri(truth, SIDE, BYTES, synthetic=False),
                truth_values=(),
                synthetic=(False, False),
                outline="",
                outputs=tuple(shown),
            )
        )
    return stories


def _image(folder: Path, sample: str, name: str) -> Pixels | None:
    path = folder / f"{sample}_{name.replace(' ', '_').replace('/', '_')}.png"
    return decode_output(read_inside(folder, path), str(path)) if path.is_file() else None


def _facts(folder: Path, sample: str, organ: str) -> SampleFacts:
    before = _image(folder, sample, "Previous")
    return SampleFacts(
        id=sample,
        organ=organ,
        task="not published",
        cluster=sample,
        prompt="",
        rephrased="",
        detailed="",
        finding="",
        direction="change",
        modality="photograph",
        licence=Licence.UNKNOWN.value,
        size=(0, 0) if before is None else (before.shape[1], before.shape[0]),
        has_truth=_image(folder, sample, "Ground Truth") is not None,
        has_roi=False,
        roi_share=None,
        content="",
    )
