"""Work for a device and its results: plain records that travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from plantain.pixels.arrays import Mask, Pixels
from plantain.records import Outcome


@dataclass(frozen=True, slots=True)
class Running:
    """Settings that make weights smaller or faster, and change answers slightly.

    Attributes:
        bits: of the denoiser's weights: 8 or 4; 0 to keep them as they are.
        compile: torch.compile of the denoiser's blocks.
        attention_backend: of diffusers, e.g. "native", "_native_cudnn", "flash"; "" for its default.
        tf32: matrix products of float32 in TF32, on NVIDIA's GPUs.
    """

    bits: int = 0
    compile: bool = False
    attention_backend: str = ""
    tf32: bool = False

    @property
    def settings(self) -> dict[str, int | bool | str]:
        """Return the settings that are set, by name: all that differ from 0, False and ""."""
        values = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {name: value for name, value in values if value}


@dataclass(frozen=True, slots=True)
class Loading:
    """A pipeline to load; one loaded pipeline serves every editor with the same values.

    Attributes:
        folder: with `model_index.json`.
        method: name of the `EditingMethod`.
        dtype: "float32", "float16" or "bfloat16"; "" for the method's own on the device.
        offload: "none", "model" or "sequential".
        safety_checker: keep the folder's own.
        variant: of the files, as in their names ("fp16"); "" for none.
        loras: files or folders of LoRA weights, each with its weight.
        running: what makes it smaller or faster.
    """

    folder: Path
    method: str
    dtype: str = ""
    offload: str = "none"
    safety_checker: bool = True
    variant: str = ""
    loras: tuple[tuple[Path, float], ...] = ()
    running: Running = Running()


@dataclass(frozen=True, slots=True)
class Steering:
    """How a pipeline is called; None leaves the choice to the method's runner."""

    steps: int | None = None
    guidance: float | None = None
    image_guidance: float | None = None
    alpha: float | None = None
    text_steps: int | None = None
    model_steps: int | None = None
    strength: float | None = None

    @classmethod
    def of(cls, settings: Mapping[str, float]) -> Steering:
        """Return the steering with these settings; numbers of steps are truncated to whole numbers."""
        whole = {name: int(value) for name, value in settings.items() if name.endswith("steps")}
        return cls(**{**settings, **whole})  # type: ignore[arg-type]  # mypy: float, where int replaces it

    @property
    def settings(self) -> dict[str, float]:
        """Return the settings that are not None, by name."""
        values = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One edit on a device.

    Attributes:
        canvas: the original on the model's canvas, uint8 (H, W, 3).
        instruction: the text passed to the model.
        seed: of this edit's own generator.
        concept: the subject of the edit in a word or two, for methods that read no sentences.
        removes: True if the edit removes the concept; None if unknown.
        side: of the canvas; None for the method's own.
        region: bool (H, W) of the canvas, for methods that require a region.
    """

    canvas: Pixels = field(repr=False)
    instruction: str
    seed: int
    concept: str = ""
    removes: bool | None = None
    side: int | None = None
    region: Mask | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Batch:
    """Edits that go through one pipeline together: of one canvas size, called in one way."""

    loading: Loading
    steering: Steering
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """Result of one edit.

    Attributes:
        pixels: uint8 (H, W, 3) of the canvas; None if there is none.
        outcome: why there is none.
        record: settings, device, precision and batch, for the journal.
    """

    pixels: Pixels | None = field(repr=False)
    outcome: Outcome
    record: dict[str, object]
