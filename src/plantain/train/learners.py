"""The two ways in which an editor learns from pairs: a UNet by denoising, a transformer by flow matching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from plantain.records import InputError
from plantain.train.base import TrainingBase
from plantain.train.editor_folder import Card, save_editor
from plantain.train.encoded import Encoded, encode
from plantain.train.examples.encoded_cache import ExampleCache
from plantain.train.examples.pairs import PairSource
from plantain.train.flow.conditions import FlowEncoder
from plantain.train.flow.matching import flow_fine_tune, flow_fixed_loss
from plantain.train.flow.methods import FLOW_METHODS
from plantain.train.latents import Encoder
from plantain.train.loop.training import Schedule, Trained
from plantain.train.study_plan import StudyPlan
from plantain.train.supervised import fine_tune, fixed_loss, pair_parts

OnStep = Callable[[int, dict[str, float]], None]


class Learner(Protocol):
    """An editor, fresh from its base, that learns in place."""

    def encode(self, source: PairSource, ids: Sequence[str], cache: ExampleCache) -> Encoded:
        """Pairs as it sees them when it edits."""
        ...

    def fixed_loss(self, pairs: Encoded) -> float:
        """Mean error with the same noise every time."""
        ...

    def fine_tune(
        self,
        pairs: Encoded,
        schedule: Schedule,
        folder: Path,
        base: str,
        *,
        on_step: OnStep,
        stop: Callable[[], bool],
    ) -> Trained:
        """Learns, or goes on where the checkpoint in `folder` stands; raises InputError as `training.run`."""
        ...

    def save(self, folder: Path, card: Card) -> None:
        """Writes the folder that is an editor by itself."""
        ...


class DenoisingLearner:
    """An InstructPix2Pix: its whole UNet, or adapters."""

    def __init__(self, base: TrainingBase, plan: StudyPlan) -> None:
        self._base, self._plan = base, plan
        self._pipe = base.load()

    def encode(self, source: PairSource, ids: Sequence[str], cache: ExampleCache) -> Encoded:
        encoder = Encoder(self._pipe, self._plan.side)
        return encode(cache.encoded(source, ids, lambda pair: pair_parts(encoder, pair)))

    def fixed_loss(self, pairs: Encoded) -> float:
        return fixed_loss(self._pipe, pairs, bf16=self._plan.bf16)

    def fine_tune(
        self,
        pairs: Encoded,
        schedule: Schedule,
        folder: Path,
        base: str,
        *,
        on_step: OnStep,
        stop: Callable[[], bool],
    ) -> Trained:
        if self._plan.gradient_checkpointing:
            self._pipe.unet.enable_gradient_checkpointing()
        return fine_tune(
            self._pipe,
            pairs,
            schedule,
            folder,
            base=base,
            lora_rank=self._plan.lora_rank,
            dropout=self._plan.dropout,
            bf16=self._plan.bf16,
            on_step=on_step,
            stop=stop,
        )

    def save(self, folder: Path, card: Card) -> None:
        lora = self._plan.lora_rank is not None
        save_editor(self._pipe, self._base.folder, folder, card, lora=lora)


class FlowLearner:
    """Kontext, FLUX.2 klein or Qwen-Image-Edit: adapters on its transformer.

    Raises:
        InputError: no rank of adapters was said, or a precision that is not its own.
    """

    def __init__(self, base: TrainingBase, plan: StudyPlan) -> None:
        if plan.lora_rank is None:
            raise InputError(f"{base.name}: only adapters of a {base.method} are trained; give --lora RANK")
        if plan.bf16:
            raise InputError(
                f"--bf16: a {base.method} trains in its own precision, bfloat16 on a GPU; another is said as dtype in "
                "[providers.diffusers]"
            )
        self._base, self._plan, self._rank = base, plan, plan.lora_rank
        self._runner = base.runner()

    def encode(self, source: PairSource, ids: Sequence[str], cache: ExampleCache) -> Encoded:
        return encode(cache.encoded(source, ids, FlowEncoder(self._runner, self._plan.side).parts))

    def fixed_loss(self, pairs: Encoded) -> float:
        return flow_fixed_loss(self._runner, pairs, weighting=self._plan.weighting)

    def fine_tune(
        self,
        pairs: Encoded,
        schedule: Schedule,
        folder: Path,
        base: str,
        *,
        on_step: OnStep,
        stop: Callable[[], bool],
    ) -> Trained:
        return flow_fine_tune(
            self._runner,
            pairs,
            schedule,
            folder,
            base=base,
            rank=self._rank,
            weighting=self._plan.weighting,
            checkpointing=self._plan.gradient_checkpointing,
            start=self._base.adapters,
            on_step=on_step,
            stop=stop,
        )

    def save(self, folder: Path, card: Card) -> None:
        save_editor(self._runner.pipe, self._base.folder, folder, card, lora=True)


def learner_for(base: TrainingBase, plan: StudyPlan) -> Learner:
    """What learns from pairs in the base's way; raises InputError as its class does."""
    return FlowLearner(base, plan) if base.method in FLOW_METHODS else DenoisingLearner(base, plan)
