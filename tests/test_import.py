from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAVY = [
    *("numpy", "cv2", "scipy", "skimage", "matplotlib", "PIL", "pydicom", "nibabel", "pydantic", "rich"),
    *("typer", "jinja2", "torch", "diffusers", "transformers", "httpx2", "pyarrow", "datasets"),
    *("onnxruntime", "pandas", "sqlite3", "asyncio"),
]


def loaded_by(code: str, modules: list[str]) -> list[str]:
    """Return those of `modules` that a process has loaded after running the code."""
    code += f"; import sys; print('loaded', *(m for m in {modules!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()[1:]


def test_import_plantain_loads_no_heavy_module() -> None:
    assert loaded_by("import plantain", HEAVY) == []


def test_help_and_usage_load_no_heavy_module() -> None:
    code = "import plantain.cli; plantain.cli.main(['--help']); plantain.cli.main(['nonsense'])"
    assert loaded_by(code, [name for name in HEAVY if name not in ("typer", "pydantic")]) == []


def modules_of_extras() -> list[str]:
    """Return the installed modules that are not a dependency of plantain's, directly or indirectly."""
    own, waiting = set(), ["plantain-med"]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in own:
            continue
        own.add(name)
        asked = (Requirement(text) for text in requires(name) or ())
        waiting += [one.name for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})]
    found = packages_distributions().items()
    return sorted(module for module, of in found if own.isdisjoint(canonicalize_name(name) for name in of))


def test_every_command_is_importable_without_the_extras() -> None:
    """Plain `pip install` must be enough to import every command; extras are imported on use."""
    extras = modules_of_extras()
    assert {"openai", "pybase64", "pyarrow", "torch"} <= set(extras) and "numpy" not in extras
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({extras!r}))\n"
        "import importlib, plantain.cli as cli\n"
        "from plantain.cli import LazyGroup\n"
        "for module, _ in cli.COMMANDS.values():\n"
        "    app = getattr(importlib.import_module(module.split(':')[0]), 'app', None)\n"
        "    if isinstance(app, LazyGroup):\n"
        "        for inner, _ in app.homes.values(): importlib.import_module(inner.split(':')[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_frequent_commands_load_only_needed_modules() -> None:
    code = "import plantain.cli.build, plantain.cli.status, plantain.cli.show"
    assert loaded_by(code, ["matplotlib", "scipy", "skimage", "torch"]) == []
