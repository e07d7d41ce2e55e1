"""Evaluate an editor on a benchmark from Python: a model's name, an object or a plain function."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plantain.api.building import finished
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.editors import EditFunction, FunctionEditor, Images
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.export import difference_json, table_json
from plantain.bench.leaderboard.reading import read_scores
from plantain.bench.leaderboard.tables import OVERALL, make_table
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, chosen, score_run
from plantain.offline.workers import leave_workers, use_workers
from plantain.records import InputError
from plantain.roles import Editor
from plantain.runs.progress import PlainProgress, RunSummary
from plantain.runs.setup import RunSetup
from plantain.runs.terms import load_terms

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of `evaluate`.

    Attributes:
        path: folder of the run with outputs and scores; `plantain bench table PATH` makes its leaderboard page.
        generated, scored: counts of this call; `stopped` in each is the reason for unfinished work, or None.
    """

    path: Path
    generated: RunSummary
    scored: RunSummary

    def rows(self) -> list[dict[str, Any]]:
        """Return the leaderboard as `plantain bench table --json` prints it: one row per model, organ and metric.

        Only the first output of each sample counts; `coverage`, in [0, 1], is the share of samples where it is scored.
        The organ "overall" has all samples. `low` and `high`: ends of the mean's 95 % interval, None without one.
        """
        with BenchRun.open(self.path) as run:
            table = make_table(read_scores(run))
        return [dict(row) for row in table_json(table.cells.values(), table)]

    def pairs(self, against: str = "copy-input") -> list[dict[str, Any]]:
        """Return each model's mean score minus that of the model or baseline `against`: a row per model and metric.

        Differences are paired over the samples that both have scores for; without any, the row is missing.
        `difference_low` and `difference_high` are the ends of the 95 % interval of `difference`; `difference_p_holm` is
        its p value, corrected for the number of models (Holm). Each is None if it cannot be computed. Raise
        InputError if `against` is unknown.
        """
        with BenchRun.open(self.path) as run:
            table = make_table(read_scores(run), None, against)
        return [
            {"model": model, "metric": metric, **difference_json(pair, against)}
            for (model, metric), pair in table.against.items()
        ]

    def table(self) -> pandas.DataFrame:
        """Return the means over all samples as a DataFrame: one row per model or baseline, one column per metric.

        The names are in the column `model`; a missing mean is null. InputError without pandas; `rows` works without it.
        """
        try:
            import pandas
        except ImportError:
            raise InputError(
                "Evaluation.table needs pandas: pip install pandas; Evaluation.rows() works without"
            ) from None
        means: dict[str, dict[str, Any]] = {}
        for row in self.rows():
            if row["organ"] == OVERALL:
                means.setdefault(row["model"], {})[row["metric"]] = row["mean"]
        return pandas.DataFrame.from_dict(means, orient="index").rename_axis("model").reset_index()


def evaluate(
    editor: str | Editor | EditFunction,
    benchmark: Benchmark | Path | str,
    *,
    run_dir: Path | str | None = None,
    metrics: Sequence[str] | None = None,
    judges: Sequence[str] = (),
    seeds: int = 1,
    settings: Path | str | None = None,
    images: Images | None = None,
) -> Evaluation:
    """Evaluate an editor and the baselines on a benchmark, like `bench generate` and `bench score`; return the scores.

    Outputs and scores that the run's folder already contains are reused.

    Args:
        editor: a name ("gemini/gemini-3.1-flash-image"), an object with the methods of `Editor`, or a function
            (image, instruction) -> image, plain or async, over uint8 RGB arrays of shape (H, W, 3) or PIL images, of
            one size. If it raises or returns anything else, the output is unscored, with the error as its reason.
        benchmark: a loaded benchmark, or its path as for `Benchmark.load`.
        run_dir: folder for outputs and scores, created if missing; None for a new temporary folder.
        metrics: names, e.g. ["psnr", "ssim"]; None for all that this machine can measure.
        judges: names, e.g. ["offline/instruments"]; none by default.
        seeds: number of outputs for each sample, at least 1.
        settings: TOML file with [limits], [providers.NAME] and [consent], for hosted models; None for the defaults.
        images: type of the image passed to a function, "array" or "pil"; None: by its annotations, else "array".

    Raises:
        plantain.records.InputError: editor, judge, metric or benchmark cannot be used. No model was called,
            except if a judge has no key or package: this is detected after the outputs are made.

    Example:
        >>> def untouched(image, instruction):
        ...     return image
        >>> found = evaluate(untouched, "bench", metrics=["ssim"], run_dir="runs/bench")
        >>> sorted({row["model"] for row in found.rows()})
        ['copy-input', 'ground-truth', 'jpeg-75', 'python/untouched', 'resize-only']
    """
    loaded = benchmark if isinstance(benchmark, Benchmark) else Benchmark.load(benchmark)
    wanted = _wanted(editor, seeds, images)
    file = None if settings is None else Path(settings)
    terms = load_terms(file, wanted.models)
    variant = "D" if any(sample.detailed for sample in loaded.samples) else "P"
    seats = tuple(JudgeName(name, variant) for name in judges)
    judging = load_terms(file, tuple(dict.fromkeys(judges)))
    RunSetup(judging).check(images=(s.image for s in loaded.samples), named=judging.models, by="--judge")
    chosen(metrics)  # both raise an InputError before a model is called
    path = Path(tempfile.mkdtemp(prefix="plantain-evaluate-") if run_dir is None else run_dir)

    progress = PlainProgress()

    async def work() -> Evaluation:
        made = await generate(loaded, path, wanted, terms, observer=progress)
        _warn_of_missing(path, wanted.own)
        request = ScoreRequest(metrics, seats)
        scored = await score_run(path, loaded, request, terms=judging, observer=progress)
        return Evaluation(path, made, scored)

    use_workers()
    try:
        return finished(work)
    finally:
        leave_workers()


def _warn_of_missing(path: Path, labels: Iterable[str]) -> None:
    """Print one line for each of the caller's editors that made no image of some samples, with the reasons."""
    with BenchRun.open(path) as run:
        for label in labels:
            outputs = list(run.outputs(label))
            lost = [output.reason for output in outputs if output.edited is None]
            if lost:
                reasons = Counter(str(reason) for reason in lost).most_common(3)
                why = "; ".join(
                    f"{n} of {len(outputs)} outputs have no image: {reason}" for reason, n in reasons
                )
                print(f"plantain: warning: {label}: {why}", file=sys.stderr)


def _wanted(editor: str | Editor | EditFunction, seeds: int, images: Images | None) -> ArmRequest:
    if isinstance(editor, str):
        return ArmRequest(editors=(editor,), seeds=seeds)
    own: Editor = editor if isinstance(editor, Editor) else FunctionEditor.of(editor, images)
    return ArmRequest(own={own.name: own}, seeds=seeds)
