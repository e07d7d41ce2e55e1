"""Open editors on the device at hand: `plantain bench generate` against a bare diffusers loop, tiny to SDXL-sized.

The peer runs in the same call on the same files with the same weights: open, resize, call the pipeline, save as PNG.
Weights are random, so images are noise; loading and the first edit are not timed. Target: 95 % of the bare loop.

    python benchmarks/gpu.py [--device cuda:0] [--rungs tiny,sd15,sdxl] [--attention]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from diffusers import DiffusionPipeline
from PIL import Image

from simulated.ladder import LADDER, Rung, save
from simulated.open_editor import edits_per_second, make_benchmark, rate_of

HERE = Path(__file__).parent
TARGET = 0.95


def bare(weights: Path, files: list[Path], out: Path, rung: Rung, device: str) -> tuple[float, float]:
    """Images a second of a plain script, and the most memory of the GPU in gigabytes."""
    gpu = device.startswith("cuda")
    pipe = DiffusionPipeline.from_pretrained(weights, dtype=torch.bfloat16 if gpu else torch.float32).to(
        device
    )
    pipe.set_progress_bar_config(disable=True)
    if gpu:
        torch.cuda.reset_peak_memory_stats(device)
    out.mkdir()
    ends = []
    for number, file in enumerate(files):
        drawn = pipe(
            prompt="make it brighter",
            image=Image.open(file).convert("RGB").resize((rung.side, rung.side)),
            num_inference_steps=rung.steps,
            generator=torch.Generator().manual_seed(number),
        ).images[0]
        drawn.save(out / file.name)
        ends.append(time.monotonic())
    memory = torch.cuda.max_memory_allocated(device) / 1e9 if gpu else 0.0
    del pipe
    if gpu:
        torch.cuda.empty_cache()
    return rate_of(ends, 1), memory


def through_plantain(weights: Path, benchmark: Path, scratch: Path, rung: Rung, device: str) -> float:
    """Edits a second of the command that a user types."""
    settings, run = scratch / f"{rung.name}.toml", scratch / f"run-{rung.name}"
    settings.write_text(
        f'[providers.diffusers]\ndevice = "{device}"\nside = {rung.side}\nsteps = {rung.steps}\n'
        f'dtype = "{"float32" if device == "cpu" else "bfloat16"}"\n'
    )
    command = [sys.executable, "-m", "plantain", "bench", "generate", str(benchmark), "--run", str(run)]
    command += ["--editor", f"diffusers/{weights}", "--settings", str(settings), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.is_dir(), ran.stderr
    return edits_per_second(run, 1)


def measure(rung: Rung, scratch: Path, device: str) -> dict[str, object]:
    """One row for a size of pipeline."""
    weights = scratch / f"weights-{rung.name}"
    save(rung.name, weights, device)
    files = make_benchmark(scratch / f"images-{rung.name}", rung.images, rung.side)
    alone, memory = bare(weights, files, scratch / f"bare-{rung.name}", rung, device)
    ours = through_plantain(weights, scratch / f"images-{rung.name}", scratch, rung, device)
    return {
        "pipeline": rung.name,
        "side": rung.side,
        "steps": rung.steps,
        "bare_per_s": round(alone, 3),
        "plantain_per_s": round(ours, 3),
        "of_bare": round(ours / alone, 3),
        "bare_gpu_gb": round(memory, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rungs", default="", help="default: all on a GPU, tiny on a processor")
    options = parser.parse_args()
    wanted = options.rungs or ("tiny" if options.device == "cpu" else ",".join(rung.name for rung in LADDER))
    met = True
    print(f"device: {torch.cuda.get_device_name(options.device) if options.device != 'cpu' else 'cpu'}")
    with tempfile.TemporaryDirectory() as scratch:
        for rung in LADDER:
            if rung.name in wanted.split(","):
                row = measure(rung, Path(scratch), options.device)
                print(json.dumps(row), flush=True)
                met = met and (options.device == "cpu" or row["of_bare"] >= TARGET)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
