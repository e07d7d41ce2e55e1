"""Edits of open models on the workers of the run's engine, where these stand on other machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from plantain.engines.contract import WorkEngine
from plantain.pixels.decode import BadImage
from plantain.pixels.encode import normalise
from plantain.pixels.likeness import pixel_sha256
from plantain.records import Outcome
from plantain.roles import EditRequest, NormalForm
from plantain.roles.exchange import answered_by

P = ParamSpec("P")
T = TypeVar("T")


async def on_worker(
    engine: WorkEngine, role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T | Outcome:
    """Runs a module-level function on a worker of a role; a lost worker becomes an outcome."""
    assert not kwargs, "a worker takes positional arguments"
    ran = await engine.run(role, function, args)
    return answered_by(ran.on, ran.lost, ran.broken) or cast(T, ran.value)


def wants_normal_form(request: EditRequest) -> bool:
    """Whether the edit will be judged in normal form, as those of a build are: then its worker makes that too."""
    return request.direction is not None


def normal_form(data: bytes) -> NormalForm | None:
    """What an editor returned, in normal form; None for what has none: the run says why."""
    try:
        normal = normalise(data)
        return NormalForm(normal, pixel_sha256(normal))
    except BadImage:
        return None
