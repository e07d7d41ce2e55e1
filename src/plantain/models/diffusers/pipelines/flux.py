"""FLUX.1: Kontext, and ICEdit on FLUX.1 Fill. FLUX.2: dev, and klein of a few steps."""

from __future__ import annotations

from typing import ClassVar

from diffusers import (
    DiffusionPipeline,
    Flux2KleinPipeline,
    Flux2Pipeline,
    FluxFillPipeline,
    FluxKontextPipeline,
)
from PIL import Image
from transformers import AutoTokenizer

from plantain.models.diffusers.jobs import Job, Loading
from plantain.models.diffusers.pipelines.runner import Drawing, Runner

DIPTYCH = (
    "A diptych with two side-by-side images of the same scene. On the right, the scene is exactly the same as on the "
    "left but {instruction}"
)
"""The prompt that ICEdit's LoRA was trained with (ICEdit's repository); another wording is another model."""


class KontextRunner(Runner):
    """FLUX.1 Kontext. Canvases have one of the sizes that it was trained on, so its resizing is off."""

    pipeline_class = FluxKontextPipeline

    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        width, height = original.size
        return self.call(
            job,
            image=original,
            prompt=job.instruction,
            width=width,
            height=height,
            max_area=width * height,
            _auto_resize=False,
        )


class ICEditRunner(Runner):
    """ICEdit, which draws the right half of a diptych of the original. Canvases are 512 pixels wide."""

    pipeline_class = FluxFillPipeline

    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        width, height = original.size
        mask = Image.new("L", (2 * width, height), 0)
        mask.paste(255, (width, 0, 2 * width, height))
        diptych = Image.new("RGB", mask.size)
        diptych.paste(original, (0, 0))
        diptych.paste(original, (width, 0))
        drawn, blacked = self.call(
            job,
            prompt=DIPTYCH.replace("{instruction}", job.instruction),
            image=diptych,
            mask_image=mask,
            width=2 * width,
            height=height,
        )
        return drawn[:, width:], blacked


class Flux2Runner(Runner):
    """FLUX.2 dev."""

    pipeline_class: ClassVar[type[DiffusionPipeline]] = Flux2Pipeline
    read_layers: ClassVar[tuple[int, ...]] = (10, 20, 30)
    """Layers of the published text encoder that are read; of a smaller one only the last."""

    def load(self, loading: Loading, **parts: object) -> DiffusionPipeline:
        """Load the pipeline with a tokenizer only, since its image processor would need torchvision."""
        tokenizer = AutoTokenizer.from_pretrained(loading.folder / "tokenizer", local_files_only=True)
        return super().load(loading, tokenizer=tokenizer, **parts)

    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        width, height = original.size
        config = self.pipe.text_encoder.config
        layers = getattr(config, "text_config", config).num_hidden_layers
        return self.call(
            job,
            image=original,
            prompt=job.instruction,
            width=width,
            height=height,
            text_encoder_out_layers=self.read_layers if layers > self.read_layers[-1] else (layers,),
        )


class Flux2KleinRunner(Flux2Runner):
    """The small models FLUX.2 klein, which have another text encoder."""

    pipeline_class = Flux2KleinPipeline
    read_layers = (9, 18, 27)


RUNNERS = {
    "flux-kontext": KontextRunner,
    "icedit": ICEditRunner,
    "flux2": Flux2Runner,
    "flux2-klein": Flux2KleinRunner,
}
