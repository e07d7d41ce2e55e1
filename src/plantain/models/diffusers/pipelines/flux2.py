"""FLUX.2: dev, and klein, distilled to a few steps; a list of images is references for one edit there, not a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from diffusers import DiffusionPipeline, Flux2KleinPipeline, Flux2Pipeline
from transformers import AutoTokenizer

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines.runner import Drawings, Images, Runner


class Flux2Runner(Runner):
    """One edit at a time."""

    pipeline_class: ClassVar[type[DiffusionPipeline]] = Flux2Pipeline
    read_layers: ClassVar[tuple[int, ...]] = (10, 20, 30)
    """Layers of the published text encoder that are read; of a smaller one only the last."""

    def load(self, loading: Loading, **parts: object) -> DiffusionPipeline:
        """Load only the tokenizer of an image processor, which would need torchvision."""
        tokenizer = AutoTokenizer.from_pretrained(loading.folder / "tokenizer", local_files_only=True)
        return super().load(loading, tokenizer=tokenizer, **parts)

    def draw(self, jobs: Sequence[Job], originals: Images, regions: Images, steering: Steering) -> Drawings:
        width, height = originals[0].size
        config = self.pipe.text_encoder.config
        layers = getattr(config, "text_config", config).num_hidden_layers
        return self.call(
            jobs,
            steering,
            image=originals,
            prompt=jobs[0].instruction,
            width=width,
            height=height,
            text_encoder_out_layers=self.read_layers if layers > self.read_layers[-1] else (layers,),
        )


class Flux2KleinRunner(Flux2Runner):
    """The small ones, with another text encoder."""

    pipeline_class = Flux2KleinPipeline
    read_layers = (9, 18, 27)


RUNNERS = {"flux2": Flux2Runner, "flux2-klein": Flux2KleinRunner}
