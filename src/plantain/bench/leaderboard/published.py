"""MedEBench's published scores and pictures as a table: a folder with `published_scores.json` and `{id}_{Model}.png`.

The published `masked_ssim` is `cp_reference` here, which is what its code computes; plain SSIM with the previous image
is measured beside it where the pictures are there. Masking by zeros can only raise a score, up to the one decimal that
was published, so that plain SSIM above the published number would contradict that reading of the code.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

from plantain.bench.generate.arms import Arm, ArmKind
from plantain.bench.generate.runfile import SampleFacts
from plantain.bench.leaderboard.gallery import BYTES, SIDE, GalleryPicture, SampleStory
from plantain.bench.leaderboard.table_rows import Scores
from plantain.bench.leaderboard.tables import Table
from plantain.files.opening import read_inside, read_regular
from plantain.metrics.ssim import ssim
from plantain.metrics.statistics.ranks import spearman
from plantain.pages.thumbnails import data_uri
from plantain.pixels.arrays import Floats, Pixels
from plantain.pixels.decode import decode_untrusted
from plantain.records import InputError, Licence

FILE = "published_scores.json"
JUDGE = "gpt-4o/D"
ROUNDING = 0.05
"""Half of the last published decimal."""

PLAIN = "ssim_previous"
"""Plain SSIM of output and previous image, over the whole frame."""

_STORED = {
    "masked_ssim": ("cp_reference", 1.0, -1.0, 1.0),
    "gpt4o_editing_accuracy_detailed": (f"ea@{JUDGE}", 10.0, 0.0, 10.0),
    "gpt4o_visual_quality_detailed": (f"vq@{JUDGE}", 10.0, 0.0, 10.0),
}
"""Published name -> stored name, divisor, and the range of the published number."""


@dataclass(frozen=True, slots=True)
class PublishedAgreement:
    """Plain SSIM against the published masked SSIM.

    Attributes:
        pairs: (sample, model) with both; within: those whose plain SSIM is at most the published one and its rounding.
        rank_correlation: mean over images of Spearman's rho across models; None without pictures.
        lowest: the lowest of those.
    """

    pairs: int
    within: int
    rank_correlation: float | None
    lowest: float | None

    @property
    def line(self) -> str:
        """The comparison as a line."""
        if self.rank_correlation is None or self.lowest is None:
            return "Without the pictures nothing can be held against the published masked SSIM."
        return (
            f"Plain SSIM is at most the published masked SSIM and its rounding in {self.within} of {self.pairs} "
            "pairs; within an image the two order models with a Spearman correlation of "
            f"{self.rank_correlation:z.2f} on average (lowest {self.lowest:z.2f})."
        )


def is_published(path: Path) -> bool:
    """Whether a folder holds published scores rather than a run."""
    return (path / FILE).is_file()


def published_scores(folder: Path) -> Scores:
    """Reads the published scores, and measures plain SSIM where the pictures are beside them.

    Raises:
        InputError: the file is no such table; names sample, model and field.
    """
    tables = _read(folder / FILE)
    samples = sorted(tables, key=lambda key: (not key.isdecimal(), int(key) if key.isdecimal() else 0, key))
    models = list(dict.fromkeys(model for sample in samples for model in tables[sample]))
    outputs: dict[tuple[str, str], Floats] = {}
    missing: dict[tuple[str, str], Counter[str]] = {}
    for i, sample in enumerate(samples):
        for model, row in tables[sample].items():
            for name, value in row.items():
                stored, divisor, low, high = _STORED[name]
                key = (model, stored)
                if low <= value <= high and not (value == -1.0 and low == 0.0):
                    outputs.setdefault(key, np.full((len(samples), 1), np.nan))[i, 0] = value / divisor
                elif value == -1.0:
                    missing.setdefault(key, Counter())["the published judge failed (-1)"] += 1
                else:
                    raise InputError(
                        f"{folder / FILE}: sample {sample}, {model}: {name}: {value:g} is not from {low:g} to {high:g}"
                    )
    for model in models:
        measured = _plain(folder, samples, model)
        if np.isfinite(measured).any():
            outputs[model, PLAIN] = measured
    facts = tuple(_facts(folder, sample) for sample in samples)
    arms = tuple(Arm(model, f"outputs/{model}", ArmKind.OUTPUTS) for model in models)
    return Scores("published", "MedEBench, published examples", 0, facts, arms, outputs, missing)


def plain_against_published(scores: Scores) -> PublishedAgreement:
    """How plain SSIM stands to the published masked SSIM."""
    published = np.stack([scores.values(arm, "cp_reference") for arm in scores.arms], axis=1)
    plain = np.stack([scores.values(arm, PLAIN) for arm in scores.arms], axis=1)
    both = np.isfinite(published) & np.isfinite(plain)
    within = both & (plain <= published + ROUNDING + 1e-9)
    rho = [spearman(a, b).value for a, b in zip(plain, published, strict=True)]
    known = [value for value in rho if value is not None]
    return PublishedAgreement(
        int(both.sum()),
        int(within.sum()),
        float(np.mean(known)) if known else None,
        min(known, default=None),
    )


def published_stories(folder: Path, table: Table, size: int) -> list[SampleStory]:
    """The pictures of up to `size` samples; no regions, as those were not published."""
    stories = []
    for i, facts in enumerate(table.scores.samples[:size]):
        before = _picture(folder, facts.id, "Previous")
        if before is None:
            continue
        truth = _picture(folder, facts.id, "Ground Truth")
        shown = []
        for arm in table.general:
            output = _picture(folder, facts.id, arm.label)
            values = tuple(
                (measure.name, f"{value:z.2f}" if math.isfinite(value) else "–")
                for measure in table.main
                for value in [float(table.scores.values(arm, measure.stored)[i])]
            )
            uri = None if output is None else data_uri(output, SIDE, BYTES, synthetic=True)
            shown.append(GalleryPicture(arm.label, False, uri, "" if uri else "no picture", values))
        stories.append(
            SampleStory(
                facts=facts,
                size=(before.shape[1], before.shape[0]),
                previous=data_uri(before, SIDE, BYTES, synthetic=False),
                truth=None if truth is None else data_uri(truth, SIDE, BYTES, synthetic=False),
                truth_values=(),
                synthetic=(False, False),
                outline="",
                outputs=tuple(shown),
            )
        )
    return stories


def _read(path: Path) -> dict[str, dict[str, dict[str, float]]]:
    try:
        tables = orjson.loads(read_regular(path, str(path)))
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path}: not JSON: {str(error)[:200]}") from error
    if not isinstance(tables, dict) or not tables:
        raise InputError(f"{path}: expected scores by sample")
    for sample, models in tables.items():
        if not isinstance(models, dict) or not models:
            raise InputError(f"{path}: sample {sample[:40]}: expected scores by model")
        for model, row in models.items():
            if not isinstance(row, dict):
                raise InputError(f"{path}: sample {sample[:40]}, {model[:80]}: expected scores by metric")
            for name, value in row.items():
                where = f"{path}: sample {sample[:40]}, {model[:80]}: {name[:60]}"
                if name not in _STORED:
                    raise InputError(f"{where}: not one of {', '.join(_STORED)}")
                if not isinstance(value, int | float) or isinstance(value, bool):
                    raise InputError(f"{where}: expected a number")
    return tables


def _plain(folder: Path, samples: list[str], model: str) -> Floats:
    found = np.full((len(samples), 1), np.nan)
    for i, sample in enumerate(samples):
        before, after = _picture(folder, sample, "Previous"), _picture(folder, sample, model)
        if before is not None and after is not None and before.shape == after.shape:
            value = ssim(before, after).value
            found[i, 0] = np.nan if value is None else value
    return found


def _picture(folder: Path, sample: str, name: str) -> Pixels | None:
    path = folder / f"{sample}_{name.replace(' ', '_').replace('/', '_')}.png"
    return decode_untrusted(read_inside(folder, path), str(path)) if path.is_file() else None


def _facts(folder: Path, sample: str) -> SampleFacts:
    before = _picture(folder, sample, "Previous")
    return SampleFacts(
        id=sample,
        organ="not published",
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
        has_truth=_picture(folder, sample, "Ground Truth") is not None,
        has_roi=False,
        roi_share=None,
        content="",
    )
