"""A benchmark of real images and a run of it with made-up scores, so that tables can be counted by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.small_bench import small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.benchmark.samples import Sample
from plantain.bench.generate.editors import BASELINES
from plantain.bench.generate.plan import sample_facts
from plantain.bench.generate.runfile import Arm, ArmKind, BenchHeader, GridPoint, bench_task_id, write_bench
from plantain.journal import BlobRef, CallResult, Journal, RunHeader, StartedCall, StoredScore
from plantain.records import (
    OK,
    Attempt,
    CallKey,
    EditTask,
    Outcome,
    OutcomeKind,
    Score,
    Step,
    TaskKind,
    TaskState,
    Usage,
    unscored,
)

REFUSED = Outcome(OutcomeKind.REFUSED, "the provider declined")
JUDGE = "offline/instruments/D"

ScoresOf = Callable[[Arm, int, int], Mapping[str, float | None]]
"""(arm, index of the sample, k) -> stored metric -> value; None is unscored, an absent metric has no row."""


@dataclass(frozen=True)
class Made:
    """Paths of the fixture."""

    bench: Path
    run: Path


def make_benchmark(out: Path, organs: Sequence[str], per_organ: int) -> Benchmark:
    """`per_organ` samples each, two of one source image; the truth is a soft bright disc in the region."""
    samples, prompt = len(organs) * per_organ, "Add a bright disc <b>below</b> the centre."
    return small_bench(out, samples, tasks=2, size=(96, 96), organs=organs, pairs=samples, prompt=prompt)


def baselines() -> list[Arm]:
    return [Arm(label, f"baseline/{label}", ArmKind.BASELINE) for label in BASELINES]


def make_run(
    run: Path, bench: Benchmark, arms: Sequence[Arm], scores: ScoresOf, *, images: bool = True
) -> Path:
    """A run with one attempt per output and the given scores. An output with no score at all was refused."""
    asyncio.run(_make_run(run, bench, arms, scores, images))
    return run


async def _make_run(run: Path, bench: Benchmark, arms: Sequence[Arm], scores: ScoresOf, images: bool) -> None:
    facts = {sample.id: sample_facts(bench, sample) for sample in bench.samples}
    async with Journal.create(run, RunHeader("run", "made-up", 7, {}, "0.1.0")) as journal:
        header = BenchHeader.of(bench, run)
        await write_bench(journal, header, arms, facts)
        rows: list[StoredScore] = []
        for i, sample in enumerate(bench.samples):
            blob = journal.put_blob(sample.previous.read_bytes(), "image/png")
            await journal.add_images([(sample.image, blob)])
            for arm in arms:
                if not arm.covers(sample.id):
                    continue
                task = bench_task_id(sample, arm.label)
                await journal.add_tasks(
                    [EditTask(task, sample.id, sample.organ, arm.label, sample.direction, TaskKind.BENCH)]
                )
                for k in range(len(arm.grid)):
                    found = scores(arm, i, k)
                    refused = bool(found) and all(value is None for value in found.values())
                    output = blob
                    if images and not refused:
                        output = journal.put_blob(encode_png(_output(bench, sample, arm, k)), "image/png")
                    await _attempt(journal, sample, arm, task, k, None if refused else output)
                    reason = "refused" if refused else "the judge's reply was no JSON"
                    rows += [
                        StoredScore(task, 0, k + 1, name, unscored(reason) if value is None else Score(value))
                        for name, value in found.items()
                    ]
                await journal.close_task(task, TaskState.SUCCESS, 1, "")
        await journal.add_scores(rows)


async def _attempt(
    journal: Journal, sample: Sample, arm: Arm, task: str, k: int, output: BlobRef | None
) -> None:
    key = CallKey(task, 0, k + 1, Step.EDIT)
    call = await journal.start_call(StartedCall(key, 1, arm.model, "0" * 64, None))
    outcome = REFUSED if output is None else OK
    edited = None if output is None else output.sha256
    attempt = Attempt(task, 0, k + 1, sample.prompt, edit_outcome=outcome, edited=edited, raw=edited)
    blobs = () if output is None else (output,)
    await journal.settle_call(
        CallResult(call, outcome, True, Usage(), None, 0.1, "", "", blobs=blobs, attempt=attempt)
    )


def _output(bench: Benchmark, sample: Sample, arm: Arm, k: int) -> np.ndarray:
    before, truth = bench.previous(sample).astype(float), bench.changed(sample).astype(float)
    if arm.label == "ground-truth":
        return truth.astype(np.uint8)
    if arm.kind is ArmKind.BASELINE:
        return before.astype(np.uint8)
    strength = (1.0, 0.5, 0.2)[len(arm.label) % 3] * (1 - 0.2 * k)
    return np.clip(before + strength * (truth - before), 0, 255).astype(np.uint8)


EXACT, WEAK, NOISY = (
    Arm("planted/exact", "planted/exact"),
    Arm("planted/weak-and-rather-long-name", "planted/weak"),
    Arm("planted/<i>noisy</i>", "planted/noisy"),
)
SWEPT = Arm(
    "offline/swept",
    "offline/swept",
    grid=tuple(
        GridPoint(0, {"guidance": g, "image_guidance": i}) for g in (5.0, 7.5) for i in (1.5, 1.8, 2.0)
    ),
)


def shot_arms(samples: tuple[str, ...]) -> list[Arm]:
    return [Arm(f"gemini/m+{n}shot", "gemini/m", shots=n, samples=samples) for n in range(3)]


def plain_scores(arm: Arm, i: int, k: int) -> Mapping[str, float | None]:
    """On EA exact is above weak, weak above noisy; copies keep all and edit nothing; one refusal, one failed judge."""
    rng = np.random.default_rng([i, k, *arm.label.encode()])
    wobble = 0.04 * rng.standard_normal()
    table = {
        EXACT.label: (0.92, 0.97, 0.9),
        WEAK.label: (0.55, 0.95, 0.85),
        NOISY.label: (0.5, 0.62, 0.4),
        "copy-input": (0.05, 1.0, 0.95),
        "resize-only": (0.05, 0.93, 0.9),
        "jpeg-75": (0.05, 0.9, 0.85),
        "ground-truth": (1.0, 0.98, 0.97),
        SWEPT.label: (0.3 + 0.05 * k, 0.9 - 0.03 * k, 0.7),
    }
    ea, cp, vq = table.get(arm.label) or (0.7 - 0.03 * (arm.shots or 0), 0.85 - 0.06 * (arm.shots or 0), 0.8)
    if arm is WEAK and i == 3:
        return dict.fromkeys(
            (f"ea@{JUDGE}", f"vq@{JUDGE}", f"cp@{JUDGE}", "masked_ssim", "cp_reference", "ssim")
        )
    found: dict[str, float | None] = {
        f"ea@{JUDGE}": float(np.clip(ea + wobble, 0, 1)),
        f"cp@{JUDGE}": float(np.clip(cp + wobble, 0, 1)),
        f"vq@{JUDGE}": None if arm is NOISY and i == 5 else float(np.clip(vq + wobble, 0, 1)),
        "masked_ssim": 1.0 if arm.label == "copy-input" else float(np.clip(cp + wobble / 2, -1, 1)),
        "cp_reference": float(np.clip(cp + 0.02, -1, 1)),
        "ssim": float(np.clip(0.4 + ea / 3 + wobble, -1, 1)),
        "lpips": float(np.clip(0.5 - ea / 3 + wobble, 0, 1)),
    }
    return found


def make_all(folder: Path, *, organs: Sequence[str] = ("Skin", "Eyes", "Teeth"), per_organ: int = 8) -> Made:
    """The whole fixture: three models, a sweep, a few-shot study and the baselines."""
    bench = make_benchmark(folder / "bench", organs, per_organ)
    study = tuple(sample.id for sample in bench.samples[: 2 * len(bench.samples) // 3])
    arms = [*baselines(), EXACT, WEAK, NOISY, SWEPT, *shot_arms(study)]
    return Made(folder / "bench", make_run(folder / "run", bench, arms, plain_scores))
