"""RadEdit (Perez-Garcia et al. 2024), an editor of chest radiographs, as a program for the preset `process/radedit`.

It runs in an environment of its own (`radedit.requirements.txt` in this folder), because its pipeline and text encoder
are code that is loaded with the weights; it imports nothing of plantain. The parts are combined as in its model card;
its pipeline edits within the region and keeps the rest. Its prompt is the report of the edited image ("No acute
cardiopulmonary process"), not an instruction. Settings: steps (100), guidance (7.5), skip_ratio (0.3), device ("cuda"),
precision ("float32"), and a hub id or folder of each part: weights, vae, text_encoder.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any, Dict, Optional  # noqa: UP035  # its environment may have Python 3.8

CONTRACT = 1
PARTS = {
    "weights": "microsoft/radedit",
    "vae": "stabilityai/sdxl-vae",
    "text_encoder": "microsoft/BiomedVLP-BioViL-T",
}


class RadEdit:
    """RadEdit's pipeline, loaded once.

    Args:
        settings: settings in the manifest.
    """

    def __init__(self, settings: Dict[str, Any]) -> None:  # noqa: UP006
        self.torch: Any = importlib.import_module("torch")
        diffusers: Any = importlib.import_module("diffusers")
        transformers: Any = importlib.import_module("transformers")
        weights, vae, text = (settings.get(name, usual) for name, usual in PARTS.items())
        generating = diffusers.StableDiffusionPipeline(
            unet=diffusers.UNet2DConditionModel.from_pretrained(weights, subfolder="unet"),
            vae=diffusers.AutoencoderKL.from_pretrained(vae),
            text_encoder=transformers.AutoModel.from_pretrained(text, trust_remote_code=True),
            tokenizer=transformers.AutoTokenizer.from_pretrained(
                text, model_max_length=128, trust_remote_code=True
            ),
            scheduler=diffusers.DDIMScheduler(
                beta_schedule="linear",
                clip_sample=False,
                prediction_type="epsilon",
                timestep_spacing="trailing",
                steps_offset=1,
            ),
            safety_checker=None,
            requires_safety_checker=False,
            feature_extractor=None,
        )
        generating.to(
            settings.get("device", "cuda"), getattr(self.torch, settings.get("precision", "float32"))
        )
        self.pipe = diffusers.DiffusionPipeline.from_pipe(
            generating, custom_pipeline=weights, trust_remote_code=True
        )

    def edit(self, image: Any, region: Any, text: str, seed: int, settings: Dict[str, Any]) -> Any:  # noqa: UP006
        """Edit an image within a region; return a PIL image of the same size.

        Args:
            image: PIL image, RGB.
            region: PIL image, grey, 255 inside the region of the change.
        """
        self.torch.manual_seed(seed)  # its pipeline takes no generator
        drawn = self.pipe(
            text,
            weights=[float(settings.get("guidance", 7.5))],
            image=image,
            edit_mask=region,
            keep_mask=region.point(lambda value: 255 - value),
            num_inference_steps=int(settings.get("steps", 100)),
            invert_prompt="",
            skip_ratio=float(settings.get("skip_ratio", 0.3)),
            output_type="pil",
        )
        return getattr(drawn, "images", drawn)[0]


def main() -> None:
    """Process manifests until the standard input ends."""
    images: Any = importlib.import_module("PIL.Image")
    model: Optional[RadEdit] = None  # noqa: UP045
    for line in sys.stdin:
        manifest = json.loads(Path(line.strip()).read_text(encoding="utf-8"))
        if manifest["contract"] != CONTRACT:
            raise SystemExit(
                f"contract {manifest['contract']} is unknown here; this program knows {CONTRACT}"
            )
        model = model or RadEdit(manifest["settings"])
        for job in manifest["jobs"]:
            settings = {**manifest["settings"], **job["parameters"]}
            with images.open(job["image"]) as file, images.open(job["region"]) as mask:
                image, region = file.convert("RGB"), mask.convert("L")
            drawn = model.edit(image, region, job["instruction"], job["seed"], settings)
            drawn.convert("RGB").save(Path(manifest["out"]) / f"{job['id']}.png")
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
