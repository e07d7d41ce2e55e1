"""What an edit costs the head when it is made elsewhere: through the Ray engine, through local processes, and bare.

One picture of 0.7 MB goes to a worker and one of that size comes back, each time another. Counted is the processor time
of this process alone, Ray's own threads in it included; the ways take turns, and medians are given. "bare" is Ray's own
`put`, call and `get` of the same bytes, without an engine. Then whole builds on both engines, journal and pictures on
disk with it. Target: the engine's leg at most 1.5 times the bare one.

Run: python benchmarks/engine_overhead.py [--edits 300] [--scratch FOLDER]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from plantain.engines.cluster import RayEngine
from plantain.engines.contract import WorkEngine
from plantain.engines.settings import EngineSection
from simulated.million import make_catalogue, pictures, recipe_for
from simulated.workers import HERE, OnWorkers, returned

BYTES = 700_000
WORKERS, REPEATS, TARGET = 2, 3, 1.5
SECTION = {"kind": "ray", "address": "local", "workers": WORKERS, "editor": {"cpus": 0.5}}


def picture(number: int) -> bytes:
    return os.urandom(64) + number.to_bytes(8, "big") + bytes(BYTES - 72)


async def through(engine: WorkEngine, edits: int) -> None:
    """So many edits, twice as many under way as there are workers."""
    numbers = iter(range(edits))

    async def one_after_another() -> None:
        for number in numbers:
            ran = await engine.run("editor", returned, (picture(number), number))
            assert ran.value is not None and len(ran.value) == BYTES

    await asyncio.gather(*(one_after_another() for _ in range(2 * WORKERS)))


async def bare(actors: list[Any], edits: int) -> None:
    """The same bytes by Ray alone."""
    import ray

    numbers = iter(range(edits))

    async def by(actor: Any) -> None:
        for number in numbers:
            found = await actor.back.remote(ray.put(picture(number)), number)
            assert len(found) == BYTES

    await asyncio.gather(*(by(actor) for actor in actors))


async def legs(edits: int) -> dict[str, float]:
    """Milliseconds of this process an edit, by way; medians."""
    import ray

    class Bare:
        def back(self, data: bytes, number: int) -> bytes:
            return returned(data, number)

    by_ray = RayEngine(EngineSection.model_validate(SECTION))
    by_ray.open()
    actors = [ray.remote(Bare).options(num_cpus=0.5).remote() for _ in range(WORKERS)]
    ways: dict[str, Callable[[int], Awaitable[None]]] = {
        "bare ray.get": lambda n: bare(actors, n),
        "ray engine": lambda n: through(by_ray, n),
        "local processes": lambda n: through(HERE, n),
    }
    told: dict[str, list[float]] = {name: [] for name in ways}
    try:
        for way in ways.values():
            await way(10)
        for _ in range(REPEATS):
            for name, way in ways.items():
                begun = time.process_time()
                await way(edits)
                told[name].append(1000 * (time.process_time() - begun) / edits)
    finally:
        await by_ray.aclose()
        HERE.close()
    return {name: statistics.median(row) for name, row in told.items()}


def build(scratch: Path, name: str, kind: str, tasks: int) -> tuple[float, int]:
    """Milliseconds of this process for each edit of a whole build, and edits."""
    from plantain.pipeline.method import Method
    from plantain.pipeline.run import run_build
    from plantain.rubrics import MED_BANANA

    engine = EngineSection.model_validate({**SECTION, "kind": kind})
    recipe = recipe_for(scratch / "catalogue").model_copy(update={"engine": engine})
    model = replace(OnWorkers(folder=scratch / "pictures"), log=scratch / f"{name}.log")
    method = Method(model, model, (model,), MED_BANANA, "all-pass", 0.7, 2, 0)
    begun = time.process_time()
    summary = asyncio.run(run_build(recipe, scratch / name, method=method))
    spent = time.process_time() - begun
    HERE.close()
    assert summary.stopped is None, summary.stopped
    edits = (scratch / f"{name}.log").read_bytes().count(b"\n")
    return 1000 * spent / edits, edits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--tasks", type=int, default=300)
    args = parser.parse_args()
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=str(Path(__file__).parent))
    told = asyncio.run(legs(args.edits))
    for name, cost in told.items():
        print(f"{name:<16} {cost:6.2f} ms an edit ({cost / told['bare ray.get']:.2f} of bare)", flush=True)
    with tempfile.TemporaryDirectory(prefix="plantain-") as folder:
        scratch = Path(folder)
        make_catalogue(scratch / "catalogue", args.tasks)
        pictures(scratch / "pictures", 200)
        whole: dict[str, float] = {}
        for kind in ("local", "ray", "local", "ray"):
            name = f"{kind} {len(whole)} {time.monotonic_ns()}"
            cost, edits = build(scratch, name, kind, args.tasks)
            whole[kind] = min(cost, whole.get(kind, cost))
            print(f"whole build, {kind:<6} {cost:6.2f} ms an edit of {edits}", flush=True)
    print(f"whole build on Ray: {whole['ray'] / whole['local']:.2f} of local processes")
    good = told["ray engine"] <= TARGET * told["bare ray.get"]
    print("target met" if good else "the target was MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
