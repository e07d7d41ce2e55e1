"""The interface of metrics: one class that measures an output and describes itself to tables; its networks and inputs.

The networks map arrays to arrays and have the name of their weights. The metrics import no framework: `networks` wraps
the published networks; tests use closed forms. The arguments of public metrics are checked for dtype, shape and range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from plantain.files.installed import installed, load_entry
from plantain.pixels.arrays import Floats, Image, Mask, Pixels
from plantain.records import InputError, Score

if TYPE_CHECKING:
    from plantain.metrics.networks import ImageRewardModel, LpipsNetwork


class MetricSample(Protocol):
    """Images and texts of a benchmark's sample, for metrics; each image is decoded on first use."""

    @property
    def before(self) -> Pixels:
        """The image before the change, uint8 (H, W, 3), RGB."""
        ...

    @property
    def truth(self) -> Pixels | None:
        """The real image after the change, uint8 (H, W, 3) of the size of `before`; None if the sample has none."""
        ...

    @property
    def roi(self) -> Mask | None:
        """The region that should change, bool (H, W), True inside; None if the sample has none."""
        ...

    @property
    def roi_grey(self) -> Image | None:
        """The grey levels of the region's mask, uint8 (H, W) of the size of `before`; None if the sample has none."""
        ...

    @property
    def prompt(self) -> str:
        """The instruction of the edit, e.g. "Remove the mole"; "" if the sample has none."""
        ...

    @property
    def detailed(self) -> str:
        """The description of the expected change; "" if the sample has none."""
        ...


NEEDS = ("truth", "roi", "prompt", "detailed")
"""Parts of a sample that a metric may need and not every sample has."""

Measured = Score | tuple[Score, Mapping[str, Any]]
"""A score, or one with details that are stored with it."""


class Metric:
    """The base class of metrics, which score an output of an editor. A subclass sets attributes and defines `measure`.

    Attributes:
        name: name in the journal and on the command line, that of its entry point in the group `plantain.metrics`.
        label, unit: texts for readers; the unit is "" for a bare number.
        version: text to change whenever a number could change; outputs scored by another version are scored again.
        higher_is_better: True if higher values are better.
        low, high: ends of the range; None if unbounded.
        digits: digits after the decimal point in tables.
        needs: required parts of a sample: "truth", "roi", "prompt", "detailed". Outputs of a sample without one of
            them are unscored; `measure` is not called.
        column: heading in tables; "" for `name`.
        uses: the field of `Networks` with the network that it needs; "" for none.
        alone: True if measurements run one at a time, because the network uses all cores.
    """

    name: str
    label: ClassVar[str]
    unit: ClassVar[str] = ""
    version: str = "1"
    higher_is_better: ClassVar[bool] = True
    low: ClassVar[float | None] = None
    high: ClassVar[float | None] = None
    digits: ClassVar[int] = 2
    needs: ClassVar[tuple[str, ...]] = ()
    column: ClassVar[str] = ""
    uses: ClassVar[str] = ""
    alone: ClassVar[bool] = False

    @classmethod
    def open(cls, networks: Networks) -> Metric | str:
        """Return the metric, or why this machine cannot compute it, as text: "" if `networks.why_not` states it."""
        return cls()

    def measure(self, sample: MetricSample, output: Pixels) -> Measured:
        """Return the score of an output, or (score, detail to store with it).

        Args:
            sample: the benchmark sample; the parts that `needs` lists are neither None nor empty.
            output: the editor's image, uint8 (H, W, 3) RGB, of the size of `sample.before`.

        Raises:
            ValueError: an image does not suit the metric; the output is then unscored with that reason.
        """
        raise NotImplementedError


class NamedNetwork(Protocol):
    """A network whose `name` states its weights."""

    name: str


N = TypeVar("N", bound=NamedNetwork)


class NetworkMetric(Metric, Generic[N]):
    """A metric that uses a network; without the published weights, the network's name is added to the metric's."""

    published: ClassVar[frozenset[str]]
    alone = True

    def __init__(self, network: N) -> None:
        self.network = network
        self.name = label(self.name, self.published, network.name)
        self.version = f"{self.version} {network.name}"

    @classmethod
    def open(cls, networks: Networks) -> Metric | str:
        network: N | None = getattr(networks, cls.uses)
        return cls(network) if network is not None else ""

    def text(self, sample: MetricSample) -> str:
        """Return the text that the metric needs: the prompt or the description of the change."""
        return sample.detailed if "detailed" in self.needs else sample.prompt


GROUP = "plantain.metrics"
"""Entry point group: name of the metric -> a subclass of `Metric`."""


def registered() -> dict[str, type[Metric]]:
    """Return every registered metric class by name; a built-in one replaces a plug-in of the same name."""
    return _loaded()[0]


def unusable() -> dict[str, str]:
    """Return, by name, why metrics of other packages cannot be loaded."""
    return _loaded()[1]


@cache
def _loaded() -> tuple[dict[str, type[Metric]], dict[str, str]]:
    found: dict[str, type[Metric]] = {}
    broken: dict[str, str] = {}
    for name, entry in installed(GROUP).items():
        try:
            found[name] = _metric(entry)
        except InputError as error:
            broken[name] = str(error)
    return found, broken


def _metric(entry: EntryPoint) -> type[Metric]:
    kind = load_entry(entry, "metric")
    where = f"metric {entry.name!r}: {entry.value}"
    if not (isinstance(kind, type) and issubclass(kind, Metric)):
        raise InputError(f"{where} is not a subclass of plantain.metrics.Metric")
    if wrong := [need for need in kind.needs if need not in NEEDS]:
        raise InputError(f"{where}: needs {wrong[0]!r}; a sample has {', '.join(NEEDS)}")
    if getattr(kind, "name", "") != entry.name or not getattr(kind, "label", ""):
        raise InputError(f"{where}: its name must be that of its entry point, and it needs a label")
    return kind


