"""The rows of a leaderboard as scripts read them: JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plantain.bench.leaderboard.tables import Table, TableCell
from plantain.files.csv_form import written_csv


def table_json(cells: Iterable[TableCell], table: Table) -> list[dict[str, object]]:
    """Return one row per cell; `card` is the line of the judge behind it, "" for metrics."""
    cards = {m.name: found.line for m in table.measures if (found := table.scores.standing(m)) is not None}
    return [_row(cell) | {"card": cards.get(cell.metric, "")} for cell in cells]


def _row(cell: TableCell) -> dict[str, object]:
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
    return row | ({"task": cell.task} if cell.task else {})


def table_csv(table: Table) -> str:
    """Return one line per cell, by organ and by task, with the columns of the JSON rows."""
    rows = table_json([*table.cells.values(), *table.tasks.values()], table)
    return csv_text([{"task": "", **row} for row in rows])


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Return rows of the same columns as CSV; "" for none."""
    if not rows:
        return ""
    names = list(rows[0])
    return written_csv([names, *([row[name] for name in names] for row in rows)])
