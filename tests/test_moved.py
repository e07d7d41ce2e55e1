"""Names of the first edition that other packages import: they work, warn once, and are today's very objects."""

from __future__ import annotations

import subprocess
import sys

from plantain.moved import today

CODE = """
import importlib, sys, warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import plantain
    assert not told
    old = importlib.import_module(sys.argv[1])
    new = importlib.import_module(sys.argv[2])
    again = importlib.import_module(sys.argv[1])
assert old is new is again, (old, new)
assert new.__spec__.name == new.__name__ == sys.argv[2], new.__spec__
mine = [str(one.message) for one in told if "is now" in str(one.message)]
assert mine == [f"{sys.argv[1]} is now {sys.argv[2]}"], mine
"""


def run(*arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_old_module_is_todays_and_says_so_once() -> None:
    for old in ("plantain.models.options", "plantain.metrics.agreement", "plantain.sources.catalogue"):
        run("-c", CODE, old, today(old))
    assert today("plantain.build.recipe") == "plantain.pipeline.recipe"
    assert not today("plantain.builder")


def test_what_a_package_of_the_first_edition_imports_is_there() -> None:
    run(
        "-W",
        "ignore",
        "-c",
        "from plantain.build.recipe import Recipe, load_recipe\n"
        "from plantain.models.options import ProviderOptions\n"
        "from plantain.sources.catalogue import Catalogue\n"
        "from plantain.sources.entries import SourceEntry\n"
        "from plantain.sources.registry import SourceKind\n"
        "from plantain.bench.benchmark import Benchmark\n"
        "import plantain\n"
        "assert SourceEntry and Benchmark is plantain.Benchmark and Catalogue is plantain.Catalogue\n"
        "assert Recipe is plantain.Recipe\n",
    )
