"""Edits of open models on workers of the run's engine on other machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from plantain.engines.contract import WorkEngine
from plantain.pixels.decode import BadImage, pixel_sha256
from plantain.pixels.encode import normalise
from plantain.records import Outcome
from plantain.roles import EditRequest, NormalForm, answered_by

P = ParamSpec("P")
T = TypeVar("T")


async def on_worker(
    engine: WorkEngine, role: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> T | Outcome:
    """Run a module-level function on a worker of a role; return an outcome for a lost worker."""
    assert not kwargs, "a worker takes positional arguments"
    ran = await engine.run(role, function, args)
    return answered_by(ran.on, ran.lost, ran.broken) or cast(T, ran.value)


def wants_normal_form(request: EditRequest) -> bool:
    """Return True if the edit is of a build, which judges the normal form: the worker then makes that too."""
    return request.direction is not None


def normal_form(data: bytes) -> NormalForm | None:
    """Return an editor's image in normal form; None if undecodable, which the run reports."""
    try:
        normal = normalise(data)
        return NormalForm(normal, pixel_sha256(normal))
    except BadImage:
        return None
