"""The provider `diffusers`: its settings, its presets, and loading one of them, a hub id or a folder as an editor."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from plantain.files.installed import require_extra
from plantain.models.registry import presets
from plantain.records import InputError
from plantain.roles.options import Free, ProviderSettings


class Settings(ProviderSettings):
    """The settings in `[providers.diffusers]`.

    Attributes:
        dtype: precision of the weights; "" for the method's default on this device.
        device: "cpu", "cuda:1", or several with commas; "" for every GPU, else the CPU.
        offload: "none", "model" or "sequential": parts of a model wait in main memory until they are needed.
        steps: denoising steps; unset for the preset's.
        guidance: how strongly the editor follows the instruction; unset for the preset's.
        image_guidance: how strongly it keeps to the original, in methods that know this; unset for the preset's.
        alpha: Imagic's step from the image's own embedding towards the text's.
        text_steps: steps in which Imagic learns the embedding of one image; unset for 500.
        model_steps: steps in which Imagic learns the weights of one image; unset for 1000.
        strength: how far an editor that is given a region starts from the original there: 1 from noise, less from it.
        side: longest side, or square root of the area, of the canvas in pixels; unset for the method's default.
        lora: hub id, folder or file of LoRA weights.
        bits: bits to which the denoiser is quantised, 8 or 4; 0: not quantised.
        compile: compile the denoiser's blocks (torch.compile) with the first edits.
        tf32: matrix products of float32 in TF32, on NVIDIA's GPUs.
        revision: branch, tag or commit of weights from the hub.
        cache_dir: folder of weights from the hub, instead of the usual cache.
        allow_downloads: fetch weights that are not on disk; otherwise no connection is ever opened.
        accept_licence: the licences, by name, that the user accepts: needed by weights with conditions.
        safety_checker: keep the safety checker of the weights; an image that it blacks out is a refusal.
    """

    dtype: Literal["", "float32", "float16", "bfloat16"] = ""
    device: Free[str] = ""
    offload: Free[Literal["", "none", "model", "sequential"]] = ""
    steps: int | None = Field(default=None, ge=1, le=10_000)
    guidance: float | None = Field(default=None, ge=0.0, le=1000.0)
    image_guidance: float | None = Field(default=None, ge=0.0, le=1000.0)
    alpha: float | None = Field(default=None, ge=0.0, le=10.0)
    text_steps: int | None = Field(default=None, ge=0, le=100_000)
    model_steps: int | None = Field(default=None, ge=0, le=100_000)
    strength: float | None = Field(default=None, gt=0.0, le=1.0)
    side: int | None = Field(default=None, ge=32, le=4096)
    lora: str = ""
    bits: Literal[0, 4, 8] = 0
    compile: bool = False
    tf32: bool = False
    revision: str = ""
    cache_dir: Free[Path | None] = None
    allow_downloads: Free[bool] = False
    accept_licence: Free[tuple[str, ...]] = ()
    safety_checker: bool = True


EXTRA = ("torch", "diffusers")
MODELS: dict[str, tuple[str, ...]] = {
    name: ("editor",) for name in presets() if name.startswith("diffusers/")
}


def load(name: str, role: str, options: Settings) -> object:
    """Return the editor of that name; its weights are located now and loaded at the first edit.

    Raises:
        InputError: the role is not "editor", the extra is missing, or `plan_editor` raises it.
    """
    if role != "editor":
        raise InputError(f"models.{role}: {name!r} can be an editor, not a {role}")
    require_extra(name, *EXTRA)
    from plantain.models.diffusers.editor import DiffusersEditor
    from plantain.models.diffusers.plan import plan_editor

    return DiffusersEditor(plan_editor(name, options))
