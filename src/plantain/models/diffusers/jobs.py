"""What goes to a device and what comes back: plain records that travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from plantain.records import Outcome

DRAWN = "drawn"
"""What a device's process sends when a batch has left the device; the batch's results follow."""


@dataclass(frozen=True, slots=True)
class Running:
    """What makes weights smaller or faster, and answers a little different.

    Attributes:
        bits: of the denoiser's weights: 8 or 4; 0 for as they are.
        compile: torch.compile of the denoiser's blocks, with the first edits.
        attention_backend: of diffusers, e.g. "native", "_native_cudnn", "flash"; "" for its default.
        tf32: matrix products of float32 in TF32, on NVIDIA's GPUs.
        vae_tiling: the VAE works tile by tile.
        step_cache: threshold of the first block cache, which leaves steps out that change little; 0 for none.
    """

    bits: int = 0
    compile: bool = False
    attention_backend: str = ""
    tf32: bool = False
    vae_tiling: bool = False
    step_cache: float = 0.0

    @property
    def settings(self) -> dict[str, int | bool | str | float]:
        """What is set, by name."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value}


@dataclass(frozen=True, slots=True)
class Loading:
    """What is loaded, and how; one loaded pipeline serves every editor that says the same.

    Attributes:
        folder: with `model_index.json`.
        method: name of the way in which it is run.
        dtype: "float32", "float16" or "bfloat16"; "" for the method's own on the device at hand.
        offload: "none", "model" or "sequential".
        safety_checker: keep the folder's own.
        lora: a file or folder of LoRA weights; None for none.
        loras: several files or folders of LoRA weights together, each with the weight that it is given.
        running: what makes it smaller or faster.
        variant: of the files, as their names say it ("fp16"); "" for the plain ones.
    """

    folder: Path
    method: str
    dtype: str = ""
    offload: str = "none"
    safety_checker: bool = True
    lora: Path | None = None
    variant: str = ""
    loras: tuple[tuple[Path, float], ...] = ()
    running: Running = Running()


@dataclass(frozen=True, slots=True)
class Steering:
    """How a pipeline is called. None leaves the choice to the method's runner."""

    steps: int | None = None
    guidance: float | None = None
    image_guidance: float | None = None
    alpha: float | None = None
    text_steps: int | None = None
    model_steps: int | None = None
    strength: float | None = None

    @classmethod
    def of(cls, settings: Mapping[str, float]) -> Steering:
        """From names and numbers; counts of steps are made whole."""
        steps, text, model = (
            None if (value := settings.get(name)) is None else int(value)
            for name in ("steps", "text_steps", "model_steps")
        )
        names = "guidance", "image_guidance", "alpha", "strength"
        guidance, image_guidance, alpha, strength = map(settings.get, names)
        return cls(steps, guidance, image_guidance, alpha, text, model, strength)

    @property
    def settings(self) -> dict[str, float]:
        """What is set, by name."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}


@dataclass(frozen=True, slots=True)
class Job:
    """One edit: the original's bytes and what to do to it.

    Attributes:
        picture: file bytes.
        instruction: what the model is sent.
        seed: of this edit's own generator.
        concept: what the edit is about, in a word or two, for methods that take no sentence.
        removes: the concept is to go; None when neither is known.
        side: of the canvas; None for the method's own.
        region: a mask of the picture's size (`encode_mask`), for methods that are told where to edit.
    """

    picture: bytes = field(repr=False)
    instruction: str
    seed: int
    concept: str = ""
    removes: bool | None = None
    side: int | None = None
    region: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Batch:
    """Edits that go through one pipeline together: of one canvas size, called in one way."""

    loading: Loading
    steering: Steering
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one edit.

    Attributes:
        picture: PNG of the original's size, or None.
        outcome: why there is none.
        record: what was done, for the journal: geometry, settings as used, device, precision, batch.
    """

    picture: bytes | None = field(repr=False)
    outcome: Outcome
    record: dict[str, object]
