"""Edits a second of `bench generate` against a bare loop, with a pipeline that takes a stated time for each image.

The peer runs before it, on the same files: decode, draw, make images of floats, save them as PNG, as a script around a
diffusers pipeline does. "of the device" is the share of the time for which the device drew. Weights are loaded before
anything is timed; of several devices the first three rounds are left out, in which their processes start. Target: at
least 95 % of the bare loop at 0.5 and 5 s a image. With several devices the peer is as many times the one loop, and
this machine's cores may be the limit: choose a small side to see the devices' own.

    python benchmarks/throughput.py [--seconds 0.05,0.5,5] [--side 1024] [--devices 1]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from simulated.open_editor import MANY, SECONDS, edits_per_second, image, make_benchmark, rate_of

HERE = Path(__file__).parent
TARGET, HELD = 0.95, (0.5, 5.0)


def bare(files: list[Path], out: Path, seconds: float, side: int) -> float:
    """Images a second of a loop around the same pipeline."""
    ready = [image(number, side, side).astype(np.float32) / 255 for number in range(MANY)]
    out.mkdir()
    ends = []
    for number, file in enumerate(files):
        assert Image.open(file).convert("RGB").size == (side, side)
        time.sleep(seconds)
        drawn = (ready[number % MANY] * 255).round().astype(np.uint8)
        Image.fromarray(drawn).save(out / file.name, "PNG")
        ends.append(time.monotonic())
    return rate_of(ends, 1)


def through_plantain(
    scratch: Path, benchmark: Path, name: str, seconds: float, side: int, devices: int
) -> float:
    """Edits a second of `bench generate`, with the process of each device exchanged for one that sleeps."""
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.bench.generate.generate import generate
    from plantain.bench.generate.requests import ArmRequest
    from plantain.models.diffusers.devices import DeviceProcess
    from plantain.offline.workers import close_workers
    from plantain.runs.terms import load_terms

    settings, named = scratch / f"{name}.toml", ",".join(["cpu"] * devices)
    settings.write_text(f'[providers.diffusers]\ndevice = "{named}"\nside = {side}\n')
    editor = f"diffusers/{scratch / 'weights'}"
    os.environ[SECONDS] = str(seconds)
    os.environ["PYTHONPATH"] = str(HERE)
    DeviceProcess.module = "simulated.open_editor"
    wanted = ArmRequest(editors=(editor,))
    asyncio.run(
        generate(Benchmark.load(benchmark), scratch / name, wanted, load_terms(settings, wanted.models))
    )
    close_workers()
    return edits_per_second(scratch / name, 1 if devices == 1 else 3 * devices)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="0.05,0.5,5")
    parser.add_argument("--side", type=int, default=1024, help="of images and canvas, pixels")
    parser.add_argument("--devices", type=int, default=1, help="simulated ones, each with a process")
    options = parser.parse_args()
    devices = options.devices
    met = True
    print("s a image  edits  bare/s  plantain/s  of bare  of the device")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "weights").mkdir()  # whose pipeline sleeps: its class is all that is read
        index = json.dumps({"_class_name": "StableDiffusionInstructPix2PixPipeline"})
        (scratch / "weights/model_index.json").write_text(index, encoding="utf-8")
        for seconds in map(float, options.seconds.split(",")):
            edits = max(2 if devices == 1 else 8 * devices, 6, min(40, round(12 / seconds)))
            name = f"{seconds:g}"
            files = make_benchmark(scratch / f"images-{name}", edits, options.side)
            few = files[: max(2, len(files) // devices)]
            alone = devices * bare(few, scratch / f"bare-{name}", seconds, options.side)
            ours = through_plantain(scratch, scratch / f"images-{name}", name, seconds, options.side, devices)
            met = met and (seconds not in HELD or ours >= TARGET * alone)
            print(
                f"{seconds:11g}  {edits:5}  {alone:6.3f}  {ours:10.3f}  {ours / alone:7.3f}  "
                f"{ours * seconds / devices:13.3f}",
                flush=True,
            )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
