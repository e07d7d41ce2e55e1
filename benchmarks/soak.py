"""A long run against the fake provider: 200 ms an answer, three in a hundred of them faulty in thirty ways.

The fake runs in a process of its own and speaks Gemini's wire format; its edits are 64 photographs in
turn. Resident memory is read twice a second. Targets: every task in a final state, none open; memory of the last third
within 10 % of the first third's, the first minute apart, in which imports and the pictures kept in memory fill it.

Run: python benchmarks/soak.py [--tasks 5000] [--rounds 2]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil

from plantain.catalogue.store import Catalogue
from plantain.journal import JournalReader
from plantain.pipeline.method import method_of
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.pixels.encode import encode_source
from plantain.records import TaskState
from simulated.pictures import photograph, source_image
from simulated.serve import serving

SETTLING = 120
"""Readings of the first minute."""

FINDINGS = ("AMD", "Cataract", "Diabetes", "Glaucoma", "Hypertension", "Myopia")


def fill(folder: Path, images: int) -> Path:
    """A catalogue of so many different images: one photograph, each with another mark in its black corner."""
    pixels = photograph()
    with Catalogue.create(folder / "catalogue") as catalogue:
        for i in range(images):
            pixels[:4, :16] = [[[(i >> bit & 1) * 255] * 3 for bit in range(16)]] * 4
            data = encode_source(pixels)
            image = source_image(hashlib.sha256(data).hexdigest())
            catalogue.add(replace(image, id=f"image-{i:05d}"), data)
    return folder / "catalogue"


async def soak(recipe: Recipe, run: Path) -> tuple[str | None, list[float]]:
    """Why the run stopped, if it did, and resident memory in MiB over time."""
    process, resident = psutil.Process(), list[float]()

    async def observer() -> None:
        while True:
            resident.append(process.memory_info().rss / 2**20)
            await asyncio.sleep(0.5)

    watching = asyncio.create_task(observer())
    summary = await run_build(
        recipe, run, method=method_of(recipe)
    )  # so that no text is looked for in the edits
    watching.cancel()
    return summary.stopped, resident


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=2, help="most rounds of a task")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="plantain-bench-") as name,
        serving(0.2, 0.03, pictures=64) as (url, key),
    ):
        os.environ["GEMINI_API_KEY"] = key
        folder = Path(name)
        recipe = Recipe.model_validate(
            {
                "name": "soak",
                "data": {
                    "catalogue": fill(folder, -(-args.tasks // len(FINDINGS))),
                    "findings": FINDINGS,
                    "directions": ["add"],
                },
                "models": {
                    "writer": "gemini/gemini-3.8-flash",
                    "editor": "gemini/gemini-3.1-flash-image",
                    "judge": "gemini/gemini-3.8-flash",
                },
                "loop": {"max_rounds": args.rounds},
                "limits": {"concurrency": 64, "budget_usd": 100_000.0},
                "providers": {"gemini": {"base_url": url, "timeout_s": 30.0}},
            }
        )
        begun, cpu = time.monotonic(), time.process_time()
        stopped, resident = asyncio.run(soak(recipe, folder / "run"))
        seconds, spent = time.monotonic() - begun, time.process_time() - cpu
        with JournalReader.open(folder / "run") as reader:
            states = {state.value: n for state, n in reader.counts().items() if n}
            outcomes = {kind.value: n for kind, n in reader.outcomes().items()}
            open_calls, cost = len(reader.open_calls()), reader.spent_usd()
            left = reader.counts()[TaskState.PENDING]
    calls = sum(outcomes.values())
    settled = resident[SETTLING:] or resident  # a short run has nothing else
    third = -(-len(settled) // 3)
    first, last = (sum(part) / len(part) for part in (settled[:third], settled[-third:]))
    print(f"{sum(states.values())} tasks in {seconds:.0f} s: {states}; stopped: {stopped}")
    print(
        f"{calls} calls, {1000 * spent / calls:.1f} ms CPU each, {calls / seconds:.0f} a second: {outcomes}"
    )
    print(f"{open_calls} calls open; ${cost:.2f} at list prices")
    print(
        f"resident memory after the first minute: first third {first:.0f} MiB, last third {last:.0f} MiB "
        f"({last / first:.2f}x, target 1.10x); at most {max(resident):.0f} MiB"
    )
    return 0 if stopped is None and not left and not open_calls and last <= 1.10 * first else 1


if __name__ == "__main__":
    sys.exit(main())
