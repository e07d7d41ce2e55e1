"""What the tests of the procedural renderers hand each other."""

from __future__ import annotations

from collections.abc import Callable

from plantain.offline.rendering import Scene

SceneMaker = Callable[..., Scene]
