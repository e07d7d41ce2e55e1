"""plantain: build, judge and benchmark text-guided edits of medical images.

A research tool, not a medical device. Every image that it makes is synthetic.

    import plantain

    run = plantain.run("pilot.toml", "runs/pilot")
    run.table()

Every name below is imported on first use: `import plantain` itself loads no image library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from plantain.version import __version__

if TYPE_CHECKING:
    from plantain import metrics
    from plantain.api.building import plan, run
    from plantain.api.evaluating import evaluate
    from plantain.api.run import Run
    from plantain.bench.benchmark.benchmark import Benchmark
    from plantain.catalogue.store import Catalogue
    from plantain.pipeline.recipe import Recipe

__all__ = [
    "Benchmark",
    "Catalogue",
    "Recipe",
    "Run",
    "__version__",
    "evaluate",
    "metrics",
    "plan",
    "run",
]

_HOMES = {
    "Benchmark": "plantain.bench.benchmark.benchmark",
    "Catalogue": "plantain.catalogue.store",
    "Recipe": "plantain.pipeline.recipe",
    "Run": "plantain.api.run",
    "evaluate": "plantain.api.evaluating",
    "metrics": "plantain.metrics",
    "plan": "plantain.api.building",
    "run": "plantain.api.building",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_HOMES[name])
    found: object = home if name == "metrics" else getattr(home, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
