"""Imagic (Kawar et al. 2023): trains on one image, then steps from its own embedding towards the text's.

For each image: (1) the text's embedding is optimised until the frozen model reconstructs the image from it; (2) the
model is fine-tuned to that embedding; (3) the image is drawn from a point on the line through both embeddings. The
model's weights are restored afterwards, so that no image influences the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from diffusers import DDPMScheduler, DiffusionPipeline, StableDiffusionPipeline
from PIL import Image

from plantain.models.diffusers.jobs import Job, Loading, Steering
from plantain.models.diffusers.pipelines.runner import Drawing, Runner, generator_of

TEXT_STEPS, TEXT_RATE = 500, 1e-3
MODEL_STEPS, MODEL_RATE = 1000, 2e-6
"""Optimisation steps and learning rates of the community's Stable Diffusion version, which MedEBench ran."""

ALPHA = 1.3


class ImagicRunner(Runner):
    """Imagic, one image at a time, with 1,500 optimisation steps before each edit by default."""

    pipeline_class = StableDiffusionPipeline
    inference = False

    def load(self, loading: Loading, **parts: object) -> DiffusionPipeline:
        pipe = super().load(loading, **parts)
        for part in (pipe.vae, pipe.text_encoder, pipe.unet):
            part.requires_grad_(False)
        self.noising = DDPMScheduler.from_config(pipe.scheduler.config)
        return pipe

    def draw(self, job: Job, original: Image.Image, region: Image.Image | None) -> Drawing:
        generator = generator_of(job)
        with torch.no_grad():
            wanted, empty = self.pipe.encode_prompt(job.instruction, self.device, 1, True)
            latents = self._latents(original)
        own = self._learn_embedding(wanted, latents, job.steering, generator)
        with self._weights_restored():
            self._learn_image(own, latents, job.steering, generator)
            alpha = ALPHA if job.steering.alpha is None else job.steering.alpha
            with torch.no_grad():
                done = self.pipe(
                    prompt_embeds=alpha * wanted + (1.0 - alpha) * own.to(wanted.dtype),
                    negative_prompt_embeds=empty,
                    width=original.width,
                    height=original.height,
                    generator=generator,
                    output_type="np",
                    **self.arguments(job.steering),
                )
        return done.images[0], bool(done.nsfw_content_detected and done.nsfw_content_detected[0])

    def _latents(self, image: Image.Image) -> torch.Tensor:
        vae = self.pipe.vae
        pixels = self.pipe.image_processor.preprocess(image).to(self.device, vae.dtype)
        latents: torch.Tensor = vae.encode(pixels).latent_dist.mode() * vae.config.scaling_factor
        return latents

    def _learn_embedding(
        self, wanted: torch.Tensor, latents: torch.Tensor, steering: Steering, generator: torch.Generator
    ) -> torch.Tensor:
        """The embedding from which the model reconstructs the image best, starting at the text's."""
        own = wanted.detach().clone().float().requires_grad_(True)
        optimiser = torch.optim.Adam([own], lr=TEXT_RATE)
        for _ in range(TEXT_STEPS if steering.text_steps is None else steering.text_steps):
            optimiser.zero_grad()
            self._loss(own, latents, generator).backward()
            optimiser.step()
        return own.detach()

    def _learn_image(
        self, own: torch.Tensor, latents: torch.Tensor, steering: Steering, generator: torch.Generator
    ) -> None:
        """Adjusts the model until it draws the image from that embedding."""
        weights = list(self.pipe.unet.parameters())
        optimiser = torch.optim.Adam(weights, lr=MODEL_RATE)
        for _ in range(MODEL_STEPS if steering.model_steps is None else steering.model_steps):
            optimiser.zero_grad()
            self._loss(own, latents, generator).backward()
            optimiser.step()

    def _loss(
        self, embedding: torch.Tensor, latents: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        noise = torch.randn(latents.shape, generator=generator, dtype=torch.float32)
        noise = noise.to(latents.device, latents.dtype)
        last = self.noising.config.num_train_timesteps
        time = torch.randint(0, last, (len(latents),), generator=generator).to(latents.device)
        noisy = self.noising.add_noise(latents, noise, time)
        predicted = self.pipe.unet(noisy, time, encoder_hidden_states=embedding.to(latents.dtype)).sample
        velocity = self.noising.config.prediction_type == "v_prediction"
        target = self.noising.get_velocity(latents, noise, time) if velocity else noise
        return torch.nn.functional.mse_loss(predicted.float(), target.float())

    @contextmanager
    def _weights_restored(self) -> Iterator[None]:
        """Restore the model's weights bit by bit at the end of the block."""
        unet = self.pipe.unet
        kept = {name: weight.detach().to("cpu", copy=True) for name, weight in unet.state_dict().items()}
        unet.requires_grad_(True)
        try:
            yield
        finally:
            unet.requires_grad_(False)
            unet.zero_grad(set_to_none=True)
            unet.load_state_dict(kept)


RUNNERS = {"imagic": ImagicRunner}
