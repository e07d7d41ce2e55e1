"""The ways in which open weights are run as an editor: which classes, at which size, with which settings."""

from __future__ import annotations

from dataclasses import dataclass

from plantain.models.frames import KONTEXT_SIZES, FramePolicy
from plantain.records import InputError
from plantain.records.suggestions import suggest

GUIDED = frozenset({"steps", "guidance"})
TWICE_GUIDED = GUIDED | {"image_guidance"}
INPAINTING = GUIDED | {"strength"}
FLUX_DEV = "flux-1-dev-non-commercial-license"
FLUX2_DEV = "flux-dev-non-commercial-license"


@dataclass(frozen=True, slots=True)
class EditingMethod:
    """One way of running weights.

    Attributes:
        name: as presets say it.
        module, runner: of `plantain.models.diffusers.pipelines`, and its class that runs the weights.
        classes: names of pipeline classes, as `model_index.json` states them, that it runs.
        frame: the canvas that it works on.
        takes: settings of `ProviderOptions` that it follows, beside those that every method does.
        batches: several images go through the model at once.
        offloads: its parts can wait in main memory.
        precision: of the weights on a GPU, unless the user says otherwise; on a processor it is float32.
        region: it has to be told where to edit.
        caches: its pipeline says which step it is at, so that the first block cache works; with FLUX.2
            and LongCat it fails, although their pipelines say so too (diffusers 0.42).
        licence: under which all weights of its classes come, whatever folder they lie in; "" where that differs.
    """

    name: str
    module: str
    runner: str
    classes: tuple[str, ...]
    frame: FramePolicy
    takes: frozenset[str]
    batches: bool = True
    offloads: bool = True
    precision: str = "bfloat16"
    region: bool = False
    caches: bool = False
    licence: str = ""


_SD = FramePolicy("longest", 512, 8)
_FLUX2 = FramePolicy("area", 1024, 16, reference="shrunk")
_QWEN = FramePolicy("area", 1024, 32, reference="derived")
_KONTEXT = FramePolicy("area", 1024, 16, KONTEXT_SIZES)

METHODS = {
    method.name: method
    for method in (
        EditingMethod(
            "instruct-pix2pix",
            "instruct_pix2pix",
            "InstructPix2PixRunner",
            ("StableDiffusionInstructPix2PixPipeline",),
            _SD,
            TWICE_GUIDED,
            precision="float16",
        ),
        EditingMethod(
            "instruct-diffusion",
            "instruct_diffusion",
            "InstructDiffusionRunner",
            (),
            _SD,
            TWICE_GUIDED,
            precision="float16",
        ),
        EditingMethod(
            "imagic",
            "imagic",
            "ImagicRunner",
            (),
            _SD,
            GUIDED | {"alpha", "text_steps", "model_steps"},
            batches=False,
            offloads=False,
            precision="float32",
        ),
        EditingMethod(
            "icedit",
            "icedit",
            "ICEditRunner",
            ("FluxFillPipeline",),
            FramePolicy("width", 512, 16),
            GUIDED,
            licence=FLUX_DEV,
        ),
        EditingMethod(
            "flux-kontext",
            "flux_kontext",
            "FluxKontextRunner",
            ("FluxKontextPipeline",),
            _KONTEXT,
            GUIDED,
            licence=FLUX_DEV,
        ),
        EditingMethod(
            "flux2-klein",
            "flux2",
            "Flux2KleinRunner",
            ("Flux2KleinPipeline",),
            _FLUX2,
            GUIDED,
            batches=False,
        ),
        EditingMethod(
            "flux2",
            "flux2",
            "Flux2Runner",
            ("Flux2Pipeline",),
            _FLUX2,
            GUIDED,
            batches=False,
            licence=FLUX2_DEV,
        ),
        EditingMethod(
            "longcat-image-edit",
            "longcat",
            "LongCatImageEditRunner",
            ("LongCatImageEditPipeline",),
            FramePolicy("area", 1024, 16, reference="raised"),
            GUIDED,
            batches=False,
        ),
        EditingMethod(
            "qwen-image-edit",
            "qwen_image_edit",
            "QwenImageEditRunner",
            ("QwenImageEditPipeline",),
            _QWEN,
            GUIDED,
            batches=False,
            caches=True,
        ),
        EditingMethod(
            "qwen-image-edit-plus",
            "qwen_image_edit",
            "QwenImageEditPlusRunner",
            ("QwenImageEditPlusPipeline",),
            _QWEN,
            GUIDED,
            batches=False,
            caches=True,
        ),
        EditingMethod(
            "ledits",
            "ledits",
            "LeditsRunner",
            ("LEditsPPPipelineStableDiffusion",),
            FramePolicy("longest", 512, 32),
            GUIDED,
            batches=False,
            offloads=False,
            precision="float16",
        ),
        EditingMethod(
            "sdxl-instruct-pix2pix",
            "sdxl_instruct_pix2pix",
            "SdxlInstructPix2PixRunner",
            ("StableDiffusionXLInstructPix2PixPipeline",),
            FramePolicy("longest", 768, 8),
            TWICE_GUIDED,
            precision="float16",
        ),
        EditingMethod(
            "sd-inpaint",
            "stable_diffusion_inpaint",
            "StableDiffusionInpaintRunner",
            ("StableDiffusionInpaintPipeline",),
            _SD,
            INPAINTING,
            precision="float16",
            region=True,
        ),
        EditingMethod(
            "sdxl-inpaint",
            "stable_diffusion_inpaint",
            "SdxlInpaintRunner",
            ("StableDiffusionXLInpaintPipeline",),
            FramePolicy("longest", 1024, 8),
            INPAINTING,
            precision="float16",
            region=True,
        ),
        EditingMethod(
            "flux-kontext-inpaint",
            "flux_kontext",
            "FluxKontextInpaintRunner",
            ("FluxKontextInpaintPipeline",),
            _KONTEXT,
            INPAINTING,
            batches=False,
            region=True,
            licence=FLUX_DEV,
        ),
        EditingMethod(
            "qwen-image-edit-inpaint",
            "qwen_image_edit",
            "QwenImageEditInpaintRunner",
            ("QwenImageEditInpaintPipeline",),
            _QWEN,
            INPAINTING,
            batches=False,
            caches=True,
            region=True,
        ),
    )
}

BASES = {
    "StableDiffusionPipeline": (
        "diffusers/medebench-imagic",
        "diffusers/ledits-pp",
        "diffusers/sd-inpaint",
    ),
    "StableDiffusionXLPipeline": ("diffusers/sdxl-inpaint",),
}
"""Classes of models that are no editors by themselves -> the presets that edit with them."""


def method_named(name: str) -> EditingMethod:
    """The method of a preset.

    Raises:
        InputError: there is none of that name.
    """
    if name in METHODS:
        return METHODS[name]
    raise InputError(f"no method {name!r} of running weights; {suggest(name, METHODS)}")


def method_for_class(class_name: str, where: str) -> EditingMethod:
    """The method for a folder's pipeline class.

    Raises:
        InputError: the class is none that we run, or one that needs a preset to say how.
    """
    for method in METHODS.values():
        if class_name in method.classes:
            return method
    if class_name in BASES:
        ways = " or ".join(f"{preset}@{where}" for preset in BASES[class_name])
        raise InputError(f"{where} holds a {class_name}, which edits nothing by itself: name it {ways}")
    known = sorted(name for method in METHODS.values() for name in method.classes)
    raise InputError(f"{where} holds a {class_name}, which we cannot run; we run {', '.join(known)}")
