"""MedEBench's published scores and ranks, JSON files, as a table.

A file is recognised by its content. Each number belongs to one sample, model and name: a judge's score, `masked_ssim`,
or a dimension of the human study. Sample, model and (of ranks) organ are its keys, in any of the published nestings.

The published `masked_ssim` is `cp_reference` here, which is what its code computes.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.native_format import is_benchmark
from plantain.bench.benchmark.samples import id_order
from plantain.bench.generate.runfile import Arm, ArmKind, SampleFacts
from plantain.bench.leaderboard.scores import Scores
from plantain.files.opening import read_regular
from plantain.records import InputError

FILE = "published_scores.json"
JUDGE = "gpt-4o"


def published_files(path: Path) -> list[Path]:
    """Return MedEBench's published JSON files at a path, a file or a folder; [] for a run or a benchmark."""
    if path.is_file():
        return [path] if path.suffix == ".json" else []
    if (path / "journal.sqlite").exists() or is_benchmark(path):
        return []
    return [file for file in sorted(path.glob("*.json")) if file.name == FILE or is_published_file(file)]


def published_scores(*paths: Path) -> Scores:
    """Read published scores and ranks.

    Args:
        paths: files, or folders with them; the files of human ranks also name the samples' organs.

    Raises:
        InputError: a file has another form; the message names sample, model and field.
    """
    files = [read_published(file) for path in paths for file in published_files(path)]
    names = [file.path.name for file in files]
    ranked = {sample for file in files if file.ranks for sample in file.rows}
    for file in files:  # ids that are not numbers leave the nesting open: the samples of the ranks decide
        inner = {model for models in file.rows.values() for model in models}
        if not ranked & file.rows.keys() and ranked & inner:
            file.rows = {s: {model: rows.get(s, {}) for model, rows in file.rows.items()} for s in inner}
    spelt: set[str] = set()
    # scores are spelt "Gemini 2 Flash", ranks "gemini_2_flash": those of the scores are kept
    for file in sorted(files, key=lambda file: file.ranks):
        own = file.match(spelt)
        file.rows = {s: {own[m]: row for m, row in models.items()} for s, models in file.rows.items()}
        spelt.update(own.values())
    organs = {sample: organ for file in files for sample, organ in file.organs.items()}
    samples = sorted({sample for file in files for sample in file.rows}, key=id_order)
    models = list(dict.fromkeys(m for sample in samples for file in files for m in file.rows.get(sample, ())))
    scores = Scores(
        runs=("published",),
        benchmark="MedEBench, published numbers" if FILE in names else ", ".join(names),
        seed=0,
        samples=tuple(
            SampleFacts(sample, organs.get(sample, "not published"), "not published", cluster=sample)
            for sample in samples
        ),
        arms=tuple(Arm(model, f"outputs/{model}", ArmKind.OUTPUTS) for model in models),
        remarks=(COLLECTED,) if any(file.ranks for file in files) else (),
    )
    place = {sample: i for i, sample in enumerate(samples)}
    for file in files:
        for sample, by_model in file.rows.items():
            for model, name, value in (
                (m, name, v) for m, row in by_model.items() for name, v in row.items()
            ):
                key, unit = (
                    (model, _STORED[name]),
                    10.0 if name in LIMITS and LIMITS[name][1] == 10.0 else 1.0,
                )
                if value == FAILED and unit == 10.0:
                    scores.missing.setdefault(key, Counter())["the published judge failed (-1)"] += 1
                else:
                    blank = np.full((len(samples), 1), np.nan)
                    scores.outputs.setdefault(key, blank)[place[sample], 0] = value / unit
    return scores


def _folded(name: str) -> str:
    """Return a model's name in small letters, digits and "+" only."""
    return re.sub(r"[^\w+]|_", "", name.casefold())


MAX_BYTES = 64 * 2**20
FAILED = -1.0
"""The published judge's value for a reply that it could not read."""

RANKED = {"accuracy": "EA", "context": "CP", "quality": "VQ"}
"""Published name of a dimension of the human study -> ours."""

_JUDGED = {"editing_accuracy": "ea", "contextual_preservation": "cp", "visual_quality": "vq"}
LIMITS = {"masked_ssim": (-1.0, 1.0)} | {
    f"gpt4o_{name}{suffix}": (0.0, 10.0) for suffix in ("_detailed", "") for name in _JUDGED
}
"""Published name of a score -> lowest and highest number."""

_STORED = {"masked_ssim": "cp_reference"} | {
    f"gpt4o_{name}{suffix}": f"{short}@{JUDGE}/{variant}"
    for suffix, variant in (("_detailed", "D"), ("", "P"))
    for name, short in _JUDGED.items()
}
_STORED |= {name: f"rank_{ours.lower()}" for name, ours in RANKED.items()}
"""Published name -> stored name."""


