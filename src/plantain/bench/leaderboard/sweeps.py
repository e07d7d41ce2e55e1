"""What an editor's parameters change: the guidance grid of Figure 7, with numbers to its pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from plantain.bench.generate.arms import Arm
from plantain.bench.leaderboard.table_rows import mean_of_known
from plantain.bench.leaderboard.tables import Table
from plantain.metrics.statistics.means import ClusteredMeans, Estimate
from plantain.pixels.arrays import Floats


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One setting of the parameters: the first output made with it, and its means over samples and seeds.

    Every mean of one metric is over the same samples, those that all settings have a score of: a refusal under one
    setting must not make that one look better.
    """

    parameters: Mapping[str, float]
    k: int
    estimates: Mapping[str, Estimate]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The settings of one arm as a grid.

    Attributes:
        arm: whose.
        across: the parameter that changes along a row; down: those that change from row to row.
        columns: values of `across`; rows: settings of `down`.
        points: by (row, column); a place that was not run is absent.
    """

    arm: Arm
    across: str
    down: tuple[str, ...]
    columns: tuple[float, ...]
    rows: tuple[tuple[float, ...], ...]
    points: Mapping[tuple[int, int], SweepPoint]


def sweeps(table: Table) -> list[Sweep]:
    """The sweeps of a run: every arm with more than one setting of parameters that changed."""
    return [sweep for arm in table.scores.arms if (sweep := _sweep(table, arm)) is not None]


def _sweep(table: Table, arm: Arm) -> Sweep | None:
    names = list(dict.fromkeys(name for point in arm.grid for name in point.parameters))
    changing = [name for name in names if len({point.parameters.get(name) for point in arm.grid}) > 1]
    full = [k for k, point in enumerate(arm.grid) if all(name in point.parameters for name in changing)]
    if not changing or not full:
        return None
    across, *down = changing
    columns = tuple(sorted({arm.grid[k].parameters[across] for k in full}))
    rows = tuple(sorted({tuple(arm.grid[k].parameters[name] for name in down) for k in full}))
    places: dict[tuple[int, int], list[int]] = {}
    for k in full:
        parameters = arm.grid[k].parameters
        row, column = tuple(parameters[name] for name in down), parameters[across]
        places.setdefault((rows.index(row), columns.index(column)), []).append(k)
    means = _means(table, arm, places)
    points = {
        place: SweepPoint(arm.grid[ks[0]].parameters, ks[0], means[place])
        for place, ks in sorted(places.items())
    }
    return Sweep(arm, across, tuple(down), columns, rows, points)


def _means(
    table: Table, arm: Arm, places: Mapping[tuple[int, int], list[int]]
) -> dict[tuple[int, int], dict[str, Estimate]]:
    """By place and metric; without those settings that have no score at all, which are compared with nothing."""
    scores = table.scores
    plan = ClusteredMeans(scores.clusters, [sample.organ for sample in scores.samples])
    means: dict[tuple[int, int], dict[str, Estimate]] = {place: {} for place in places}
    for measure in table.main:
        found = scores.outputs.get((arm.label, measure.stored))
        if found is None:
            continue
        values: dict[tuple[int, int], Floats] = {
            place: mean_of_known(found[:, ks]) for place, ks in places.items()
        }
        known = {place: array for place, array in values.items() if np.isfinite(array).any()}
        common = np.logical_and.reduce([np.isfinite(array) for array in known.values()])
        for place, array in values.items():
            means[place][measure.name] = plan.mean(
                np.where(common, array, np.nan), low=measure.low, high=measure.high
            )
    return means
