"""What watching cross-attention costs: time against the same edit unwatched, memory against keeping all maps.

The peer is the same pipeline in the same process, steps alternating; weights are random and of a quarter of Stable
Diffusion 1.5's width, at its own latent size, so that attention has its real share of the work.

    python benchmarks/attention.py [--steps 3] [--size 256] [--repeats 3]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from diffusers import UNet2DConditionModel

from fakes.tiny.parts import WIDTH
from fakes.tiny.stable_diffusion import tiny_instruct_pix2pix
from plantain.models.diffusers.attention.cross import CrossAttentionRecorder


def pipeline(latent: int) -> Any:
    pipe = tiny_instruct_pix2pix(seed=0)
    torch.manual_seed(1)
    pipe.unet = UNet2DConditionModel(
        in_channels=8,
        out_channels=4,
        sample_size=latent,
        layers_per_block=2,
        block_out_channels=(80, 160, 320, 320),
        norm_num_groups=16,
        cross_attention_dim=WIDTH,
        attention_head_dim=8,
    ).eval()
    pipe.set_progress_bar_config(disable=True)
    return pipe


def edit(pipe: Any, size: int, steps: int) -> np.ndarray:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (size, size, 3), np.uint8))
    generator = torch.Generator().manual_seed(0)
    return pipe(
        "an edit", image=picture, num_inference_steps=steps, generator=generator, output_type="np"
    ).images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--size", type=int, default=256, help="of the picture, pixels")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    latent = options.size // 8
    pipe = pipeline(latent)
    plain, watched, same = [], [], True
    edit(pipe, options.size, 1)
    for _ in range(options.repeats):
        begun = time.process_time()
        without = edit(pipe, options.size, options.steps)
        plain.append(time.process_time() - begun)
        begun = time.process_time()
        with CrossAttentionRecorder(pipe.unet, (latent, latent)) as recorder:
            recorded = edit(pipe, options.size, options.steps)
        watched.append(time.process_time() - begun)
        same = same and np.array_equal(without, recorded)
    kept = recorder.maps()
    every = 0
    for name, attention in pipe.unet.named_modules():
        if name.endswith("attn2"):
            level = {"down_blocks.0": 1, "down_blocks.1": 2, "down_blocks.2": 4, "mid_block": 8, "up_blocks.1": 4,
                     "up_blocks.2": 2, "up_blocks.3": 1}  # fmt: skip
            shrink = next(factor for part, factor in level.items() if name.startswith(part))
            every += 3 * attention.heads * (latent // shrink) ** 2 * kept.shape[1] * 4
    said = {
        "size": options.size,
        "steps": options.steps,
        "layers": len(recorder.layers),
        "identical": same,
        "unwatched_cpu_s": round(min(plain), 3),
        "watched_cpu_s": round(min(watched), 3),
        "watched / unwatched": round(min(watched) / min(plain), 3),
        "kept_mb": round(kept.numel() * 4 / 1e6, 2),
        "all maps of all steps, mb": round(every * options.steps / 1e6, 1),
        "all maps of 50 steps, mb": round(every * 50 / 1e6, 1),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
