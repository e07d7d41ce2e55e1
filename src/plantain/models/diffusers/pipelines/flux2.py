"""FLUX.2: dev, and klein, distilled to a few steps; a list of images is references for one edit there, not a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from diffusers import DiffusionPipeline, Flux2KleinPipeline, Flux2Pipeline
from PIL import Image
from transformers import AutoTokenizer

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines import runner


class Flux2Runner(runner.Runner):
    """One edit at a time."""

    pipeline_class = Flux2Pipeline
    read_layers: ClassVar = (10, 20, 30)
    """Layers of the published text encoder that are read; in a smaller one only the last."""

    def load(self, loading: Loading) -> DiffusionPipeline:
        """With the tokenizer alone of what is a processor of images too, which needs torchvision and is shown none."""
        tokenizer = AutoTokenizer.from_pretrained(loading.folder / "tokenizer", local_files_only=True)
        return runner.load_pipeline(
            self.pipeline_class, loading, self.precision, self.device, tokenizer=tokenizer
        )

    def draw(
        self, pictures: list[Image.Image], jobs: Sequence[Job], steering: Steering
    ) -> tuple[np.ndarray, Sequence[bool]]:
        ((picture,), (job,)) = pictures, jobs
        config = self.pipe.text_encoder.config
        layers = getattr(config, "text_config", config).num_hidden_layers
        done = self.pipe(
            image=[picture],
            prompt=job.instruction,
            width=picture.width,
            height=picture.height,
            generator=runner.generators(jobs),
            text_encoder_out_layers=self.read_layers if layers > self.read_layers[-1] else (layers,),
            output_type="np",
            **runner.given(num_inference_steps=steering.steps, guidance_scale=steering.guidance),
        )
        return done.images, [False]


class Flux2KleinRunner(Flux2Runner):
    """The small ones, with another text encoder."""

    pipeline_class = Flux2KleinPipeline
    read_layers = (9, 18, 27)
