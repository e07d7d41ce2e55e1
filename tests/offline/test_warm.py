"""What a worker finds loaded before its first work, so that no run pays for it again."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from plantain.engines.local import LocalEngine
from plantain.offline.workers import PRELOAD


def loaded(names: Sequence[str]) -> list[bool]:
    return [name in sys.modules for name in names]


def test_a_worker_begins_with_renderers_and_compiled_ssim() -> None:
    names = ("numba", "plantain.offline.brain", "plantain.offline.chest", "plantain.offline.fundus")
    engine = LocalEngine(PRELOAD)
    try:
        assert asyncio.run(engine.run("editor", loaded, [names])).value == [True] * len(names)
    finally:
        engine.close()
