"""`plantain review plan`: power of a study by readers and cases."""

from __future__ import annotations

import typer
from rich.table import Table
from rich.text import Text

from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.tables import print_json, print_table, right
from plantain.metrics.statistics.reader_power import Components, stated
from plantain.records import InputError
from plantain.records.messages import counted, next_line
from plantain.review.planning import READERS, WANTED, ReaderStudyPlan, by_readers, plan_study


def plan(
    effect: float = typer.Option(..., help="Difference of two models to detect."),
    readers: int = typer.Option(5, min=2, max=1000, help="Readers in all."),
    cases: int = typer.Option(100, min=2, max=1_000_000, help="Cases in all."),
    base_rate: float | None = typer.Option(None, help="Rate of the first model, for yes or no; default 0.6."),
    sd: float | None = typer.Option(None, help="Standard deviation of one answer."),
    seconds: float = typer.Option(20.0, min=0.1, help="Seconds that one reading takes."),
    as_json: AsJson = False,
) -> None:
    """Compute power, type-1 error and hours of a study with readers and cases random.

    Example: plantain review plan --readers 5 --cases 100 --effect 0.15 --base-rate 0.6
    """
    parts, source = _components(effect, base_rate, sd)
    made = plan_study(readers, cases, effect, parts, seconds=seconds, source=source)
    if as_json:
        print_json(made.as_json())
        return
    asked = made.asked
    print(
        f"{counted(readers, 'reader')} x {counted(cases, 'case')}: power {100 * asked.power:.0f} % for a "
        f"difference of {effect:g},"
    )
    print(f"type-1 error {100 * asked.type_1:.1f} %, {asked.hours:.1f} hours of reading in all")
    print(f"variances of the difference: {source}")
    print_table(table_of(made))
    if (best := made.smallest) and asked.power < WANTED:
        least = min(one.readers for one in made.table if one.power >= WANTED)
        few = f"fewer than {least} readers cannot reach it (too few degrees of freedom); " * (
            least > READERS[0]
        )
        print(
            f"{100 * WANTED:.0f} %: {few}fewest hours of the table: {counted(best.readers, 'reader')} x "
            f"{counted(best.cases, 'case')}, {best.hours:.1f} hours"
        )
    print(next_line("review", "new", "STUDY", "--from", "RUN", "--task", "accept", "--cases", cases))


def _components(effect: float, base_rate: float | None, sd: float | None) -> tuple[Components, str]:
    if base_rate is not None and sd is not None:
        raise InputError("--base-rate, --sd: the variances come from one of them")
    if not effect or abs(effect) > 1e9 or effect != effect:
        raise InputError(f"--effect {effect:g}: give a difference other than 0")
    if sd is not None:
        if not 0 < sd < 1e6:
            raise InputError(f"--sd {sd:g}: a standard deviation above 0")
        return stated(sd * sd), f"usual shares of a standard deviation of {sd:g}"
    rate = 0.6 if base_rate is None else base_rate
    other = rate + effect
    if not 0 < rate < 1 or not 0 <= other <= 1:
        raise InputError(
            f"--base-rate {rate:g}: both rates must be between 0 and 1; with the effect it is {other:g}"
        )
    return stated(
        (rate * (1 - rate) + other * (1 - other)) / 2
    ), f"usual shares, rates {rate:g} and {other:g}"


def table_of(plan: ReaderStudyPlan) -> Table:
    """Format power by readers and cases for a terminal."""
    rows = by_readers(plan.table)
    cases = [c for c in next(iter(rows.values())) if c in (25, 50, 100, 200, 400, plan.asked.cases)]
    table = Table(
        *right("readers", *(counted(c, "case") for c in cases)),
        title="power and hours; every reader reads every case",
        caption=f"bold: at least {100 * WANTED:.0f} %",
    )
    for readers, row in rows.items():
        cells = []
        for c in cases:
            text = f"{100 * row[c].power:.0f} % {row[c].hours:.0f}h"
            cells.append(Text(text, style="bold" if row[c].power >= WANTED else ""))
        table.add_row(str(readers), *cells)
    return table
