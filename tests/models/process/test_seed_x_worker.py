"""The program for SEED-X against fakes with the signatures of AILab-CVC/SEED-X at 24c865ba: no weights were run."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import numpy as np

from plantain.bench.benchmark.samples import plain_image
from plantain.models.process import workers
from plantain.models.process.editor import ProcessEditor
from plantain.models.process.provider import WorkerCommand
from plantain.models.registry import preset
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_png
from plantain.records import OutcomeKind
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply

WORKER = Path(workers.__path__[0]) / "seed_x.py"

UPSTREAM = """
import json, torch
from PIL import Image

def note(**what):
    with open("calls.jsonl", "a") as file:
        file.write(json.dumps(what) + "\\n")

class Part:
    def eval(self): return self
    def to(self, *a, **k): return self

class Tokenizer:
    bos_token_id = 1
    def encode(self, text, add_special_tokens=True):
        import re
        assert add_special_tokens is False
        pieces = re.findall(r"<[^>]*>|[^<]", text)
        marks = ["<img>", "</img>", "<patch>", "</patch>"]
        return [2 + marks.index(p) if p in marks else 100 + (len(p) > 1) for p in pieces]

class Seeing(Part):
    def __call__(self, patches): return patches.mean((2, 3))

class Agent(Part):
    def generate(self, tokenizer, input_ids, image_embeds, embeds_cmp_mask, patch_positions, ids_cmp_mask,
                 max_new_tokens=120, num_img_gen_tokens=64):
        assert input_ids.shape == ids_cmp_mask.shape
        assert input_ids[0][ids_cmp_mask[0]].tolist() == [101] * 64  # the image's places and nothing else
        assert input_ids[0, 0] == 1
        note(places=int(ids_cmp_mask.sum()), asked=input_ids.shape[1], patches=len(embeds_cmp_mask))
        return {"text": "", "has_img_output": input_ids.shape[1] < 200, "img_gen_feat": image_embeds}

class Adapter(Part):
    def __init__(self, unet): pass
    def init_pipe(self, vae, scheduler, visual_encoder, image_transform, dtype=None, device=None): pass
    def generate(self, image_pil=None, image_tensor=None, image_embeds=None, latent_image=None, seed=42, height=1024,
                 width=1024, guidance_scale=7.5, num_inference_steps=30, input_image_size=448):
        note(seed=seed, guidance=guidance_scale, steps=num_inference_steps, size=list(latent_image.size))
        return [latent_image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]
"""

HYDRA = """
import upstream
def instantiate(config, **parts):
    if "tokenizer/" in config: return upstream.Tokenizer()
    if "transform" in config or "llm_seed" in config: return upstream.Part()
    if "visual_encoder" in config: return upstream.Seeing()
    return upstream.Agent() if "agent" in config else upstream.Adapter(**parts)
"""


def clone(folder: Path) -> Path:
    files = {
        "upstream.py": UPSTREAM,
        "hydra/__init__.py": "",
        "hydra/utils.py": HYDRA,
        "omegaconf.py": "class OmegaConf:\n    load = staticmethod(str)\n",
        "src/inference/any_res.py": (
            "import torch\ndef process_anyres_image(image, processor, grid_pinpoints, base_image_size):\n"
            "    assert grid_pinpoints == [[448, 448]] and base_image_size == 448\n"
            "    return torch.zeros(1, 3, 448, 448), torch.zeros(1, 2)\n"
        ),
        "diffusers.py": (
            "import upstream\nclass Saved:\n    @staticmethod\n    def from_pretrained(path, subfolder):\n"
            "        return upstream.Part()\nAutoencoderKL = UNet2DConditionModel = EulerDiscreteScheduler = Saved\n"
        ),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_program_calls_upstream_as_its_own_script_does(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (1024, 1024, 3), dtype=np.uint8)
    settings = {"device": "cpu", "precision": "float32"}
    command = WorkerCommand(
        command=(sys.executable, str(WORKER)), folder=clone(tmp_path), timeout_s=60.0, settings=settings
    )
    editor = ProcessEditor("process/medebench-seed-x", preset("process/medebench-seed-x"), command, None)

    async def scene() -> list[Reply[EditedImage]]:
        image = EncodedImage(encode_png(pixels), "image/png")
        source = plain_image("1", (1024, 1024), "x")
        asked = [EditRequest(source, image, words, seed) for words, seed in (("Brighten", 7), ("x" * 200, 8))]
        try:
            return [await editor.edit(one) for one in asked]
        finally:
            await editor.aclose()

    drawn, silent = asyncio.run(scene())
    assert drawn.value is not None, drawn.outcome
    assert np.array_equal(decode(drawn.value.image.data), pixels[:, ::-1])
    assert (silent.outcome.kind, silent.outcome.reason) == (
        OutcomeKind.NO_IMAGE,
        "the model answered in words only",
    )
    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
    assert calls[1] == {"seed": 7, "guidance": 7.5, "steps": 50, "size": [1024, 1024]}
    assert [call["places"] for call in calls if "places" in call] == [64, 64]