COLLECTED = (
    "If these ranks are MedEBench's published ones: the published panel fills each box with an earlier rank or the "
    "rank by an automated metric (Editing Accuracy, masked SSIM, Visual Quality by the description), the same three "
    "that are then reported as best; images were shown at 128 x 128 in a fixed order of models. The published "
    "correlations (0.79, 0.82, 0.82) and agreement (0.91) may be inflated by this; the files do not show by how much."
)
"""The remark on correlations with the published ranks."""


@dataclass(slots=True)
class PublishedFile:
    """The content of one of MedEBench's published files.

    Attributes:
        path: the file.
        ranks: True for ranks by people (1 is best), False for automated scores.
        rows: sample -> model -> published name -> number.
        organs: organ by sample, if the file states it.
    """

    path: Path
    ranks: bool
    rows: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    organs: dict[str, str] = field(default_factory=dict)

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(model for row in self.rows.values() for model in row))

    def match(self, known: Collection[str]) -> dict[str, str]:
        """Match the file's models to known names by letters, digits and "+". Raise InputError if several match."""
        keys = {name: _folded(name) for name in (*self.models, *known)}
        own = dict(zip(self.models, self.models, strict=True))
        for model in sorted(own.keys() - known):
            alike = sorted(name for name in keys if name != model and keys[name] == keys[model])
            if len(alike) > 1 or own.keys() & alike:
                raise InputError(f"{self.path}: {model!r} may be {' or '.join(alike)}: rename all but one")
            own[model] = alike[0] if alike else model
        return own


def is_published_file(path: Path) -> bool:
    """Return True if a file is readable and has the form of one of MedEBench's published files."""
    try:
        data = json.loads(read_regular(path, str(path), MAX_BYTES))
    except (InputError, OSError, ValueError):
        return False
    return any(name in RANKED or name in LIMITS for keys, _ in _leaves(data, ()) for name in keys)


def read_published(path: Path) -> PublishedFile:
    """Read the scores or ranks of one published file.

    A null or NaN counts as missing.

    Raises:
        InputError: not JSON or another form; the message names sample, model and metric.
    """
    text = read_regular(path, str(path), MAX_BYTES)
    try:  # Python's scripts write NaN
        data = json.loads(text, parse_constant=lambda name: None if name == "NaN" else name)
    except ValueError as error:
        raise InputError(f"{path}: not JSON: {str(error)[:200]}") from error
    if not isinstance(data, dict):
        raise InputError(f"{path}: scores: expected numbers by sample, model and metric")
    leaves = list(_leaves(data, ()))
    found = PublishedFile(path, any(RANKED.keys() & keys for keys, _ in leaves))
    names = RANKED if found.ranks else LIMITS
    numbers: list[tuple[list[str], str, float]] = []
    for keys, value in leaves:
        around = [key for key in keys if key not in names]
        where = f"{path}: {', '.join(key[:80] for key in keys)}"
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or len(keys) < 3:
            given = f", not {value[:40]!r}" if isinstance(value, str) else ""
            raise InputError(f"{where}: expected numbers by sample, model and metric{given}")
        if len(around) == len(keys) or len(around) > 2 + found.ranks:
            *outer, last = (key[:80] for key in keys)
            kinds = ("ranks by people", "scores")[:: 1 if found.ranks else -1]
            others = f"{kinds[1]} need another file: {', '.join(LIMITS if found.ranks else RANKED)}"
            where = f"{path}: sample {', '.join(outer)}: {last}"
            raise InputError(f"{where}: not one of {', '.join(names)} ({kinds[0]}); {others}")
        numbers.append((around, next(key for key in keys if key in names), float(value)))
    if not numbers:
        raise InputError(f"{path}: no scores by sample")
    turned = all(around[-1].isdecimal() and not around[-2].isdecimal() for around, _, _ in numbers)
    for around, name, value in numbers:
        sample, model = reversed(around[-2:]) if turned else around[-2:]
        where = f"{path}: sample {sample[:40]}, {model[:80]}: {name}"
        low, high = (1.0, 1e6) if found.ranks else LIMITS[name]
        if not low <= value <= high and not (value == FAILED and high == 10.0):
            ranks = f"; ranks are numbers from 1; for scores use {', '.join(LIMITS)}" if found.ranks else ""
            raise InputError(f"{where}: {value:g} is not from {low:g} to {high:g}{ranks}")
        if len(around) == 3 and found.organs.setdefault(sample, around[0]) != around[0]:
            raise InputError(f"{where}: the sample is under {found.organs[sample]} and under {around[0]}")
        found.rows.setdefault(sample, {}).setdefault(model, {})[name] = value
    return found


def _leaves(data: object, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(data, dict) and len(keys) < 5:
        for key, value in data.items():
            yield from _leaves(value, (*keys, key))
    elif keys:
        yield keys, data
