"""Diffusion-DPO of an InstructPix2Pix (Wallace et al. 2024, eq. 14), ended before the winner suffers.

The loss rewards a gap between winner and loser, which also grows when both become worse. So the winner's own error is
measured on monitored pairs against the reference model's, and training ends when it exceeds a bound. The model is a
UNet with LoRA adapters; its reference is the same with adapters off.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from plantain.train.base import InstructionPipeline, TrainingBase
from plantain.train.denoising import Denoising, Draw, Encoded, Encoder, draw_by_id, make_trainable
from plantain.train.editor import save_editor
from plantain.train.finished import DONE, read_finished, write_json
from plantain.train.pairs import PreferencePair, TrainingPair
from plantain.train.plans import PreferencePlan, TrainingProgress
from plantain.train.releases import ReleasePreferences
from plantain.train.split import split_preferences
from plantain.train.supervised import encode_pair, fine_tune
from plantain.train.training import AT_ONCE, INTERRUPTED, Schedule, Trained, run

SUPERVISED, MODEL = "supervised", "model"
"""In the folder of a preference training: the editor after supervised steps, and the final one."""

STARTED = "started.json"
"""Identity of the training that the folder was started with; parts of another one are not reused."""

DRAWS = 8
"""Draws of noise by which a pair is measured."""


@dataclass(frozen=True, slots=True)
class Preference:
    """A comparison of a model with its reference on preference pairs, with fixed noise.

    Attributes:
        accuracy: share of pairs and draws whose winner gained more than its loser, in [0, 1].
        winner_ratio: the winner's error divided by the reference's; 1 at the start.
        loser_ratio: the same for the loser.
    """

    accuracy: float
    winner_ratio: float
    loser_ratio: float


@dataclass(frozen=True, slots=True)
class PreferenceErrors:
    """The squared denoising errors of winners and losers, by the model and by its reference: float32 (n,) each."""

    winner: Tensor
    loser: Tensor
    winner_reference: Tensor
    loser_reference: Tensor

    @property
    def gap(self) -> Tensor:
        """(w - w0) - (l - l0), float32 (n,); negative if the winner improved more than the loser."""
        return (self.winner - self.winner_reference) - (self.loser - self.loser_reference)


def encode_preference(encoder: Encoder, pair: PreferencePair) -> dict[str, Tensor]:
    """Encode a preference pair to tensors by name: "source", "winner", "loser", "weight" and "text"."""
    return {
        "source": encoder.condition(pair.before),
        "winner": encoder.target(pair.winner),
        "loser": encoder.target(pair.loser),
        "weight": encoder.weight(pair.before),
        "text": encoder.text(pair.instruction),
    }


def preference_loss(errors: PreferenceErrors, beta: float) -> Tensor:
    """Return the DPO loss -log sigmoid(-beta / 2 ((w - w0) - (l - l0))) per example: float32 (n,).

    w and l are the errors of winner and loser by the model, w0 and l0 those by its reference.
    """
    return -functional.logsigmoid(-0.5 * beta * errors.gap)


def preference_errors(
    pipe: InstructionPipeline, pairs: Encoded, numbers: Sequence[int], seed: int, what: str, number: int
) -> PreferenceErrors:
    """Compute the errors of examples of one canvas; noise depends on seed, `what`, `number` and id only.

    `numbers` are the indices of the examples in `pairs`; `what` and `number` are as for `draw_by_id`.
    """
    denoising = Denoising(pipe)
    rows, ids = pairs.rows(numbers, pipe.device), [pairs.ids[row] for row in numbers]
    drawn = draw_by_id(seed, what, ids, number, tuple(rows["winner"].shape[1:]), denoising.timesteps).twice()
    pipe.unet.disable_adapters()
    try:
        with torch.no_grad():
            reference = _winner_and_loser(denoising, rows, drawn)
    finally:
        pipe.unet.enable_adapters()
    return PreferenceErrors(*_winner_and_loser(denoising, rows, drawn), *reference)


def compare_with_reference(pipe: InstructionPipeline, pairs: Encoded, *, seed: int = 0) -> Preference:
    """Compare the model with its reference on preference pairs; each pair's noise is always the same."""
    right, sums = 0.0, torch.zeros(4)
    for chunk in pairs.chunks(AT_ONCE):
        for number in range(DRAWS):
            with torch.no_grad():
                found = preference_errors(pipe, pairs, chunk, seed, "standing", number)
            right += float((found.gap < 0).float().sum())
            each = (found.winner, found.winner_reference, found.loser, found.loser_reference)
            sums += torch.stack([part.sum().cpu() for part in each])
    return Preference(right / (DRAWS * len(pairs)), float(sums[0] / sums[1]), float(sums[2] / sums[3]))


