"""Seeds and swept parameters as the list of an arm's outputs."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

from plantain.bench.generate.arms import GridPoint
from plantain.records import InputError

Sweep = Mapping[str, tuple[float, ...]]
"""Parameter -> its values, in the order in which they were given."""

MOST_OUTPUTS = 10_000
"""Outputs of one arm on one sample; more is a slip of the keyboard."""

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")


def parse_sweep(given: Sequence[str]) -> dict[str, tuple[float, ...]]:
    """Reads "guidance=7.5,7.6", one text for each parameter.

    Raises:
        InputError: one line that repeats the text and says what is expected.
    """
    sweep: dict[str, tuple[float, ...]] = {}
    for text in given:
        name, equals, listed = text.partition("=")
        if not equals or not _NAME.match(name):
            raise InputError(f"--sweep: {text!r} is not like guidance=7.5,7.6")
        if name in sweep:
            raise InputError(f"--sweep: {name} is given twice; list its values behind one {name}=")
        sweep[name] = tuple(_number(value, text) for value in listed.split(","))
        if len(set(sweep[name])) < len(sweep[name]):
            raise InputError(f"--sweep: {text!r} has a value twice")
    return sweep


def grid_of(seeds: int, sweep: Sweep) -> tuple[GridPoint, ...]:
    """Every output that is wanted: seeds outermost, then the parameters, the last given changing fastest.

    So that more seeds only add outputs behind those that exist.

    Raises:
        InputError: more than `MOST_OUTPUTS`.
    """
    wanted = seeds * math.prod(len(values) for values in sweep.values())
    if wanted > MOST_OUTPUTS:
        raise InputError(f"--sweep, --seeds: {wanted} outputs for each sample; at most {MOST_OUTPUTS}")
    return tuple(
        GridPoint(seed, dict(zip(sweep, values, strict=True)))
        for seed in range(seeds)
        for values in itertools.product(*sweep.values())
    )


def _number(value: str, text: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"--sweep: {value.strip()!r} in {text!r} is no number")
    return number
