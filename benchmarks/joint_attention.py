"""What watching joint attention costs: time against the same edit unwatched, by default and for all layers and steps.

The peer is the same pipeline in the same process, runs alternating. Weights are random; the transformer is of Kontext's
class with 12 of its 57 layers at a sixth of its width: words, output and reference have nearly their real shares.

    python benchmarks/joint_attention.py [--steps 8] [--size 384] [--repeats 3] [--phrase 4] [--device cpu]
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from diffusers import FluxTransformer2DModel
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fakes.tiny.flux import tiny_flux_kontext
from fakes.tiny.parts import WIDTH
from plantain.models.diffusers.attention.joint import JointAttentionRecorder


def pipeline(device: str) -> Any:
    pipe = tiny_flux_kontext(seed=0)
    torch.manual_seed(1)
    pipe.transformer = FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        out_channels=16,
        num_layers=4,
        num_single_layers=8,
        attention_head_dim=64,
        num_attention_heads=8,
        joint_attention_dim=WIDTH,
        pooled_projection_dim=WIDTH,
        guidance_embeds=True,
        axes_dims_rope=(16, 24, 24),
    ).eval()
    pipe.set_progress_bar_config(disable=True)
    return pipe.to(device)


def edit(pipe: Any, size: int, steps: int) -> np.ndarray:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 255, (size, size, 3), np.uint8))
    return pipe(
        image=picture,
        prompt="an edit",
        height=size,
        width=size,
        max_area=size * size,
        _auto_resize=False,
        num_inference_steps=steps,
        generator=torch.Generator().manual_seed(0),
        output_type="np",
    ).images


def timed(pipe: Any, size: int, steps: int) -> tuple[float, np.ndarray]:
    clock = time.process_time if pipe.device.type == "cpu" else time.perf_counter
    begun = clock()
    drawn = edit(pipe, size, steps)  # ends on the processor: the picture is read back
    return clock() - begun, drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--size", type=int, default=384, help="of the picture, pixels")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--phrase", type=int, default=4, help="tokens of the phrase")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pipe, side = pipeline(options.device), options.size // 16
    seconds: dict[str, list[float]] = {"unwatched": [], "default": [], "all": []}
    said: dict[str, object] = {
        "size": options.size,
        "steps": options.steps,
        "layers": 12,
        "phrase_tokens": options.phrase,
    }
    edit(pipe, options.size, 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    same = True
    for _ in range(options.repeats):
        took, plain = timed(pipe, options.size, options.steps)
        seconds["unwatched"].append(took)
        choices: tuple[tuple[str, Literal["some", "all"]], ...] = (("default", "some"), ("all", "all"))
        for name, choice in choices:
            recorder = JointAttentionRecorder(
                pipe.transformer,
                (side, side),
                range(options.phrase),
                total=lambda: len(pipe.scheduler.timesteps),
                layers=choice,
                steps=choice,
            )
            with recorder:
                took, watched = timed(pipe, options.size, options.steps)
            seconds[name].append(took)
            same = same and np.array_equal(plain, watched)
            said[f"{name}: maps summed"] = recorder.recorded
            said[f"{name}: kept_mb"] = round(recorder.maps().numel() * 4 / 1e6, 3)
    tokens = 512 + 2 * side * side
    said |= {
        "identical": same,
        "unwatched_s": round(min(seconds["unwatched"]), 3),
        "default / unwatched": round(min(seconds["default"]) / min(seconds["unwatched"]), 3),
        "all / unwatched": round(min(seconds["all"]) / min(seconds["unwatched"]), 3),
        "peak grew, mb": round((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1e3, 1),
        "peer, every softmax kept, mb": round(12 * options.steps * 8 * tokens**2 * 4 / 1e6),
    }
    print(json.dumps(said))


if __name__ == "__main__":
    main()
