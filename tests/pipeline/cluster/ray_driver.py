"""A build on a Ray cluster, in a process that a test kills: python ray_driver.py ADDRESS CATALOGUE RUN LOG SECONDS.

With a further word it is the mother of such processes: each line that it reads begins one, whose id it prints, and it
reads the next when that one has ended. What all of them import is imported once.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path

from fakes.remote_models import RemoteEditor
from pipeline.quick import CallLog, NoText, quick_method, quick_recipe
from plantain.engines import cluster
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError


def build(address: str, catalogue: Path, run: Path, log: Path, seconds: float) -> int:
    # Looked often for room: a head that is lost just then must not hold the build up until Ray ends it.
    cluster.GONE_S, cluster.SEEN_S, cluster.LOOK_S = 3.0, 0.5, 0.2
    recipe = quick_recipe(catalogue)
    engine = {"kind": "ray", "address": address, "workers": "auto"}
    recipe = Recipe.model_validate({**recipe.model_dump(), "engine": engine})
    method = replace(quick_method(CallLog(None)), editor=RemoteEditor(log, seconds))
    try:
        summary = asyncio.run(run_build(recipe, run, method=method, text_reader=NoText()))
    except InputError as error:
        print(f"plantain: {error}", flush=True)
        return 2
    print(f"ended: {summary.stopped} {summary.left}", flush=True)
    return 0 if summary.stopped is None else 1


def begin_one_after_another(address: str, catalogue: Path, run: Path, log: Path, seconds: float) -> None:
    for module in ("ray", "plantain.engines.worker"):
        importlib.import_module(module)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(build(address, catalogue, run, log, seconds))
        print(child, flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    words = sys.argv[1], *map(Path, sys.argv[2:5]), float(sys.argv[5])
    if sys.argv[6:]:
        begin_one_after_another(*words)
    else:
        sys.exit(build(*words))
