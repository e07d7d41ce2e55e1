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
        f"print('loaded', *(m for m in {HEAVY!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]
