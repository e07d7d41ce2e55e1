"""The rows of a leaderboard as scripts read them."""

from __future__ import annotations

from collections.abc import Iterable

from plantain.bench.leaderboard.tables import TableCell


def table_json(cells: Iterable[TableCell]) -> list[dict[str, object]]:
    """The rows that scripts read: one per cell that has something to say."""
    rows: list[dict[str, object]] = []
    for cell in cells:
        row: dict[str, object] = {
            "model": cell.model,
            "organ": cell.organ,
            "metric": cell.metric,
            "mean": cell.estimate.value,
            "low": cell.estimate.low,
            "high": cell.estimate.high,
            "n": cell.estimate.n,
            "coverage": cell.coverage,
            "samples": cell.samples,
            "outputs": cell.outputs,
            "clusters": cell.estimate.clusters,
            "interval": cell.estimate.method,
            "no_interval": cell.estimate.reason,
            "worst": cell.worst,
            "best": cell.best,
            "mark": cell.mark,
            "baseline": cell.baseline,
            "rank_low": cell.rank and cell.rank[0],
            "rank_high": cell.rank and cell.rank[1],
            "draws_sd": cell.draws_sd,
            "outputs_sd": cell.outputs_sd,
        }
        row |= {"task": cell.task} if cell.task else {}
        row |= {"region": cell.region} if cell.region else {}
        rows.append(row)
    return rows
