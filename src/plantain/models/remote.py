"""Edits of open models on workers of the run's engine on other machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from plantain.engines.contract import WorkEngine
from plantain.pixels.decode import BadImage, pixel_sha256
from plantain.pixels.encode import normalise
from plantain.records import Outcome
from plantain.roles import NormalForm, answered_by

P = ParamSpec("P")
T = TypeVar("T")


async def on_worker(
    engine: WorkEngine, role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T | Outcome:
    """Run a module-level function on a worker of a role; return its result, or an outcome if no worker finished it."""
    assert not kwargs, "a worker takes positional arguments"
    ran = await engine.run(role, function, args)
    return answered_by(ran.on, ran.lost, ran.broken) or cast(T, ran.value)


def normal_form(data: bytes) -> NormalForm | None:
    """Convert an editor's image file to normal form; return None if it cannot be decoded."""
    try:
        normal = normalise(data)
        return NormalForm(normal, pixel_sha256(normal))
    except BadImage:
        return None