@runtime_checkable
class ImageEncoder(Protocol):
    """A network that maps images to feature vectors; `name` states its weights, e.g. "inception-v3-2015-12-05"."""

    name: str

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.floating]:
        """Return features (n, d) of uint8 RGB images (H, W, 3), each prepared as the network was trained."""
        ...


@runtime_checkable
class ImageTextEncoder(ImageEncoder, Protocol):
    """A network that maps images and texts to feature vectors of one space, as CLIP does."""

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.floating]:
        """Return features (n, d) of the texts."""
        ...

    def truncated(self, text: str) -> bool:
        """Return True if the text is too long for the network, which then reads only its start."""
        ...


@dataclass(frozen=True, slots=True)
class Networks:
    """The networks available to metrics; None for a missing one.

    Attributes:
        clip: CLIP; perceptual: LPIPS; reward: ImageReward; features: the encoder of FID;
            encoder: the encoder of `frechet_encoder`.
        why_not: (names of metrics, why they cannot be measured).
    """

    clip: ImageTextEncoder | None = None
    perceptual: LpipsNetwork | None = None
    reward: ImageRewardModel | None = None
    features: ImageEncoder | None = None
    encoder: ImageEncoder | None = None
    why_not: tuple[tuple[str, str], ...] = ()


class RememberingEncoder:
    """An encoder that caches the last embeddings, since several metrics of one sample need the same ones."""

    def __init__(self, encoder: ImageTextEncoder, most: int = 32) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._image = lru_cache(most)(
            lambda data, shape: encoder.images([np.frombuffer(data, np.uint8).reshape(shape)])[0]
        )
        self._text = lru_cache(most)(lambda text: encoder.texts([text])[0])

    def images(self, images: Sequence[Image]) -> npt.NDArray[np.floating]:
        return np.stack([self._image(image.tobytes(), image.shape) for image in images])

    def texts(self, texts: Sequence[str]) -> npt.NDArray[np.floating]:
        return np.stack([self._text(text) for text in texts])

    def truncated(self, text: str) -> bool:
        return self._encoder.truncated(text)


def label(metric: str, published: frozenset[str], network: str) -> str:
    """Return the metric's name if `network` has the weights it was published with, else "metric:network".

    Example:
        >>> label("fid", frozenset({"inception-v3-2015-12-05"}), "random-projection")
        'fid:random-projection'
    """
    return metric if network in published else f"{metric}:{network}"


def check_image(image: npt.NDArray[np.generic], name: str) -> Image:
    """Return the image unchanged after checking that it is an array of grey levels or channels from 0 to 255.

    Args:
        image: uint8 (H, W) or (H, W, C), at least one pixel.
        name: name of the argument, for the error message.

    Raises:
        ValueError: another dtype or shape.
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        got = image.dtype if isinstance(image, np.ndarray) else type(image).__name__
        hint = "; of values in [0, 1]: (x * 255).round().astype('uint8')" if "float" in str(got) else ""
        raise ValueError(f"{name}: images are uint8 arrays of grey levels 0 to 255, not {got}{hint}")
    if image.ndim not in (2, 3) or not image.size:
        raise ValueError(f"{name}: images are of shape (H, W) or (H, W, C), not {image.shape}")
    return np.asarray(image, np.uint8)


def check_rgb(image: npt.NDArray[np.generic], name: str) -> Image:
    """Return the image unchanged if it is uint8 (H, W, 3). Raise ValueError otherwise."""
    checked = check_image(image, name)
    if checked.ndim != 3 or checked.shape[2] != 3:
        raise ValueError(f"{name}: RGB of shape (H, W, 3) is needed, not {checked.shape}")
    return checked


def check_images(before: npt.NDArray[np.generic], after: npt.NDArray[np.generic]) -> tuple[Image, Image]:
    """Return two images unchanged if both pass `check_image` and have one shape. Raise ValueError otherwise."""
    first, second = check_image(before, "before"), check_image(after, "after")
    if first.shape != second.shape:
        raise ValueError(f"images differ in shape: {first.shape} and {second.shape}")
    return first, second


def check_mask(mask: npt.NDArray[np.generic], shape: tuple[int, ...]) -> Mask:
    """Convert a region to bool (H, W), from bool or from uint8 of two levels (0 and 1, or 0 and 255).

    Args:
        mask: the region.
        shape: shape of the images, (H, W) or (H, W, C).

    Raises:
        ValueError: another dtype or shape, or grey levels between.
    """
    if not isinstance(mask, np.ndarray) or mask.dtype not in (np.bool_, np.uint8):
        got = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
        raise ValueError(f"roi: a mask is bool, or uint8 of 0 and 255, not {got}")
    if mask.shape != tuple(shape[:2]):
        raise ValueError(f"roi: a mask of shape {mask.shape} for images of {tuple(shape[:2])}")
    if mask.dtype == np.uint8:
        levels = np.flatnonzero(np.bincount(mask.ravel(), minlength=256))
        if levels.size > 2 or (levels.size == 2 and levels[0] != 0) or levels[-1] not in (0, 1, 255):
            raise ValueError(
                f"roi: grey levels {levels[0]} to {levels[-1]}; a mask of uint8 has 0 and 1, or 0 and 255: "
                "threshold it first, e.g. mask > 127"
            )
    return np.asarray(mask, bool)


def check_finite(values: npt.ArrayLike, name: str) -> Floats:
    """Convert numbers to a float64 array. Raise ValueError if one is NaN or infinite."""
    numbers = np.asarray(values, np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name}: {np.count_nonzero(~np.isfinite(numbers))} values are NaN or infinite")
    return numbers
