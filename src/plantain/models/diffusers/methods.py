"""Editing methods: which weights run as an editor, at which size, with which settings."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.models.frames import KONTEXT_SIZES, FramePolicy
from plantain.records import InputError
from plantain.records.messages import suggest

GUIDED = frozenset({"steps", "guidance"})
TWICE_GUIDED = GUIDED | {"image_guidance"}
LEARNING = GUIDED | {"alpha", "text_steps", "model_steps"}
INPAINTING = GUIDED | {"strength"}
FLUX2_DEV = "flux-dev-non-commercial-license"
FLUX_DEV = "flux-1-dev-non-commercial-license"
HALF = "float16"


@dataclass(frozen=True, slots=True)
class EditingMethod:
    """One way of running weights as an editor.

    Attributes:
        name: name in presets.
        module: module of `plantain.models.diffusers.pipelines` with its runner.
        frame: sizes of the canvas.
        takes: settings of `[providers.diffusers]` that it supports, in addition to those of every method.
        offloads: True if its parts can be offloaded to main memory.
        precision: default precision of the weights on a GPU; on a CPU it is float32.
        region: True if it requires a region.
        licence: licence of all weights of its pipeline class; "" if it differs.
    """

    name: str
    module: str
    frame: FramePolicy
    takes: frozenset[str]
    offloads: bool = True
    precision: str = "bfloat16"
    region: bool = False
    licence: str = ""


_SD = FramePolicy("longest", 512, 8)
_SDXL = FramePolicy("longest", 1024, 8)
_SDXL_EDIT = FramePolicy("longest", 768, 8)
_ICEDIT = FramePolicy("width", 512, 16)
_KONTEXT = FramePolicy("area", 1024, 16, KONTEXT_SIZES)
_FLUX2 = FramePolicy("area", 1024, 16, reference="shrunk")
_QWEN = FramePolicy("area", 1024, 32, reference="derived")

_METHODS = (
    EditingMethod("instruct-pix2pix", "stable_diffusion", _SD, TWICE_GUIDED, precision=HALF),
    EditingMethod("instruct-diffusion", "stable_diffusion", _SD, TWICE_GUIDED, precision=HALF),
    EditingMethod("imagic", "imagic", _SD, LEARNING, offloads=False, precision="float32"),
    EditingMethod("icedit", "flux", _ICEDIT, GUIDED, licence=FLUX_DEV),
    EditingMethod("flux-kontext", "flux", _KONTEXT, GUIDED, licence=FLUX_DEV),
    EditingMethod("flux2-klein", "flux", _FLUX2, GUIDED),
    EditingMethod("flux2", "flux", _FLUX2, GUIDED, licence=FLUX2_DEV),
    EditingMethod("qwen-image-edit", "qwen", _QWEN, GUIDED),
    EditingMethod("qwen-image-edit-plus", "qwen", _QWEN, GUIDED),
    EditingMethod("sdxl-instruct-pix2pix", "stable_diffusion", _SDXL_EDIT, TWICE_GUIDED, precision=HALF),
    EditingMethod("sd-inpaint", "stable_diffusion", _SD, INPAINTING, precision=HALF, region=True),
    EditingMethod("sdxl-inpaint", "stable_diffusion", _SDXL, INPAINTING, precision=HALF, region=True),
)
METHODS = {method.name: method for method in _METHODS}

CLASSES = {
    "StableDiffusionInstructPix2PixPipeline": "instruct-pix2pix",
    "FluxFillPipeline": "icedit",
    "FluxKontextPipeline": "flux-kontext",
    "Flux2KleinPipeline": "flux2-klein",
    "Flux2Pipeline": "flux2",
    "QwenImageEditPipeline": "qwen-image-edit",
    "QwenImageEditPlusPipeline": "qwen-image-edit-plus",
    "StableDiffusionXLInstructPix2PixPipeline": "sdxl-instruct-pix2pix",
    "StableDiffusionInpaintPipeline": "sd-inpaint",
    "StableDiffusionXLInpaintPipeline": "sdxl-inpaint",
}
"""Pipeline class, as in `model_index.json` -> the method that runs it."""

BASES = {
    "StableDiffusionPipeline": ("diffusers/medebench-imagic", "diffusers/sd-inpaint"),
    "StableDiffusionXLPipeline": ("diffusers/sdxl-inpaint",),
}
"""Classes of models that are no editors by themselves -> the presets that edit with them."""


def method_named(name: str) -> EditingMethod:
    """Return the method of a preset. Raise InputError if there is none of that name."""
    if name in METHODS:
        return METHODS[name]
    raise InputError(f"no method {name!r} of running weights; {suggest(name, METHODS)}")


def method_for_class(class_name: str, where: str) -> EditingMethod:
    """Return the method for a folder's pipeline class; `where` names the folder in error messages.

    Raises:
        InputError: the class is not supported, or only a preset can determine the method.
    """
    if class_name in CLASSES:
        return METHODS[CLASSES[class_name]]
    if class_name in BASES:
        ways = " or ".join(f"{preset}@{where}" for preset in BASES[class_name])
        raise InputError(f"{where} contains a {class_name}, which is not an editor by itself: name it {ways}")
    raise InputError(
        f"{where} holds a {class_name}, which is not supported; these are: {', '.join(sorted(CLASSES))}"
    )
