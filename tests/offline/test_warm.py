"""What a worker finds loaded before its first work, so that no run pays for it again."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import asyncio
from plantain.engines.local import LocalEngine
from plantain.offline.workers import PRELOAD

names = ("numba", "plantain.offline.editor", "plantain.offline.judge")
engine = LocalEngine(PRELOAD)
asked = f"[name in __import__('sys').modules for name in {names}]"
print(asyncio.run(engine.run("editor", eval, [asked])).value)
engine.close()
"""


def test_a_worker_starts_with_editor_judge_and_compiled_ssim() -> None:
    """In a process of its own: what workers are forked from begins once in each, with what was asked for then."""
    shown = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=300)
    assert shown.stdout.strip() == str([True] * 3), shown.stderr
