"""The rows of a leaderboard as scripts read them: JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell
from plantain.files.csv_form import written_csv
from plantain.metrics.statistics.paired import Difference


def table_json(cells: Iterable[TableCell], table: Table) -> list[dict[str, object]]:
    """Return one row per cell; `card` is the line of the judge behind it, "" for metrics.

    Over all samples `difference` is the model's mean minus that of `against`, paired and corrected over the models.
    """
    cards = {m.name: found.line for m in table.measures if (found := table.scores.standing(m)) is not None}
    rows = []
    for cell in cells:
        row = _row(cell) | {"card": cards.get(cell.metric, ""), "warning": table.warning(cell.metric)}
        pair = table.against.get((cell.model, cell.metric)) if cell.organ == OVERALL else None
        rows.append(row | difference_json(pair, table.reference))
    return rows


def difference_json(pair: Difference | None, reference: str) -> dict[str, object]:
    """Return a difference from a reference with its 95 % interval, p and p after Holm's correction."""
    found = None if pair is None else pair.estimate
    return {
        "against": reference,
        "difference": found and found.value,
        "difference_low": found and found.low,
        "difference_high": found and found.high,
        "difference_p": pair and pair.p,
        "difference_p_holm": pair and pair.p_holm,
    }


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
