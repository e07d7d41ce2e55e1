"""`plantain review plan`: power of a study by readers and cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import typer
from rich.table import Table
from rich.text import Text

from plantain.cli.terminal.options import AsJson
from plantain.cli.terminal.tables import print_json, print_table, right
from plantain.metrics.statistics.reader_power import Components, power, stated
from plantain.records import InputError
from plantain.records.messages import counted, next_line

WANTED = 0.8
"""Power that a study should have."""

READERS = (2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
CASES = (25, 50, 75, 100, 150, 200, 300, 400)


@dataclass(frozen=True, slots=True)
class Design:
    """A size of a study, the probability that it detects the effect, and the reading time of all readers in hours."""

    readers: int
    cases: int
    power: float
    hours: float


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

    def design(r: int, c: int) -> Design:  # both models of a case are read one after the other
        return Design(r, c, power(effect, r, c, parts), 2 * r * c * seconds / 3600)

    asked, type_1 = design(readers, cases), power(0.0, readers, cases, parts)
    table = [design(r, c) for r in sorted({*READERS, readers}) for c in sorted({*CASES, cases})]
    enough = [one for one in table if one.power >= WANTED]
    best = min(enough, key=lambda one: (one.hours, one.readers), default=None)
    if as_json:
        document = {
            "effect": effect,
            "components": asdict(parts),
            "components_from": source,
            "seconds_per_reading": seconds,
            **asdict(asked),
            "type_1": type_1,
            "table": [asdict(design) for design in table],
            "wanted_power": WANTED,
            "smallest": None if best is None else asdict(best),
        }
        print_json(document)
        return
    print(
        f"{counted(readers, 'reader')} x {counted(cases, 'case')}: power {100 * asked.power:.0f} % for a "
        f"difference of {effect:g},"
    )
    print(f"type-1 error {100 * type_1:.1f} %, {asked.hours:.1f} hours of reading in all")
    print(f"variances of the difference: {source}")
    print_table(table_of(table, cases))
    if best and asked.power < WANTED:
        least = min(one.readers for one in enough)
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


def table_of(designs: Sequence[Design], asked: int) -> Table:
    """Format power by readers and cases for a terminal, `asked` being the requested number of cases."""
    cases = sorted({one.cases for one in designs} & {25, 50, 100, 200, 400, asked})
    table = Table(
        *right("readers", *(counted(c, "case") for c in cases)),
        title="power and hours; every reader reads every case",
        caption=f"bold: at least {100 * WANTED:.0f} %",
    )
    found = {(one.readers, one.cases): one for one in designs}
    for readers in sorted({one.readers for one in designs}):
        row = [found[readers, c] for c in cases]
        cells = [(f"{100 * one.power:.0f} % {one.hours:.0f}h", one.power >= WANTED) for one in row]
        table.add_row(str(readers), *(Text(text, style="bold" if enough else "") for text, enough in cells))
    return table
