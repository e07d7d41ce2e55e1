from __future__ import annotations

import subprocess
import sys

HEAVY = [
    "numpy",
    "cv2",
    "scipy",
    "skimage",
    "matplotlib",
    "PIL",
    "pydicom",
    "nibabel",
    "pydantic",
    "rich",
    "typer",
    "jinja2",
    "torch",
    "diffusers",
    "transformers",
    "google.genai",
    "openai",
    "httpx2",
    "pyarrow",
    "datasets",
    "onnxruntime",
    "pandas",
    "sqlite3",
    "asyncio",
]


def test_import_plantain_loads_no_heavy_module() -> None:
    code = f"import sys, plantain; print(' '.join(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_help_and_usage_load_no_heavy_module() -> None:
    code = (
        "import sys, plantain.cli; plantain.cli.main(['--help']); plantain.cli.main(['nonsense']); "
        f"print('loaded', *(m for m in {HEAVY!r} if m in sys.modules and m not in ('typer', 'pydantic')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]


def test_every_command_comes_without_the_extras() -> None:
    """What `make demo` installs must be enough to import every command; extras are asked for on use."""
    extras = "httpx2 openai google.genai pyarrow datasets webdataset c2pa rapidocr torch statsmodels sklearn"
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({extras.split()!r}))\n"
        "import importlib, plantain.cli as cli\n"
        "from plantain.cli.terminal.groups import LazyGroup\n"
        "for module, _ in cli.COMMANDS.values():\n"
        "    app = getattr(importlib.import_module(module), 'app', None)\n"
        "    if isinstance(app, LazyGroup):\n"
        "        for inner, _ in app.homes.values(): importlib.import_module(inner)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_commands_that_are_typed_again_and_again_load_what_they_need() -> None:
    code = (
        "import sys, plantain.cli.runs.build, plantain.cli.runs.status, plantain.cli.runs.show\n"
        "print('loaded', *(m for m in ('matplotlib', 'scipy', 'skimage', 'torch') if m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "loaded\n"
