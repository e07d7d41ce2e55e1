"""The learned metrics of a benchmark, over the networks that are at hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from plantain.bench.score.suite import NO_TRUTH, Case, Detail, SuiteMetric
from plantain.metrics.learned import LPIPS_WEIGHTS, REWARD_WEIGHTS, lpips, reward
from plantain.metrics.networks.available import Networks
from plantain.metrics.networks.encoders import ImageTextEncoder, PerceptualNetwork, RewardModel, label
from plantain.metrics.similarity import CLIP_WEIGHTS, dalign, isim, talign
from plantain.pixels.arrays import Image, Pixels
from plantain.records import Score, unscored

NO_DESCRIPTION = "the sample has no description of the change"
Measured = Callable[[Case, Pixels], tuple[Score, Detail]]


def learned_metrics(networks: Networks, wanted: set[str]) -> list[SuiteMetric]:
    """The wanted metrics that these networks can measure, each under the name that its weights allow."""
    made: list[SuiteMetric] = []
    if networks.perceptual is not None:
        made.append(_lpips_metric(networks.perceptual))
    if networks.clip is not None:
        made += _clip_metrics(networks.clip)
    if networks.reward is not None:
        made += [_reward_metric(networks.reward, described) for described in (False, True)]
    return [metric for metric in made if metric.name.partition(":")[0] in wanted]


class _Remembered:
    """An encoder that embeds each image and text of one case once."""

    def __init__(self, encoder: ImageTextEncoder) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._case: Case | None = None
        self._images: dict[int, tuple[Image, npt.NDArray[np.floating]]] = {}
        self._texts: dict[str, npt.NDArray[np.floating]] = {}

    def of(self, case: Case) -> _Remembered:
        """Itself, having forgotten every other case."""
        if self._case is not case:
            self._case, self._images, self._texts = case, {}, {}
        return self

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.floating]:
        rows = []
        for image in images:
            if id(image) not in self._images:
                self._images[id(image)] = (image, self._encoder.images([image])[0])
            rows.append(self._images[id(image)][1])
        return np.stack(rows)

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.floating]:
        for text in texts:
            if text not in self._texts:
                self._texts[text] = self._encoder.texts([text])[0]
        return np.stack([self._texts[text] for text in texts])

    def truncated(self, text: str) -> bool:
        return self._encoder.truncated(text)


def _lpips_metric(network: PerceptualNetwork) -> SuiteMetric:
    def measure(case: Case, output: Pixels) -> tuple[Score, Detail]:
        if case.truth is None:
            return unscored(NO_TRUTH), {}
        return lpips(case.truth, output, network), {"network": network.name}

    return SuiteMetric(label("lpips", LPIPS_WEIGHTS, network.name), f"1 {network.name}", measure, alone=True)


def _clip_metrics(encoder: ImageTextEncoder) -> list[SuiteMetric]:
    remembered = _Remembered(encoder)

    def similarity(case: Case, output: Pixels) -> tuple[Score, Detail]:
        if case.truth is None:
            return unscored(NO_TRUTH), {}
        return isim(output, case.truth, remembered.of(case)), {"network": encoder.name}

    def named(name: str) -> str:
        return label(name, CLIP_WEIGHTS, encoder.name)

    version = f"1 {encoder.name}"
    made = [SuiteMetric(named("clip_isim"), version, similarity, alone=True)]
    for described in (False, True):
        suffix = "_d" if described else ""
        for name, direction in (("clip_talign", False), ("clip_dalign", True)):
            measure = _with_text(remembered, described, direction)
            made.append(SuiteMetric(named(name + suffix), version, measure, alone=True))
    return made


def _with_text(encoder: _Remembered, described: bool, direction: bool) -> Measured:
    def measure(case: Case, output: Pixels) -> tuple[Score, Detail]:
        text = case.sample.detailed if described else case.sample.prompt
        if not text:
            return unscored(NO_DESCRIPTION), {}
        known = encoder.of(case)
        detail: Detail = {"network": encoder.name, "text_cut": encoder.truncated(text)}
        if direction:
            return dalign(output, case.before, text, known), detail
        return talign(output, text, known), detail

    return measure


def _reward_metric(model: RewardModel, described: bool) -> SuiteMetric:
    def measure(case: Case, output: Pixels) -> tuple[Score, Detail]:
        text = case.sample.detailed if described else case.sample.prompt
        if not text:
            return unscored(NO_DESCRIPTION), {}
        return reward(output, text, model), {"network": model.name}

    name = label("image_reward_d" if described else "image_reward", REWARD_WEIGHTS, model.name)
    return SuiteMetric(name, f"1 {model.name}", measure, alone=True)
