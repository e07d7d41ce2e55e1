"""Work for a device and its results: plain records that travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from plantain.pixels.arrays import Mask, Pixels
from plantain.records import Outcome

RUNNING = ("bits", "compile", "tf32")


@dataclass(frozen=True, slots=True)
class Loading:
    """A pipeline to load; one loaded pipeline serves every editor with the same values.

    Attributes:
        folder: folder with `model_index.json`.
        method: name of the `EditingMethod`.
        dtype: "float32", "float16" or "bfloat16"; "" for the method's default on the device.
        offload: "none", "model" or "sequential".
        safety_checker: True to use the folder's safety checker.
        variant: variant in the files' names, e.g. "fp16"; "" for none.
        lora: file or folder of LoRA weights; None for none.
        bits: bits of the denoiser's quantised weights: 8 or 4; 0: not quantised.
        compile: True to compile the denoiser's blocks with torch.compile.
        tf32: True to compute float32 matrix products in TF32, on NVIDIA's GPUs.
    """

    folder: Path
    method: str
    dtype: str = ""
    offload: str = "none"
    safety_checker: bool = True
    variant: str = ""
    lora: Path | None = None
    bits: int = 0
    compile: bool = False
    tf32: bool = False

    @property
    def running(self) -> dict[str, int]:
        """The settings that make it smaller or faster, and change answers slightly, if set, by name."""
        return {name: value for name in RUNNING if (value := getattr(self, name))}


@dataclass(frozen=True, slots=True)
class Steering:
    """The settings of a pipeline's call, as `provider.Settings` describes them; None for the method's default."""

    steps: int | None = None
    guidance: float | None = None
    image_guidance: float | None = None
    alpha: float | None = None
    text_steps: int | None = None
    model_steps: int | None = None
    strength: float | None = None

    @classmethod
    def of(cls, settings: Mapping[str, float]) -> Steering:
        """Make the settings of a call from values by name; numbers of steps are truncated to integers."""
        whole = {name: int(value) for name, value in settings.items() if name.endswith("steps")}
        return cls(**{**settings, **whole})  # type: ignore[arg-type]  # mypy: float, where int replaces it

    @property
    def settings(self) -> dict[str, float]:
        """The settings that are not None, by name."""
        values = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One edit on a device.

    Attributes:
        loading, steering: the pipeline and the settings of its call.
        canvas: the original on the model's canvas, uint8 (H, W, 3).
        instruction: the text passed to the model.
        seed: seed of this edit's random generator.
        side: side of the canvas in pixels; None for the method's default.
        region: bool (H, W) of the canvas, for methods that require a region.
    """

    loading: Loading
    steering: Steering
    canvas: Pixels = field(repr=False)
    instruction: str
    seed: int
    side: int | None = None
    region: Mask | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Done:
    """Result of one edit.

    Attributes:
        pixels: the edited canvas, uint8 (H, W, 3); None if there is none.
        outcome: how the edit ended, with the reason for a missing image.
        record: settings, device and precision, for the journal.
    """

    pixels: Pixels | None = field(repr=False)
    outcome: Outcome
    record: dict[str, object]
