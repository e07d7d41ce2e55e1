"""The leaderboard for a paper and for a spreadsheet: LaTeX after the layout of MedEBench's Table 2, and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from plantain.bench.generate.arms import Arm
from plantain.bench.leaderboard.demonstrated import ShotRow
from plantain.bench.leaderboard.measures import Measure
from plantain.bench.leaderboard.pairwise import PairwiseTable, pairwise_rows
from plantain.bench.leaderboard.ranking import Ranking
from plantain.bench.leaderboard.table_json import table_json
from plantain.bench.leaderboard.table_rows import baseline, given_region
from plantain.bench.leaderboard.tables import OVERALL, Table, TableCell, why_no_interval
from plantain.files.csv_form import written_csv
from plantain.metrics.statistics.means import Estimate

ORGANS_ACROSS = 6
"""Organs side by side before the table goes on in another block."""

CAPTIONS = {
    "CP": "CP is SSIM over windows wholly outside the region.",
    "cp_reference": "cp\\_reference is SSIM after emptying the region, as published, which counts the region as kept.",
}
"""What either form of context preservation is."""

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def table_csv(cells: Iterable[TableCell], table: Table) -> str:
    """One line per cell, with the columns of the JSON rows; empty where there is no number."""
    return csv_text(
        [{"task": "", **row, "region": row.get("region", "")} for row in table_json(cells, table)]
    )


def csv_text(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows of the same columns as CSV; "" for none."""
    if not rows:
        return ""
    names = list(rows[0])
    return written_csv([names, *([row[name] for name in names] for row in rows)])


