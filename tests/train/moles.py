"""Small images with and without a dark spot, as pairs to train on, and a tiny model to train."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import cv2
import numpy as np

from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix
from plantain.train.base import InstructionPipeline
from plantain.train.denoising import Encoded, Encoder, Parts
from plantain.train.pairs import PreferencePair, TrainingPair
from plantain.train.plans import TrainingProgress
from plantain.train.preference import encode_preference
from plantain.train.supervised import encode_pair

SIZE = 64

INSTRUCTION = "remove the mole"


def skin(seed: int, size: int = 64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    tone = np.array([200, 160, 140]) + rng.integers(-20, 20, 3)
    grain = cv2.GaussianBlur(rng.normal(0, 12, (size, size)).astype(np.float32), (0, 0), 1.5)
    return np.clip(tone + grain[..., None], 0, 255).astype(np.uint8)


def with_mole(image: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed + 1000)
    x, y = rng.integers(16, image.shape[0] - 16, 2)
    return cv2.circle(image.copy(), (int(x), int(y)), 7, (60, 35, 25), -1)


def pairs(count: int, first: int = 0) -> list[TrainingPair]:
    made = []
    for number in range(first, first + count):
        clean = skin(number)
        made.append(
            TrainingPair(str(number), "moles", str(number), INSTRUCTION, with_mole(clean, number), clean)
        )
    return made


def preferences(count: int, first: int = 0) -> list[PreferencePair]:
    """The loser is the unedited image: the typical failure of an editor."""
    return [
        PreferencePair(p.id, p.task, p.cluster, p.instruction, p.before, p.after, p.before)
        for p in pairs(count, first)
    ]


@cache
def untrained() -> InstructionPipeline:
    pipe = tiny_instruct_pix2pix(seed=0, words=("remove", "the", "mole"))
    pipe.set_progress_bar_config(disable=True)
    return pipe


def fresh() -> InstructionPipeline:
    """A tiny InstructPix2Pix with random weights, not yet trained."""
    return copy.deepcopy(untrained())


def encoded_pairs(pipe: InstructionPipeline, examples: Sequence[TrainingPair]) -> Encoded:
    return _encoded(examples, lambda pair: encode_pair(Encoder(pipe, SIZE), pair))


def encoded_preferences(pipe: InstructionPipeline, examples: Sequence[PreferencePair]) -> Encoded:
    return _encoded(examples, lambda pair: encode_preference(Encoder(pipe, SIZE), pair))


def _encoded(examples: Sequence[Any], encode: Callable[[Any], Parts]) -> Encoded:
    by_id = {example.id: example for example in examples}
    return Encoded(list(by_id), lambda ids: map(by_id.__getitem__, ids), encode)


class Counting(TrainingProgress):
    def __init__(self) -> None:
        self.steps = 0

    def step(self, step: int, loss: float | None = None) -> None:
        self.steps += 1
