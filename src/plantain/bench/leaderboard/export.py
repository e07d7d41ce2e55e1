"""A leaderboard as LaTeX (MedEBench's Table 2, by booktabs), as JSON and as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plantain.bench.generate.runfile import Arm
from plantain.bench.leaderboard.measures import STRICTER, Measure
from plantain.bench.leaderboard.scores import is_given_region
from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell
from plantain.files.tables import written_csv
from plantain.metrics.statistics.paired import Difference
from plantain.pages.wording import DASH, escaped

ORGANS_ACROSS = 6
"""Organs side by side; further ones go into another block."""


def table_two(table: Table) -> str:
    """Return MedEBench's Table 2 as LaTeX: EA, both CP and VQ per organ and overall; baselines last."""
    organs = [*table.scores.organs, OVERALL]
    blocks = [organs[start : start + ORGANS_ACROSS] for start in range(0, len(organs), ORGANS_ACROSS)]
    lines = [r"% needs \usepackage{booktabs}", r"\begin{table*}", r"\centering\small"]
    for block in blocks:
        lines.extend(_block(table, block))
    lines += [rf"\caption{{{' '.join(_caption(table))}}}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def table_against(table: Table) -> str:
    """Return each model's differences from the reference arm, with interval and p, as LaTeX; "" without a reference."""
    measures = [m for m in table.main if any(name == m.name for _, name in table.against)]
    if not measures:
        return ""
    body = []
    for arm in table.general:
        pairs = [table.against.get((arm.label, measure.name)) for measure in measures]
        if any(pairs):
            body.append(f"{escaped(arm.label)} & {' & '.join(map(_difference, pairs))} " + r"\\")
    lines = [
        r"\begin{table}",
        r"\centering\small",
        rf"\begin{{tabular}}{{l{'c' * len(measures)}}}",
        r"\toprule",
        f"Model & {' & '.join(escaped(measure.name) for measure in measures)} " + r"\\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{Mean difference from {escaped(table.reference)} on the same samples, its 95\,\% interval, and $p$ "
        "after Holm's correction over the models.}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _difference(pair: Difference | None) -> str:
    return difference_text(pair).replace("-", "$-$").replace("p ", "$p$ ").replace(DASH, "--")


def difference_text(pair: Difference | None) -> str:
    """Format a difference, e.g. "+0.12 +0.03 to +0.21, p 0.012": value, 95 % interval, Holm's p; a dash without one."""
    if pair is None or pair.estimate.value is None:
        return DASH
    found = pair.estimate
    bounds = "" if found.low is None else f" {found.low:+z.2f} to {found.high:+z.2f}"
    return f"{found.value:+z.2f}{bounds}" + ("" if pair.p_holm is None else f", p {pair.p_holm:.3f}")


def _caption(table: Table) -> list[str]:
    sentences = [f"{escaped(table.scores.benchmark)}: {len(table.scores.samples)} samples."]
    sentences += [f"EA and VQ by {escaped(table.judge)}, in [0, 1]."] if table.judge else []
    sentences += [f"Judge's card: {escaped(line)}." for line in table.card_lines]
    sentences += [f"{escaped(line)}." for line in table.blind.values()]
    sentences += [STRICTER] if table.measure("CP") else []
    sentences += ["Below each mean: its 95\\,\\% interval over independent sources."]
    unsure = table.why_no_interval()
    sentences += [f"No interval: {escaped('; '.join(unsure))}."] if unsure else []
    sentences += [f"Ordered by {table.ranked.name}."] if table.ranked else ["In recorded order, unranked."]
    return [
        *sentences,
        "Bold: best, underlined: second best, both only where the paired difference from all that follow is "
        "significant after Holm's correction at the 5\\,\\% level.",
    ]


def _block(table: Table, organs: Sequence[str]) -> list[str]:
    measures = table.main
    columns = len(measures) * len(organs)
    titles = [escaped("Overall" if organ == OVERALL else organ) for organ in organs]
    heads = [rf"\multicolumn{{{max(1, len(measures))}}}{{c}}{{{title}}}" for title in titles]
    names = [escaped(m.name) for _ in organs for m in measures]
    lines = [
        rf"\begin{{tabular}}{{l{'r' * columns}}}",
        r"\toprule",
        f"Model & {' & '.join(heads)} " + r"\\",
        f" & {' & '.join(names)} " + r"\\",
        r"\midrule",
    ]
    for number, arms in enumerate(table.groups.values()):
        lines.extend([r"\midrule"] * bool(number))
        lines.extend(_line(table, arm, organs) for arm in arms)
    return [*lines, r"\bottomrule", r"\end{tabular}", ""]


def _line(table: Table, arm: Arm, organs: Sequence[str]) -> str:
    cells = [(table.cell(arm.label, organ, m.name), m) for organ in organs for m in table.main]
    intervals = [_interval(*one) for one in cells]
    name = escaped(arm.label) + " (receives the region)" * is_given_region(arm)
    line = f"{name} & {' & '.join(_number(*one) for one in cells)} " + r"\\"
    return f"{line}\n & {' & '.join(intervals)} " + r"\\" if any(intervals) else line


def _interval(cell: TableCell | None, measure: Measure) -> str:
    if cell is None or cell.estimate.low is None or cell.estimate.high is None:
        return ""
    ends = (f"{end:.{measure.digits}f}" for end in (cell.estimate.low, cell.estimate.high))
    return rf"{{\scriptsize [{', '.join(ends)}]}}".replace("-", "$-$")


def _number(cell: TableCell | None, measure: Measure) -> str:
    if cell is None or cell.estimate.value is None:
        return "--"
    text = f"{cell.estimate.value:.{measure.digits}f}".replace("-", "$-$")
    return {"best": rf"\textbf{{{text}}}", "second": rf"\underline{{{text}}}"}.get(cell.mark, text)


def table_json(cells: Iterable[TableCell], table: Table) -> list[dict[str, object]]:
    """Return the table's cells as JSON rows; `card` is one line on the judge's reliability, "" for other metrics.

    For all samples together, `difference` is the model's mean minus that of `against`, paired; p values are corrected.
    """
    cards = {m.name: found.line for m in table.measures if (found := table.scores.standing(m)) is not None}
    rows = []
    for cell in cells:
        row = _row(cell) | {"card": cards.get(cell.metric, ""), "warning": table.warning(cell.metric)}
        pair = table.against.get((cell.model, cell.metric)) if cell.organ == OVERALL else None
        rows.append(row | difference_json(pair, table.reference))
    return rows


def difference_json(pair: Difference | None, reference: str) -> dict[str, object]:
    """Return a difference from the reference as JSON: 95 % interval, p and Holm's p; all None if `pair` is None."""
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
        "clusters": cell.estimate.clusters,
        "interval": cell.estimate.method,
        "no_interval": cell.estimate.reason,
        "mark": cell.mark,
        "baseline": cell.baseline,
        "rank_low": cell.rank and cell.rank[0],
        "rank_high": cell.rank and cell.rank[1],
    }
    return row | ({"task": cell.task} if cell.task else {})


def table_csv(table: Table) -> str:
    """Return the table as CSV: one line per cell, by organ and by task, with the columns of `table_json`."""
    rows = table_json([*table.cells.values(), *table.tasks.values()], table)
    names = ["task", *(name for name in rows[0] if name != "task")] if rows else []
    return written_csv([names, *([row.get(name, "") for name in names] for row in rows)])