def table_two(table: Table) -> str:
    """Table 2 as LaTeX (booktabs): EA, CP and VQ per organ and overall, distances last, baselines below a rule."""
    blocks: list[list[str]] = []
    organs = [*table.scores.organs, OVERALL]
    for start in range(0, len(organs), ORGANS_ACROSS):
        blocks.append(organs[start : start + ORGANS_ACROSS])
    lines = [r"% needs \usepackage{booktabs}", r"\begin{table*}", r"\centering\small"]
    for block in blocks:
        lines.extend(_block(table, block, last=block is blocks[-1]))
    sentences = [f"{escaped(table.scores.benchmark)}: {len(table.scores.samples)} samples."]
    sentences += [f"EA and VQ by {escaped(table.judge)}, in [0, 1]."] if table.judge else []
    sentences += [f"Judge's card: {escaped(line)}." for line in table.card_lines]
    sentences += [CAPTIONS[measure.name] for measure in table.main if measure.name in CAPTIONS]
    caption = " ".join(
        [
            *sentences,
            *_how_sure(table),
            "Bold: best, underlined: second best, both only where the paired difference from all that follow is "
            "significant after Holm's correction at the 5\\,\\% level.",
        ]
    )
    lines += [rf"\caption{{{caption}}}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def _how_sure(table: Table) -> list[str]:
    """What the caption says of intervals, places and repeated draws."""
    sentences = ["Below each mean: its 95\\,\\% interval over independent sources."]
    unsure = why_no_interval(table, OVERALL)
    sentences += [f"No interval: {escaped('; '.join(unsure))}."] if unsure else []
    sentences += (
        [f"Models stand by {table.ranked.name}."] if table.ranked else ["Models stand as recorded, unranked."]
    )
    for name in ("EA", "VQ"):
        spreads = [
            c.draws_sd for c in table.cells.values() if c.metric == name and c.organ == OVERALL and c.draws_sd
        ]
        if spreads:
            sentences.append(
                f"Draws of the judge on one output: {name} $\\pm$ {max(spreads):z.2f} (SD, the largest)."
            )
    return sentences


def _block(table: Table, organs: Sequence[str], *, last: bool) -> list[str]:
    measures = table.main
    distances = sorted({d.metric for d in table.scores.distances}) if last else []
    columns = len(measures) * len(organs) + len(distances)
    span = max(1, len(measures))
    titles = [escaped("Overall" if organ == OVERALL else organ) for organ in organs]
    heads = " & ".join(rf"\multicolumn{{{span}}}{{c}}{{{title}}}" for title in titles)
    names = " & ".join(escaped(m.name) for _ in organs for m in measures)
    lines = [
        rf"\begin{{tabular}}{{l{'r' * columns}}}",
        r"\toprule",
        f"Model & {heads}"
        + " & " * bool(distances)
        + " & ".join(escaped(name.upper()) for name in distances)
        + r" \\",
        f" & {names}" + " & " * len(distances) + r" \\",
        r"\midrule",
    ]
    informed = [arm for arm in table.general if given_region(arm)]
    below = [arm for arm in table.general if baseline(arm)]
    models = [arm for arm in table.general if arm not in informed and arm not in below]
    for number, group in enumerate(group for group in (models, informed, below) if group):
        lines.extend([r"\midrule"] * bool(number))
        if group is informed:
            lines.append(rf"\multicolumn{{{1 + columns}}}{{l}}{{\emph{{told where to edit}}}} \\")
        lines.extend(_line(table, arm, organs, measures, distances) for arm in group)
    return [*lines, r"\bottomrule", r"\end{tabular}", ""]


def _line(
    table: Table, arm: Arm, organs: Sequence[str], measures: Sequence[Measure], distances: Sequence[str]
) -> str:
    cells = [(table.cell(arm.label, organ, m.name), m) for organ in organs for m in measures]
    values = [_number(cell, m) for cell, m in cells]
    under = [_under(cell, m) for cell, m in cells] + [""] * len(distances)
    found = {(d.arm, d.metric): d.value for d in table.scores.distances}
    for name in distances:
        value = found.get((arm.label, name))
        values.append("--" if value is None else f"{value:z.2f}")
    line = f"{escaped(arm.label)} & {' & '.join(values)} " + r"\\"
    return f"{line}\n & {' & '.join(under)} " + r"\\" if any(under) else line


def _under(cell: TableCell | None, measure: Measure) -> str:
    """The interval that stands under a number; "" without one."""
    if cell is None or cell.estimate.low is None or cell.estimate.high is None:
        return ""
    ends = (f"{end:.{measure.digits}f}" for end in (cell.estimate.low, cell.estimate.high))
    return rf"{{\scriptsize [{', '.join(ends)}]}}".replace("-", "$-$")


def _number(cell: TableCell | None, measure: Measure) -> str:
    if cell is None or cell.estimate.value is None:
        return "--"
    text = f"{cell.estimate.value:.{measure.digits}f}".replace("-", "$-$")
    return {"best": rf"\textbf{{{text}}}", "second": rf"\underline{{{text}}}"}.get(cell.mark, text)


def table_seven(name: str, rows: Sequence[ShotRow]) -> str:
    """Table 7 (b) of one study as LaTeX: tasks by numbers of demonstrations, "EA / CP / VQ" in each cell."""
    shots = sorted({row.shots for row in rows})
    metrics = list(dict.fromkeys(row.metric for row in rows))
    found = {(row.task, row.shots, row.metric): row for row in rows}
    lines = [
        r"\begin{table}",
        r"\centering\small",
        rf"\begin{{tabular}}{{l{'c' * len(shots)}}}",
        r"\toprule",
        "Task & " + " & ".join(f"{n} shown" for n in shots) + r" \\",
        r"\midrule",
    ]
    for task in sorted({row.task for row in rows}, key=lambda task: (task == "", task)):
        cells = [" / ".join(_shot(found.get((task, n, metric))) for metric in metrics) for n in shots]
        lines.append(f"{escaped(task) or 'All'} & {' & '.join(cells)} " + r"\\")
    names = " / ".join(escaped(metric) for metric in metrics)
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{{escaped(name)}: {names} by demonstrations in the prompt, on the same samples for every number. "
        r"An asterisk: the change from the fewest is significant after Holm's correction at the 5\,\% level.}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _shot(row: ShotRow | None) -> str:
    if row is None or row.estimate.value is None:
        return "--"
    return f"{row.estimate.value:z.2f}".replace("-", "$-$") + ("*" if row.differs else "")


def table_three(ranking: Ranking) -> str:
    """Table 3 as LaTeX: Spearman's rho and Kendall's tau-b of every metric with people, the ceiling below a rule."""
    dimensions = list(ranking.images)
    rows: dict[str, dict[str, str]] = {}
    for row in ranking.rows:
        rows.setdefault(row.metric, {})[row.dimension] = _pair(row.spearman, row.kendall)
    lines = [
        r"\begin{table}",
        r"\centering\small",
        rf"\begin{{tabular}}{{l{'c' * len(dimensions)}}}",
        r"\toprule",
        f"Metric & {' & '.join(dimensions)} " + r"\\",
        r"\midrule",
        *(
            f"{escaped(metric)} & {' & '.join(cells[name] for name in dimensions)} " + r"\\"
            for metric, cells in rows.items()
        ),
    ]
    if ranking.ceiling:
        ceiling = [_pair(ranking.ceiling[n]["spearman"], ranking.ceiling[n]["kendall"]) for n in dimensions]
        lines += [r"\midrule", f"One rater with the others & {' & '.join(ceiling)} " + r"\\"]
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        rf"\caption{{Rank correlation with {len(ranking.raters)} raters over {len(ranking.models)} models, mean over "
        "images: "
        r"Spearman's $\rho$ with average ranks for ties, Kendall's $\tau_b$, each with its 95\,\% interval.}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def table_pairwise(tables: Sequence[PairwiseTable]) -> str:
    """Strengths of models, one table a source of comparisons, the strongest first; "" where nobody compared two."""
    return "\n".join(_pairwise(found) for found in tables)


def _pairwise(found: PairwiseTable) -> str:
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\small",
        r"\begin{tabular}{rlr}",
        r"\toprule",
        r"Rank & Model & Strength \\",
        r"\midrule",
    ]
    for row in pairwise_rows([found]):
        low, high = row["rank_low"], row["rank_high"]
        rank = "--" if low is None else f"{low}" if low == high else f"{low}--{high}"
        bounds = "" if row["low"] is None else f" [{row['low']:+z.2f}, {row['high']:+z.2f}]"
        strength = f"{row['strength']:+z.2f}{bounds}".replace("-", "$-$").replace("+", "$+$")
        lines.append(rf"{rank} & {escaped(str(row['model']))} & {strength} \\")
    sentences = [
        f"Two at a time, by {escaped(found.source)}: Bradley--Terry strength in logits, mean 0, and its 95\\,\\% "
        f"interval; {found.strengths.comparisons:,} comparisons, {escaped(found.rule)}.",
        *([] if found.ranked else ["No ranks: the judge has not passed its gate."]),
    ]
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{' '.join(sentences)}}}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _pair(rho: Estimate, tau: Estimate) -> str:
    if rho.value is None or tau.value is None:
        return "--"
    return f"{rho.value:z.2f}{_bounds(rho)}, {tau.value:z.2f}{_bounds(tau)}".replace("-", "$-$")


def _bounds(found: Estimate) -> str:
    return "" if found.low is None else f" [{found.low:z.2f}, {found.high:z.2f}]"


def escaped(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    Example:
        >>> escaped("a_b & 5 %")
        'a\\_b \\& 5 \\%'
    """
    return "".join(_SPECIAL.get(character, character) for character in text)
