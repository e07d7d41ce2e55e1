"""Does LoRA on a flow-matching editor learn eight edits? A tiny Kontext, first taught to draw, then to edit.

    python benchmarks/overfit.py [--teach 800] [--steps 300] [--rate 5e-3]

Random weights cannot draw, adapters on attention alone cannot teach them to, and a random autoencoder's latents are
nearly 0: a loss that falls then says that noise is told, not that an edit is learned. So the latents are scaled to unit
variance, and the whole tiny transformer is first taught to give back the picture that it is shown (64 pictures, none of
the eight); that is the base. The peer is this base: the loss with fixed noise, and how far its edits of the eight
pictures lie from the latents wanted (root mean square; drawing nothing at all is 1). Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from plantain.models.diffusers.jobs import Job, Steering
from plantain.models.diffusers.methods import FLUX_DEV
from plantain.models.diffusers.pipelines.runner import Runner, runner_for
from plantain.models.diffusers.plan import plan_editor
from plantain.models.diffusers.tiny.saving import save_tiny
from plantain.roles.options import ProviderOptions
from plantain.train.encoded import Encoded
from plantain.train.examples.pairs import TrainingPair
from plantain.train.flow.conditions import FlowEncoder, encode_flow_pairs
from plantain.train.flow.matching import FlowMatching, flow_fine_tune, flow_fixed_loss
from plantain.train.loop.training import Schedule

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from train.moles import pairs

SIDE = 64


def scaled_to_unit_variance(folder: Path) -> None:
    """Writes shift and scale of the autoencoder so that its latents of the pictures have mean 0 and variance 1."""
    from diffusers import AutoencoderKL

    vae = AutoencoderKL.from_pretrained(folder / "vae")
    pictures = np.stack([pair.before for pair in pairs(8, first=100)]).transpose(0, 3, 1, 2)
    with torch.no_grad():
        latents = vae.encode(torch.from_numpy(pictures).float() / 127.5 - 1.0).latent_dist.mode()
    vae.register_to_config(shift_factor=float(latents.mean()), scaling_factor=1.0 / float(latents.std()))
    vae.save_pretrained(folder / "vae")


def teach(runner: Runner, shown: Encoded, steps: int, rate: float = 3e-3) -> None:
    """All weights of the transformer learn to draw what they are shown: ordinary flow matching."""
    matching = FlowMatching(runner)
    runner.pipe.transformer.requires_grad_(True)
    optimizer = torch.optim.AdamW(runner.pipe.transformer.parameters(), lr=rate, weight_decay=0.0)
    for step in range(steps):
        optimizer.zero_grad()
        for number in range(2):
            (matching.error(shown, (2 * step + number) % len(shown), 0, "teach", step) / 2).backward()
        torch.nn.utils.clip_grad_norm_(runner.pipe.transformer.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, 2.0 * (1.0 - step / steps))
        optimizer.step()


def distance(runner: Runner, data: Encoded, learned: list[TrainingPair]) -> float:
    """Root mean square from the latents wanted, of edits in eight steps, over the eight pictures."""
    found = []
    scheduler = runner.pipe.scheduler
    last: list[torch.Tensor] = []
    step = scheduler.step

    def noted(*args: object, **more: object) -> object:
        out = step(*args, **more)
        last[:] = [out[0]]
        return out

    scheduler.step = noted
    try:
        for number, pair in enumerate(learned):
            runner.edit([pair.before], [Job(b"", pair.instruction, 5, side=SIDE)], Steering.of({"steps": 8}))
            wanted = data.rows([number], torch.device("cpu"))["target"].flatten(2).transpose(1, 2)
            found.append(float((last[0] - wanted).pow(2).mean()))
    finally:
        scheduler.step = step
    return float(np.sqrt(np.mean(found)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--teach", type=int, default=800)
    options.add_argument("--steps", type=int, default=300)
    options.add_argument("--rate", type=float, default=5e-3)
    asked = options.parse_args()
    torch.set_num_threads(1)  # matrices this small gain nothing from several
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        save_tiny("flux-kontext", root / "tiny")
        scaled_to_unit_variance(root / "tiny")
        chosen = ProviderOptions(device="cpu", side=SIDE, accept_licence=(FLUX_DEV,))
        runner = runner_for(plan_editor(f"diffusers/{root / 'tiny'}", chosen).loading, "cpu")
        encoder, learned = FlowEncoder(runner, SIDE), pairs(8)
        same = [replace(pair, after=pair.before) for pair in pairs(64, first=100)]
        teach(runner, encode_flow_pairs(encoder, same), asked.teach)
        data = encode_flow_pairs(encoder, learned)
        before = flow_fixed_loss(runner, data, draws=8), distance(runner, data, learned)
        schedule = Schedule(asked.steps, asked.rate, batch=2, seed=1)
        flow_fine_tune(runner, data, schedule, root / "work", base="tiny", rank=16)
        after = flow_fixed_loss(runner, data, draws=8), distance(runner, data, learned)
    print(
        json.dumps(
            {
                "taught": asked.teach,
                "steps": asked.steps,
                "loss_before": round(before[0], 4),
                "loss_after": round(after[0], 4),
                "rms_from_wanted_before": round(before[1], 4),
                "rms_from_wanted_after": round(after[1], 4),
            }
        )
    )


if __name__ == "__main__":
    main()
