"""Flow-DPO (Liu et al. 2025): preferences of a flow-matching editor, learned by LoRA on its transformer.

The velocity's squared error stands where Diffusion-DPO has the noise's. Beta is constant over the shares of noise: the
paper found that better than the beta (1 - s)^2 of its derivation, which lets a model be spoiled where noise is high.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from plantain.models.diffusers.pipelines.runner import Runner
from plantain.models.diffusers.weights import LORA
from plantain.train.base import TrainingBase
from plantain.train.editor_folder import Card, save_editor
from plantain.train.encoded import Encoded, encode
from plantain.train.examples.pairs import PreferencePair, TrainingPair
from plantain.train.flow.adapters import DEFAULT, REFERENCE, adapted_layers, add_reference, make_adapters
from plantain.train.flow.conditions import LOSER, TARGET, WINNER, FlowEncoder, encode_flow_pairs
from plantain.train.flow.matching import FlowMatching, flow_fine_tune
from plantain.train.loop.training import Schedule, Trained
from plantain.train.preference import PreferenceErrors, PreferenceModel
from plantain.train.preference_plan import PreferencePlan

if TYPE_CHECKING:
    from peft.tuners.tuners_utils import BaseTunerLayer


def encode_flow_preferences(encoder: FlowEncoder, pairs: Iterable[PreferencePair]) -> Encoded:
    """Encodes preferences one by one; neither pixels nor latents are kept. Raises ValueError when there is none."""
    return encode((pair.id, encoder.preference_parts(pair)) for pair in pairs)


class FlowPreference:
    """A transformer with adapters beside the adapters that it began with, which are its reference.

    Args:
        runner: fresh from its base weights.
        start: adapters with which both begin; None for the base itself.
    """

    kind, at_once = "flow-dpo", 1

    def __init__(self, runner: Runner, start: Path | None = None) -> None:
        self._runner, self._start = runner, start
        self._matching = FlowMatching(runner)
        self._layers: list[BaseTunerLayer] = []

    def make_adapters(self, rank: int, seed: int) -> dict[str, nn.Parameter]:
        weights = make_adapters(self._runner, rank, seed, self._start)
        add_reference(self._runner)
        self._layers = adapted_layers(self._runner)
        return weights

    def errors(
        self, pairs: Encoded, numbers: Sequence[int], seed: int, what: str, draw: int
    ) -> PreferenceErrors:
        (number,) = numbers
        row = pairs.rows([number], self._matching.device)
        noise, sigma = self._matching.drawn(pairs.ids[number], tuple(row["source"].shape), seed, what, draw)
        self._switch(REFERENCE)
        try:
            with torch.no_grad():
                reference = self._both(row, noise, sigma)
        finally:
            self._switch(DEFAULT)
        return PreferenceErrors(*self._both(row, noise, sigma), *reference)

    def _switch(self, adapter: str) -> None:
        """As the transformer's own `set_adapter`, which looks at every module and at peft's version each time."""
        for layer in self._layers:
            layer.set_adapter(adapter)

    def _both(self, row: Mapping[str, Tensor], noise: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """Errors of winner and loser."""
        conditions = {name: value for name, value in row.items() if name not in (WINNER, LOSER)}
        winner, loser = (
            self._matching.squared({**conditions, TARGET: row[name]}, noise, sigma).reshape(1)
            for name in (WINNER, LOSER)
        )
        return winner, loser


class FlowPreferenceLearner:
    """Kontext, FLUX.2 klein or Qwen-Image-Edit: supervised steps and preferences change the same adapters."""

    form = "Flow-DPO"

    def __init__(self, base: TrainingBase, plan: PreferencePlan) -> None:
        self._base, self._plan = base, plan
        self._runner = base.runner()

    def supervise(
        self,
        winners: Iterable[TrainingPair],
        schedule: Schedule,
        work: Path,
        *,
        on_step: Callable[[int, dict[str, float]], None],
        stop: Callable[[], bool],
    ) -> Trained:
        return flow_fine_tune(
            self._runner,
            encode_flow_pairs(self._encoder, winners),
            schedule,
            work,
            base=self._base.digest,
            rank=self._plan.lora_rank,
            checkpointing=True,
            start=self._base.adapters,
            on_step=on_step,
            stop=stop,
        )

    def begin(self, start: Path) -> PreferenceModel:
        adapters = start / LORA
        self._runner.pipe.transformer.enable_gradient_checkpointing()  # winner and loser go back together
        return FlowPreference(self._runner, adapters if adapters.is_file() else None)

    def encode(self, pairs: Iterable[PreferencePair]) -> Encoded:
        return encode_flow_preferences(self._encoder, pairs)

    @property
    def _encoder(self) -> FlowEncoder:
        return FlowEncoder(self._runner, self._plan.side)

    def save(self, folder: Path, card: Card) -> None:
        save_editor(self._runner.pipe, self._base.folder, folder, card, lora=True)
