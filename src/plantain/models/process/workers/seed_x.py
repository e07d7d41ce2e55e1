"""SEED-X-Edit as a program of the provider `process`, for the preset `process/medebench-seed-x`.

It runs in SEED-X's own environment (`seed_x.requirements.txt` in this folder) in a clone of AILab-CVC/SEED-X, and
imports nothing of plantain. The calls and their order are those of that repository's editing script,
src/inference/eval_img2edit_seed_x_edit.py at 24c865ba. Settings: steps (50), guidance (7.5), device ("cuda"),
precision ("float16"). The seed of each edit is passed on; upstream's default is 42 for every image.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any, Dict, Iterable, Optional  # noqa: UP035  # its environment may have Python 3.8

CONTRACT = 1
SIDE, VIT_SIDE = 1024, 448
"""Sides of the output image and of the language model's input, in pixels."""

IMAGE_TOKENS = 64
CONFIGS = {
    "tokenizer": "tokenizer/clm_llama_tokenizer_224loc_anyres.yaml",
    "image_transform": "processer/qwen_448_transform.yaml",
    "visual_encoder": "visual_encoder/qwen_vitg_448.yaml",
    "llm": "clm_models/llm_seed_x_edit.yaml",
    "agent": "clm_models/agent_seed_x_edit.yaml",
    "adapter": (
        "sdxl_adapter/sdxl_qwen_vit_resampler_l4_q64_full_with_latent_image_pretrain_no_normalize.yaml"
    ),
}
SDXL = "pretrained/stable-diffusion-xl-base-1.0"


class SeedX:
    """SEED-X-Edit's model, loaded once.

    Args:
        settings: settings in the manifest.
    """

    def __init__(self, settings: Dict[str, Any]) -> None:  # noqa: UP006
        root = Path.cwd()
        sys.path[:0] = [str(root), str(root / "src" / "inference")]
        self.torch: Any = importlib.import_module("torch")
        self.any_res: Any = importlib.import_module("any_res")
        diffusers: Any = importlib.import_module("diffusers")
        self.device = settings.get("device", "cuda")
        self.precision = getattr(self.torch, settings.get("precision", "float16"))
        place = {"device": self.device, "dtype": self.precision}
        self.tokenizer, self.transform = self._made("tokenizer"), self._made("image_transform")
        self.seeing = self._made("visual_encoder").eval().to(**place)
        llm = self._made("llm", torch_dtype=self.precision)
        self.agent = self._made("agent", llm=llm).eval().to(**place)
        vae = diffusers.AutoencoderKL.from_pretrained(SDXL, subfolder="vae").to(**place)
        unet = diffusers.UNet2DConditionModel.from_pretrained(SDXL, subfolder="unet").to(**place)
        self.adapter = self._made("adapter", unet=unet).to(**place).eval()
        self.adapter.init_pipe(
            vae=vae,
            scheduler=diffusers.EulerDiscreteScheduler.from_pretrained(SDXL, subfolder="scheduler"),
            visual_encoder=self.seeing,
            image_transform=self.transform,
            dtype=self.precision,
            device=self.device,
        )

    def _made(self, name: str, **parts: Any) -> Any:
        """Return the object of a config of the clone."""
        hydra: Any = importlib.import_module("hydra")
        importlib.import_module("hydra.utils")
        config: Any = importlib.import_module("omegaconf").OmegaConf.load(f"configs/{CONFIGS[name]}")
        return hydra.utils.instantiate(config, **parts)

    def edit(self, image: Any, instruction: str, seed: int, settings: Dict[str, Any]) -> Optional[Any]:  # noqa: UP006, UP045
        """Edit an image; return a PIL image of 1024 x 1024 pixels, None if the model answers with text only."""
        torch = self.torch
        patches, positions = self.any_res.process_anyres_image(
            image, self.transform, [[VIT_SIDE, VIT_SIDE]], VIT_SIDE
        )
        ids = torch.tensor(self._tokens(instruction, len(patches)), device=self.device)
        opening, closing = (self._ids(names) for names in (("<img>", "<patch>"), ("</img>", "</patch>")))
        inside, depth = [], 0
        for number in ids.tolist():
            depth -= number in closing
            inside.append(depth > 0)
            depth += number in opening
        with torch.no_grad():
            answer = self.agent.generate(
                tokenizer=self.tokenizer,
                input_ids=ids.unsqueeze(0),
                image_embeds=self.seeing(patches.to(self.device, dtype=self.precision)),
                embeds_cmp_mask=torch.ones(len(patches), dtype=torch.bool, device=self.device),
                patch_positions=positions,
                ids_cmp_mask=torch.tensor([inside], device=self.device),
                max_new_tokens=512,
                num_img_gen_tokens=IMAGE_TOKENS,
            )
        if not answer["has_img_output"]:
            return None
        return self.adapter.generate(
            image_embeds=answer["img_gen_feat"],
            latent_image=image.resize((SIDE, SIDE)),
            num_inference_steps=int(settings.get("steps", 50)),
            guidance_scale=float(settings.get("guidance", 7.5)),
            seed=seed,
        )[0]

    def _tokens(self, instruction: str, patches: int) -> Any:
        """Return the ids of the image's tokens, patches first and the whole image last, then of the text."""
        places = "".join(f"<img_{number:05d}>" for number in range(IMAGE_TOKENS))
        shown = f"<patch>{places}</patch>" * (patches - 1) + f"<img>{places}</img>"
        text = f"[INST] {shown}{instruction} [/INST]\n"
        return [self.tokenizer.bos_token_id, *self.tokenizer.encode(text, add_special_tokens=False)]

    def _ids(self, names: Iterable[str]) -> Any:
        return {self.tokenizer.encode(name, add_special_tokens=False)[0] for name in names}


def main() -> None:
    """Process manifests until the standard input ends."""
    images: Any = importlib.import_module("PIL.Image")
    model: Optional[SeedX] = None  # noqa: UP045
    for line in sys.stdin:
        manifest = json.loads(Path(line.strip()).read_text(encoding="utf-8"))
        if manifest["contract"] != CONTRACT:
            raise SystemExit(
                f"contract {manifest['contract']} is unknown here; this program knows {CONTRACT}"
            )
        model = model or SeedX(manifest["settings"])
        for job in manifest["jobs"]:
            settings = {**manifest["settings"], **job["parameters"]}
            with images.open(job["image"]) as file:
                image = file.convert("RGB")
            drawn = model.edit(image, job["instruction"], job["seed"], settings)
            target = Path(manifest["out"]) / job["id"]
            if drawn is None:
                failure = {"outcome": "no_image", "reason": "the model answered in words only"}
                target.with_suffix(".json").write_text(json.dumps(failure), encoding="utf-8")
            else:
                drawn.convert("RGB").save(target.with_suffix(".png"))
        print(line.strip(), flush=True)


if __name__ == "__main__":
    main()
