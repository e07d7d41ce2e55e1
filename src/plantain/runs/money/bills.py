"""A provider's bill as a table: one row a call where it names them, else one row a day."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path

from plantain.files.tables import read_table
from plantain.pixels.decode import one_line
from plantain.records import InputError

COLUMNS = {
    "usd": (
        "cost_usd",
        "cost",
        "amount_usd",
        "amount",
        "usd",
        "spend",
        "total_cost",
        "cost_total",
        "cost_in_usd",
        "amount_value",
    ),
    "id": ("id", "request_id", "response_id", "generation_id", "call_id"),
    "at": (
        "date",
        "day",
        "usage_date",
        "start_time",
        "start_time_iso",
        "timestamp",
        "created_at",
        "time",
        "start",
    ),
    "model": ("model", "model_id", "model_name"),
    "provider": ("provider", "provider_name"),
    "currency": ("currency", "amount_currency", "cost_currency", "billing_currency"),
}
"""Names of columns in any case, with blanks or underscores: those of providers' exports and of gateways."""

DOLLARS = frozenset({"usd", "us$", "$", "us dollar", "us dollars"})

_NUMBER = re.compile(r"(?!0,)\d{1,3}(,\d{3})+(\.\d*)?|\d*\.?\d*(e[-+]?\d{1,3})?", re.IGNORECASE)
"""With a point for fractions; commas stand between thousands, so that 0,039 is no number of dollars."""

MOST_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class BillRow:
    """One row.

    Attributes:
        number: its line in the file, the header being 1.
        id: the provider's name for one answer, "" where the row is a day's.
        at: when, in the bill's own time zone; None where the bill does not say.
        whole_day: only the day is known.
        model, provider: "" where the bill does not say.
    """

    number: int
    usd: float
    id: str
    at: datetime | None
    whole_day: bool
    model: str
    provider: str


def read_bill(path: Path, zone: tzinfo) -> list[BillRow]:
    """Reads a bill in CSV, parted by commas, semicolons or tabs, whose days and times are those of a zone unless they
    name another.

    Raises:
        InputError: one line that names file, row and column.
    """
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise InputError(
            f"{path}: larger than {MOST_BYTES // 1_000_000} MB; cut the bill down to the run's days"
        )
    table = read_table(path)
    made = _checked(path, (row.cells for row in table.whole_rows()), _columns(path, table.columns), zone)
    if not made:
        raise InputError(f"{path}: holds no rows; a bill has a header and at least one")
    return made


def _columns(path: Path, header: Sequence[str]) -> dict[str, str]:
    """What the bill calls each column of ours that it has."""
    there: dict[str, str] = {}
    for name in header:
        if (same := there.setdefault(_plain(name), name)) != name:
            raise InputError(f"{path}: the columns {same!r} and {name!r} are one to us; take one of them out")
    found = {
        ours: there[name] for ours, names in COLUMNS.items() for name in reversed(names) if name in there
    }
    if "usd" not in found:
        raise InputError(f"{path}: no column of costs among {', '.join(there.values())}; name it cost_usd")
    if "id" not in found and "at" not in found:
        raise InputError(f"{path}: neither ids of calls nor dates; name a column request_id, or one date")
    return found


def _plain(name: str) -> str:
    return "_".join(re.sub("[()$]", " ", name).lower().split())


def _checked(
    path: Path, rows: Iterable[dict[str, str]], columns: Mapping[str, str], zone: tzinfo
) -> list[BillRow]:
    made: list[BillRow] = []
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, start=2):
        cells = {ours: row[theirs] for ours, theirs in columns.items()}
        usd = _dollars(path, number, columns["usd"], cells["usd"])
        at, whole_day = _moment(path, number, columns.get("at", ""), cells.get("at", ""), zone)
        if (currency := cells.get("currency", "")) and currency.casefold() not in DOLLARS:
            raise InputError(
                f"{path}: row {number}: {columns['currency']} is {currency[:40]}; a run counts US dollars: turn the "
                "bill into them"
            )
        name = cells.get("id", "")
        if not name and at is None:
            raise InputError(f"{path}: row {number} has neither the id of a call nor a date")
        if name in seen:
            raise InputError(f"{path}: rows {seen[name]} and {number} are both of the call {name}")
        if name:
            seen[name] = number
        made.append(
            BillRow(number, usd, name, at, whole_day, cells.get("model", ""), cells.get("provider", ""))
        )
    return made


def _dollars(path: Path, number: int, column: str, text: str) -> float:
    plain = text.removeprefix("$").removesuffix("USD").strip()
    try:
        usd = float(plain.replace(",", "")) if _NUMBER.fullmatch(plain) else math.nan
    except ValueError:
        usd = math.nan
    if not math.isfinite(usd):
        raise InputError(
            f"{path}: row {number}: {column} is {one_line(text[:40]) or 'empty'}; a cost is a number of dollars, 0 or "
            "more"
        )
    return usd


def _moment(path: Path, number: int, column: str, text: str, zone: tzinfo) -> tuple[datetime | None, bool]:
    """The moment, and whether only the day was said."""
    if not text:
        return None, False
    try:
        if text.isdigit() and len(text) == 10:
            return datetime.fromtimestamp(int(text), UTC).astimezone(zone), False
        if len(text) == 10:
            return datetime.combine(date.fromisoformat(text), datetime.min.time(), zone), True
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(zone), False
    except (ValueError, OverflowError):
        raise InputError(
            f"{path}: row {number}: {column} is {text[:40]!r}; write a day as 2026-11-22 or a time in ISO 8601"
        ) from None
