"""The program for RadEdit with diffusers' own classes around tiny random parts: no weights were run.

What stands in for its `pipeline.py`, which comes with the weights, has the arguments by which others call it (e.g. the
discussions of microsoft/radedit).
"""

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
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import OutcomeKind
from plantain.roles import EditRequest, EncodedImage

WORKER = Path(workers.__path__[0]) / "radedit.py"

PIPELINE = """
import json
import numpy as np
import torch
from diffusers import StableDiffusionPipeline
from PIL import Image

class RadEditPipeline(StableDiffusionPipeline):
    def __call__(self, prompt, weights, image, edit_mask, keep_mask, num_inference_steps=200, invert_prompt="",
                 skip_ratio=0.0, output_type="pil"):
        told, _ = self.encode_prompt(prompt, self.device, 1, False)
        edit, keep, before = (np.asarray(part) for part in (edit_mask, keep_mask, image))
        assert set(np.unique(edit)) <= {0, 255} and np.array_equal(edit == 0, keep == 255)
        with open("calls.jsonl", "a") as file:
            file.write(json.dumps({
                "prompt": prompt, "told": list(told.shape), "weights": weights, "steps": num_inference_steps,
                "skip": skip_ratio, "drawn": torch.rand(1).item(), "channels": self.unet.config.in_channels,
                "betas": self.scheduler.config.beta_schedule, "size": list(image.size),
            }) + "\\n")
        after = np.where(edit[..., None] > 0, 255 - before, before)
        return [Image.fromarray(after)]
"""


def parts(folder: Path) -> dict[str, str | int | float | bool]:
    """Settings that name tiny parts in place of RadEdit's UNet, SDXL's VAE and BioViL-T, a BERT."""
    from transformers import BertConfig, BertModel, BertTokenizer

    from fakes.tiny.parts import WIDTH, tiny_vae
    from fakes.tiny.stable_diffusion import tiny_unet

    tiny_unet(4).save_pretrained(folder / "radedit" / "unet")
    (folder / "radedit" / "pipeline.py").write_text(PIPELINE, encoding="utf-8")
    tiny_vae().save_pretrained(folder / "vae")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "no", "effusion"]
    BertTokenizer(vocab={word: number for number, word in enumerate(words)}).save_pretrained(folder / "text")
    bert = BertConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
    )
    BertModel(bert).save_pretrained(folder / "text")
    named = {"weights": "radedit", "vae": "vae", "text_encoder": "text"}
    return {**{name: str(folder / part) for name, part in named.items()}, "device": "cpu"}


def test_the_program_edits_within_the_region(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (512, 512, 3), dtype=np.uint8)
    region = np.zeros((512, 512), dtype=bool)
    region[100:200, 50:300] = True
    named = preset("process/radedit")
    command = WorkerCommand(
        command=(sys.executable, str(WORKER)),
        folder=tmp_path,
        timeout_s=120.0,
        batch_size=4,
        settings=parts(tmp_path),
    )
    editor = ProcessEditor(named.name, named, command, None)

    async def scene() -> None:
        image, told = EncodedImage(encode_png(picture), "image/png"), plain_image("1", (512, 512), "x")
        mask = EncodedImage(encode_mask(region), "image/png")
        try:
            one, same, other = [
                await editor.edit(EditRequest(told, image, "no effusion", seed, region=mask))
                for seed in (7, 7, 8)
            ]
            without = await editor.edit(EditRequest(told, image, "no effusion", 7))
        finally:
            await editor.aclose()
        assert one.value is not None, one.outcome
        assert same.value is not None
        assert other.value is not None
        after = decode(one.value.image.data)
        assert np.array_equal(after[region], 255 - picture[region])
        assert np.array_equal(after[~region], picture[~region])
        assert without.outcome.kind is OutcomeKind.NOT_APPLICABLE

    asyncio.run(scene())
    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
    assert calls[0] == {
        "prompt": "no effusion",
        "told": [1, 128, 32],  # 128 tokens, the width of the tiny text encoder
        "weights": [7.5],
        "steps": 100,
        "skip": 0.3,
        "drawn": calls[0]["drawn"],
        "channels": 4,
        "betas": "linear",
        "size": [512, 512],
    }
    assert [call["drawn"] == calls[0]["drawn"] for call in calls] == [True, True, False]
