"""What a study takes before it runs: steps, hours by device, disk. Reads headers of weights; needs no torch.

Hours are an estimate from published peaks of the devices and nothing else: no training was timed on a GPU here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.train.study_plan import StudyCell, StudyPlan

PEAKS = {
    "RTX 4090": (82.6, 165.2),
    "A100": (19.5, 312.0),
    "H100": (66.9, 989.4),
    "16 processor cores": (1.0, 1.0),
}
"""Dense TFLOP/s in float32 and in bfloat16, of NVIDIA's data sheets (SXM boards); the last is a round guess."""

SHARE = 0.35
"""Of the peak that such trainings reach: a third or so is usual."""

ADAPTED = ("to_q", "to_k", "to_v", "to_out.0", "to_qkv_mlp_proj")
UNET_TFLOP, UNET_WEIGHTS = 0.8, 860e6
"""One look of Stable Diffusion 1.5's UNet at 512 x 512, and its weights; others are scaled by weights and area."""


@dataclass(frozen=True, slots=True)
class StudyCost:
    """What a study takes.

    Attributes:
        models: that are trained.
        steps: in all.
        checkpoint_every: steps between checkpoints under the plan's limit; 0 where only a stop writes one.
        weights: that learn, numbers; 0 where the base's files do not say.
        checkpoint_gb: one checkpoint: weights, two moments, and averages if there are any.
        written_gb: all checkpoints together.
        kept_gb: what stays on the disk: the trained models.
        peak_gb: the most at one time: models, and two checkpoints while one replaces the other.
        hours: by device; {} where the base's files do not say.
    """

    models: int
    steps: int
    checkpoint_every: int
    weights: int
    checkpoint_gb: float
    written_gb: float
    kept_gb: float
    peak_gb: float
    hours: dict[str, float]


def steps_of(plan: StudyPlan, cell: StudyCell) -> int:
    """Steps of one model."""
    return plan.steps_per_sample * cell.size // plan.batch


def study_cost(plan: StudyPlan, cells: Sequence[StudyCell], base: Path) -> StudyCost:
    """Counts and estimates; `base` is the folder of the pipeline."""
    steps = [steps_of(plan, cell) for cell in cells]
    shapes = list(_shapes(base))
    total = sum(math.prod(shape) for _, shape in shapes)
    weights = total if plan.lora_rank is None else _adapters(shapes, plan.lora_rank)
    copies = 4 if plan.ema else 3
    checkpoint_gb = weights * 4 * copies / 1e9
    every = _every(plan, steps, checkpoint_gb)
    written = sum(_written(number, every) for number in steps) * checkpoint_gb
    kept = len(steps) * weights * 4 / 1e9
    return StudyCost(
        len(steps),
        sum(steps),
        every,
        weights,
        checkpoint_gb,
        written,
        kept,
        kept + (2 * checkpoint_gb if written else 0.0),
        _hours(plan, sum(steps), total, transformer=(base / "transformer").is_dir()) if total else {},
    )


def _every(plan: StudyPlan, steps: Sequence[int], checkpoint_gb: float) -> int:
    """The plan's distance, or the smallest multiple of it with which all checkpoints keep within the limit; 0: none."""
    longest = max(steps, default=0)
    every = plan.checkpoint_every
    while sum(_written(n, every) for n in steps) * checkpoint_gb > plan.checkpoint_gb:
        if every >= longest:
            return 0
        every += plan.checkpoint_every
    return every


def _written(steps: int, every: int) -> int:
    """Checkpoints of one training: before the first step, at each multiple, and at the end if that is none."""
    return 1 + -(-steps // every) if every else 0


def _adapters(shapes: Sequence[tuple[str, tuple[int, ...]]], rank: int) -> int:
    return sum(
        rank * (shape[0] + shape[1])
        for name, shape in shapes
        if len(shape) == 2 and name.removesuffix(".weight").endswith(tuple(f".{one}" for one in ADAPTED))
    )


def _hours(plan: StudyPlan, steps: int, total: int, *, transformer: bool) -> dict[str, float]:
    """Forward once, back twice; with adapters back once and a little; one look more where activations are not kept."""
    if transformer:  # twice its weights for each token, and as many tokens of the reference as of the output
        look = 2 * total * (2 * (plan.side / 16) ** 2 + 512) / 1e12
    else:
        look = UNET_TFLOP * total / UNET_WEIGHTS * (plan.side / 512) ** 2
    looks = (3.0 if plan.lora_rank is None else 2.2) + (1.0 if plan.gradient_checkpointing else 0.0)
    work = steps * plan.batch * looks * look
    return {
        name: work / (half if transformer or plan.bf16 else single) / SHARE / 3600
        for name, (single, half) in PEAKS.items()
    }


def _shapes(base: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every weight of the denoiser, from the headers of its safetensors files."""
    files = [file for part in ("unet", "transformer") for file in (base / part).glob("*.safetensors")]
    plain = [file for file in files if ".fp16" not in file.name] or files
    for file in sorted(plain):
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(min(length, 1 << 26)))
        yield from ((name, tuple(one["shape"])) for name, one in header.items() if name != "__metadata__")
