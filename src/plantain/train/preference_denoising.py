"""Diffusion-DPO of an InstructPix2Pix: how its UNet stands to the weights that it began with, loaded and saved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from plantain.train.base import TrainingBase
from plantain.train.editor_folder import Card, save_editor
from plantain.train.encoded import Encoded, encode
from plantain.train.examples.pairs import PreferencePair, TrainingPair
from plantain.train.latents import Encoder, InstructionPipeline
from plantain.train.loop.training import Schedule, Trained
from plantain.train.noise import Denoising, Draw, same_draw
from plantain.train.preference import PreferenceErrors, PreferenceModel
from plantain.train.preference_plan import PreferencePlan
from plantain.train.supervised import AT_ONCE, encode_pairs, fine_tune
from plantain.train.weights import make_trainable, with_adapters, without_adapters


def encode_preferences(encoder: Encoder, pairs: Iterable[PreferencePair]) -> Encoded:
    """Encodes preferences one by one; neither pixels nor latents are kept in memory.

    Raises:
        ValueError: there is none.
    """
    return encode(
        (
            pair.id,
            {
                "source": encoder.condition(pair.before),
                "winner": encoder.target(pair.winner),
                "loser": encoder.target(pair.loser),
                "weight": encoder.weight(pair.before),
                "text": encoder.texts([pair.instruction])[0],
            },
        )
        for pair in pairs
    )


class DenoisingPreference:
    """A UNet with adapters; its reference is the same with adapters off."""

    kind = "dpo"

    def __init__(self, pipe: InstructionPipeline, at_once: int = AT_ONCE) -> None:
        self.at_once = at_once
        self._pipe, self._denoising = pipe, Denoising(pipe)

    def make_adapters(self, rank: int, seed: int) -> dict[str, nn.Parameter]:
        return make_trainable(self._pipe, rank, seed)

    def errors(
        self, pairs: Encoded, numbers: Sequence[int], seed: int, what: str, draw: int
    ) -> PreferenceErrors:
        some, ids = pairs.rows(numbers, self._pipe.device), [pairs.ids[number] for number in numbers]
        shape = tuple(some["winner"].shape[1:])
        drawn = same_draw(seed, what, ids, draw, shape, self._denoising.timesteps)
        without_adapters(self._pipe.unet)
        try:
            with torch.no_grad():
                reference = self._both(some, drawn)
        finally:
            with_adapters(self._pipe.unet)
        return PreferenceErrors(*self._both(some, drawn), *reference)

    def _both(self, some: Mapping[str, Tensor], drawn: Draw) -> tuple[Tensor, Tensor]:
        """Errors of winner and loser."""
        both = torch.cat([some["winner"], some["loser"]])
        twice = Draw(*(torch.cat([part, part]) for part in (drawn.noise, drawn.timestep, drawn.chance)))
        source, text, weight = (torch.cat([some[part], some[part]]) for part in ("source", "text", "weight"))
        winner, loser = self._denoising.errors(both, source, text, weight, twice).chunk(2)
        return winner, loser


class DenoisingPreferenceLearner:
    """An InstructPix2Pix; what supervised steps taught it is merged into its weights, which are then the reference."""

    form = "Diffusion-DPO"

    def __init__(self, base: TrainingBase, plan: PreferencePlan) -> None:
        self._base, self._plan = base, plan
        self._start = base.folder

    def supervise(
        self,
        winners: Iterable[TrainingPair],
        schedule: Schedule,
        work: Path,
        *,
        on_step: Callable[[int, dict[str, float]], None],
        stop: Callable[[], bool],
    ) -> Trained:
        self._pipe = self._base.load()
        return fine_tune(
            self._pipe,
            encode_pairs(Encoder(self._pipe, self._plan.side), winners),
            schedule,
            work,
            base=self._base.digest,
            lora_rank=self._plan.lora_rank,
            on_step=on_step,
            stop=stop,
        )

    def begin(self, start: Path) -> PreferenceModel:
        self._start = start
        self._pipe = replace(self._base, folder=start).load()
        return DenoisingPreference(self._pipe)

    def encode(self, pairs: Iterable[PreferencePair]) -> Encoded:
        return encode_preferences(Encoder(self._pipe, self._plan.side), pairs)

    def save(self, folder: Path, card: Card) -> None:
        save_editor(self._pipe, self._start, folder, card, lora=True)
