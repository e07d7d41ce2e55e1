"""Builds on a Ray cluster that a test kills: python ray_driver.py ADDRESS CATALOGUE RUN LOG.

Each line of stdin starts a build in a process of its own, whose id is printed; the next line is read when that one has
ended. Common modules are imported once.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path

from fakes.remote_models import RemoteEditor
from pipeline.quick import CallLog, quick_method, quick_recipe
from plantain.engines import cluster
from plantain.pipeline.run import run_build


def build(address: str, catalogue: Path, run: Path, log: Path) -> int:
    # Looked often for room: a head that is lost just then must not hold the build up until Ray ends it.
    cluster.GONE_S, cluster.SEEN_S, cluster.LOOK_S = 3.0, 0.5, 0.2
    engine = {"kind": "ray", "address": address, "workers": "auto"}
    recipe = quick_recipe(catalogue, parts={"engine": engine})
    method = replace(quick_method(CallLog(None)), editor=RemoteEditor(log, 0.02))
    summary = asyncio.run(run_build(recipe, run, method=method))
    return 0 if summary.stopped is None else 1


if __name__ == "__main__":
    for module in ("ray", "plantain.engines.cluster"):
        importlib.import_module(module)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            os._exit(build(sys.argv[1], *map(Path, sys.argv[2:])))
        print(child, flush=True)
        os.waitpid(child, 0)
