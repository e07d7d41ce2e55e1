"""The rows of a leaderboard as scripts read them."""

from __future__ import annotations

from collections.abc import Iterable

from plantain.bench.leaderboard.table_rows import standing
from plantain.bench.leaderboard.tables import Table, TableCell


def table_json(cells: Iterable[TableCell], table: Table) -> list[dict[str, object]]:
    """The rows that scripts read: one per cell that has something to say.

    Args:
        cells: of the table.
        table: which says on what the judges rest: `card` is the line of the one behind a number, "" for none.
    """
    rows: list[dict[str, object]] = []
    behind = {measure.name: standing(table.scores, measure) for measure in table.measures}
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
        judge = behind.get(cell.metric)
        row |= {"card": judge.line if judge else ""}
        row |= {"task": cell.task} if cell.task else {}
        row |= {"region": cell.region} if cell.region else {}
        rows.append(row)
    return rows
