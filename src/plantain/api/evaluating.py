"""Evaluate an editor on a benchmark from Python: a model's name, an object or a plain function."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import io
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from PIL import Image

from plantain.api.blocking import finished
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.generate import generate
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun
from plantain.bench.leaderboard.rows import difference_json, table_json
from plantain.bench.leaderboard.scores import read_scores
from plantain.bench.leaderboard.tables import OVERALL, make_table
from plantain.bench.score.judging import JudgeName
from plantain.bench.score.score import ScoreRequest, score_run
from plantain.offline.workers import leave_workers, use_workers
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import InputError, Outcome, OutcomeKind
from plantain.roles import EditedImage, Editor, EditRequest, EncodedImage, Reply, failed
from plantain.runs.settings.terms import load_terms
from plantain.runs.summary import RunSummary

if TYPE_CHECKING:
    import pandas

EditFunction: TypeAlias = Callable[[Pixels, str], Pixels]
"""(image, instruction) -> edited image: uint8 arrays of shape (H, W, 3), RGB, the same size."""


@dataclass(frozen=True, slots=True)
class FunctionEditor:
    """A Python function as an editor; called in threads, for several samples at once."""

    function: EditFunction
    name: str
    fingerprint: str

    @classmethod
    def of(cls, function: EditFunction) -> FunctionEditor:
        """Name it "python/FUNCTION"; its fingerprint changes with its source, or its byte code without one."""
        called = re.sub(r"[^\w.-]", "", getattr(function, "__name__", type(function).__name__)) or "function"
        try:
            text = inspect.getsource(function)
        except (OSError, TypeError):
            text = repr(getattr(getattr(function, "__code__", None), "co_code", b""))
        return cls(function, f"python/{called}", f"python {hashlib.sha256(text.encode()).hexdigest()[:16]}")

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        before = decode(request.original.data)
        after = await asyncio.to_thread(self.function, before, request.instruction)
        if not isinstance(after, np.ndarray) or after.dtype != np.uint8 or after.shape != before.shape:
            shape = getattr(after, "shape", None)
            got = f"{type(after).__name__} {getattr(after, 'dtype', '')} {'' if shape is None else shape}".split()
            wanted = f"a uint8 array of shape {before.shape}"
            return failed(Outcome(OutcomeKind.MALFORMED, f"{self.name} gave {' '.join(got)}, not {wanted}"))
        buffer = io.BytesIO()
        Image.fromarray(after).save(buffer, "PNG", compress_level=1)
        return Reply(EditedImage(EncodedImage(buffer.getvalue(), "image/png"), pixels=after))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of `evaluate`.

    Attributes:
        path: the run's folder; `plantain bench table PATH` makes the page.
        generated, scored: what this call did, and in `stopped` why something is left.
    """

    path: Path
    generated: RunSummary
    scored: RunSummary

    def rows(self) -> list[dict[str, Any]]:
        """The leaderboard as `plantain bench table --json` gives it: one row per model, organ and metric.

        `low` and `high` are the ends of a 95 % interval of the mean; `coverage` in [0, 1] is the share of outputs
        that have a score.
        """
        with BenchRun.open(self.path) as run:
            table = make_table(read_scores(run))
        return [dict(row) for row in table_json(table.cells.values(), table)]

    def pairs(self, against: str = "copy-input") -> list[dict[str, Any]]:
        """Return each model minus `against` over all samples: one row per model and metric.

        `difference_low` and `difference_high` are the ends of a 95 % interval; `difference_p_holm` is corrected over
        the models.

        Raises:
            plantain.records.InputError: no such model.
        """
        with BenchRun.open(self.path) as run:
            table = make_table(read_scores(run), None, against)
        return [
            {"model": model, "metric": metric, **difference_json(pair, against)}
            for (model, metric), pair in table.against.items()
        ]

    def table(self) -> pandas.DataFrame:
        """Return the means over all samples as a pandas table: one row per model, one column per metric.

        Raises:
            plantain.records.InputError: pandas is not installed; `rows` works without.
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
) -> Evaluation:
    """Evaluate an editor on a benchmark, beside the baselines, as `bench generate` and `bench score`.

    Outputs and scores that are in the run's folder are kept.

    Args:
        editor: a name ("gemini/gemini-3.1-flash-image"), an object that fills the editor's role, or a function
            (image, instruction) -> image over uint8 arrays of shape (H, W, 3) of one size.
        benchmark: one that was loaded, or its folder.
        run_dir: for outputs and scores; default: a new temporary folder.
        metrics: names, e.g. ["psnr", "ssim"]; None for all that can be measured here.
        judges: names, e.g. ["offline/instruments"]; none by default.
        seeds: outputs for each sample, at least 1.
        settings: TOML with [limits], [providers.NAME] and [consent], for hosted models.

    Raises:
        plantain.records.InputError: editor, judge, metric or benchmark cannot be used; no model was called.

    Example:
        >>> def untouched(image, instruction):
        ...     return image
        >>> found = evaluate(untouched, "bench", metrics=["ssim"], run_dir="runs/bench")
        >>> sorted({row["model"] for row in found.rows()})
        ['copy-input', 'ground-truth', 'jpeg-75', 'python/untouched', 'resize-only']
    """
    loaded = benchmark if isinstance(benchmark, Benchmark) else Benchmark.load(benchmark)
    wanted = _wanted(editor, seeds)
    file = None if settings is None else Path(settings)
    terms = load_terms(file, wanted.models)
    variant = "D" if any(sample.detailed for sample in loaded.samples) else "P"
    seats = tuple(JudgeName(name, variant, True, None) for name in judges)
    judging = load_terms(file, tuple(dict.fromkeys(judges)))
    path = Path(tempfile.mkdtemp(prefix="plantain-evaluate-") if run_dir is None else run_dir)

    async def work() -> Evaluation:
        made = await generate(loaded, path, wanted, terms)
        wish = ScoreRequest(metrics, seats)
        return Evaluation(path, made, await score_run(path, loaded, wish, terms=judging))

    use_workers()
    try:
        return finished(work)
    finally:
        leave_workers()


def _wanted(editor: str | Editor | EditFunction, seeds: int) -> ArmRequest:
    if isinstance(editor, str):
        return ArmRequest(editors=(editor,), seeds=seeds)
    own: Editor = editor if isinstance(editor, Editor) else FunctionEditor.of(editor)
    return ArmRequest(own={own.name: own}, seeds=seeds)