def prefer(
    pipe: InstructionPipeline,
    pairs: Encoded,
    monitored: Encoded,
    plan: PreferencePlan,
    progress: TrainingProgress,
    stop: Callable[[], bool] = lambda: False,
) -> Trained:
    """Train adapters in place so that winners are preferred.

    Args:
        pipe: the pipeline after supervised steps, without which the loss does not decrease.
        pairs, monitored: preferences to train on and to measure; no cluster is in both.
        plan: settings; every `plan.every` steps the monitored pairs are measured.
        progress, stop: as for `run`.

    Returns:
        The final state; if the bound was exceeded, the weights are those of the last measurement within it.

    Raises:
        InputError: as `run`.
    """
    schedule = Schedule(plan.steps, plan.learning_rate, plan.batch, plan.seed)
    weights = make_trainable(pipe, plan.lora_rank, plan.seed)

    def loss_of(numbers: list[int], step: int) -> Tensor:
        errors = preference_errors(pipe, pairs, numbers, plan.seed, "step", step)
        return preference_loss(errors, plan.beta).sum()

    def reason_to_end(step: int) -> str:
        found = compare_with_reference(pipe, monitored, seed=plan.seed)
        progress.note(
            f"step {step}: monitored accuracy {found.accuracy:.3f}, winner's error {found.winner_ratio:.4f} of the "
            "reference's"
        )
        if found.winner_ratio <= plan.bound:
            return ""
        return (
            f"the winner's monitored error is {found.winner_ratio:.3f} of the reference's, over the bound "
            f"{plan.bound:g}"
        )

    return run(
        weights,
        loss_of,
        pairs.canvases,
        schedule,
        progress,
        stop,
        every=plan.every,
        reason_to_end=reason_to_end,
    )


def _winner_and_loser(denoising: Denoising, rows: Mapping[str, Tensor], drawn: Draw) -> tuple[Tensor, Tensor]:
    both = torch.cat([rows["winner"], rows["loser"]])
    source, text, weight = (torch.cat([rows[part], rows[part]]) for part in ("source", "text", "weight"))
    winner, loser = denoising.errors(both, source, text, weight, drawn).chunk(2)
    return winner, loser


def train_preferences(
    source: ReleasePreferences,
    base: TrainingBase,
    plan: PreferencePlan,
    out: Path,
    *,
    progress: TrainingProgress,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any] | None:
    """Train adapters on preferences; a finished training in `out` is only read, finished supervised steps are kept.

    `stop` is called before each step, and True interrupts the training.

    Returns:
        The record of the training, as in `out/training.json`; None if it was interrupted.

    Raises:
        InputError: there are too few preferences, originals are missing, or `out` is of another training.
    """
    learn, watch = split_preferences(source.listed(), plan.held_out, plan.seed)
    parts = [source.name, source.digest, base.digest, plan.model_dump(), learn, watch]
    identity = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    if (found := read_finished(out / DONE, identity)) is not None:
        return found
    if read_finished(out / STARTED, identity) is None:
        write_json(out / STARTED, {"identity": identity})
    if plan.supervised_steps and not (out / SUPERVISED).is_dir():
        progress.begin("supervised steps", plan.supervised_steps)
        pipe = base.load()
        encoder = Encoder(pipe, plan.side)

        def winner(pair: PreferencePair) -> dict[str, Tensor]:
            learned = TrainingPair(
                pair.id, pair.task, pair.cluster, pair.instruction, pair.before, pair.winner
            )
            return encode_pair(encoder, learned)

        schedule = Schedule(plan.supervised_steps, plan.supervised_learning_rate, plan.batch, plan.seed)
        winners = Encoded(learn, source.read, winner)
        if fine_tune(pipe, winners, schedule, progress, stop, lora_rank=plan.lora_rank).stopped:
            return None
        text = (
            f"{plan.supervised_steps} supervised steps on {len(learn)} successful edits of `{source.name}`."
        )
        save_editor(
            pipe,
            base.folder,
            out / SUPERVISED,
            base,
            title="supervised",
            text=text,
            side=plan.side,
            lora=True,
        )
    start = out / SUPERVISED if plan.supervised_steps else base.folder
    pipe = base.load(start)
    encoder = Encoder(pipe, plan.side)
    learned, watched = (
        Encoded(ids, source.read, lambda pair: encode_preference(encoder, pair)) for ids in (learn, watch)
    )
    progress.begin("preference", plan.steps)
    trained = prefer(pipe, learned, watched, plan, progress, stop)
    if trained.stopped == INTERRUPTED:
        return None
    final = compare_with_reference(pipe, watched, seed=plan.seed)
    text = (
        f"{plan.supervised_steps} supervised steps, then {trained.step} steps of Diffusion-DPO (beta {plan.beta:g}, "
        f"LoRA rank {plan.lora_rank}, learning rate {plan.learning_rate:g}, seed {plan.seed}) on {len(learn)} "
        f"preferences of `{source.name}` ({source.digest[:12]}…). On {len(watch)} monitored preferences: implicit "
        f"accuracy {final.accuracy:.3f}, the winner's error {final.winner_ratio:.3f} of the reference's."
        + (f" Ended early: {trained.stopped}." if trained.stopped else "")
    )
    save_editor(pipe, start, out / MODEL, base, title="preferences", text=text, side=plan.side, lora=True)
    record = {
        "identity": identity,
        "base": {"name": base.name, "digest": base.digest, "licence": base.licence},
        "source": {"name": source.name, "digest": source.digest},
        "plan": plan.model_dump(mode="json"),
        "learned_from": list(learn),
        "monitored": list(watch),
        "final": asdict(final),
        "stopped": trained.stopped,
        "step": trained.step,
    }
    write_json(out / DONE, record)
    return record
