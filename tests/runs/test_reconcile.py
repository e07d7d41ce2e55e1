"""Held money and a provider's bill: calls by their ids, days by their totals, and bills that are none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from plantain.cli import main
from plantain.journal import CallResult, Journal, JournalReader, RunHeader, StartedCall
from plantain.journal.money import money_by_step
from plantain.records import OK, CallKey, Direction, EditTask, Outcome, OutcomeKind, Step, Usage

TODAY = "2026-11-22"
FLASH = ("gemini/gemini-2.5-flash", "gemini/gemini-2.5-flash", "gemini/gemini-2.5-flash-image")
LOST = Outcome(OutcomeKind.TRANSPORT, "the connection failed (ReadError)")


async def make(
    run: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: Sequence[tuple[str, float | None]],
    models: Sequence[str] = ("gemini/m",) * 9,
) -> None:
    """A run of judge calls with a second between them; (response id, cost), the last one left open by a kill.

    Of a call that took two requests, both ids with a + between them; "" for an answer that was lost.
    """
    moments = iter(f"{TODAY}T10:00:{second:02d}.000+00:00" for second in range(60))
    async with Journal.create(run, RunHeader("r", "r", 1, {}, "0")) as journal:
        await journal.add_tasks(
            [EditTask(f"{n:020x}", "i", "fundus", "AMD", Direction.ADD) for n in range(9)]
        )
        for number, (response, cost) in enumerate(calls):
            monkeypatch.setattr("plantain.journal.writer._now", lambda: next(moments))
            key = CallKey(f"{number:020x}", 0, 1, Step.JUDGE)
            call = await journal.start_call(StartedCall(key, 1, models[number], "h", 0.30))
            monkeypatch.undo()
            if response != "open":
                usage = Usage(response_id=response, output_tokens=1)
                if "+" in response:
                    asks = tuple(Usage(response_id=name) for name in response.split("+"))
                    usage = replace(asks[-1], asks=asks)
                outcome = OK if usage.response_id else LOST
                await journal.settle_call(CallResult(call, outcome, True, usage, cost))


CALLS = (("a", 0.10), ("b", 0.10), ("", None), ("", None), ("open", None))
"""Two answered at ten cents each, two cut off, one open when the process was killed: $0.90 set aside for the three."""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    asyncio.run(make(tmp_path / "run", monkeypatch, CALLS))
    return tmp_path / "run"


def money(run: Path) -> tuple[float, int]:
    """What was spent, and how many calls are held."""
    with JournalReader.open(run) as reader:
        return reader.spent_usd(), sum(step.lost for step in money_by_step(reader).values())


def settle(run: Path, bill: str, *more: str) -> int:
    path = run.parent / "bill.csv"
    path.write_text(bill, encoding="utf-8")
    return main(["reconcile", str(run), str(path), *more])


@pytest.mark.parametrize(
    ("total", "spent"),
    [
        ("0.50", 0.50),  # 0.20 is known, so the three lost ones cost 0.30 together
        ("0.20", 0.20),  # they were not billed
        ("0.15", None),  # less than is known: the bill does not hold the whole day, and settles nothing
        ("7.00", 1.10),  # the key served others, too: no more than was set aside, 3 x 0.30
    ],
)
def test_days_total_settles_what_was_lost_on_it_and_twice_is_as_good_as_once(
    run: Path, total: str, spent: float | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert money(run) == (pytest.approx(0.20), 3)
    for _ in range(2):
        assert settle(run, f"Date,Cost (USD)\n{TODAY},${total}\n2026-11-21,99.5\n") == 0
        assert money(run) == ((pytest.approx(0.20), 3) if spent is None else (pytest.approx(spent), 0))
    told = capsys.readouterr().out
    assert "0 costs changed" in told
    assert (f"{TODAY}: below what the answered calls cost" in told) == (spent is None)


def test_bill_of_a_call_that_took_two_requests_is_the_sum_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "twice"
    asyncio.run(make(run, monkeypatch, (("a+b", 0.20), ("c+", None), ("d+", None), ("e", 0.10))))
    rows = [("a", "0.05", 0), ("b", "0.10", 0), ("c", "0.08", 1), ("lost", "0.07", 1), ("d", "0.04", 2)]
    rows.append(("e", "0.11", 3))
    bill = "".join(f"{name},{usd},{TODAY}T10:00:{second:02d}Z\n" for name, usd, second in rows)
    for _ in range(2):
        assert settle(run, f"request_id,cost,timestamp\n{bill}") == 0
        with JournalReader.open(run) as reader:
            costs = [cost for (cost,) in reader.connection.execute("SELECT cost_usd FROM call ORDER BY id")]
        # a and b; c and the lost one beside it; d, whose second request is on no bill yet; e
        assert costs == [pytest.approx(0.15), pytest.approx(0.15), None, pytest.approx(0.11)]


def test_corrected_bill_counts_instead_of_the_first(run: Path) -> None:
    settle(run, f"date,cost\n{TODAY},0.80\n")
    settle(run, f"date,cost\n{TODAY},0.29\n")
    assert money(run) == (pytest.approx(0.29), 0)


def test_ids_settle_single_calls_and_rows_near_a_lost_one_are_taken_for_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bill = "\n".join(
        [
            "request_id,timestamp,model,spend",
            f"a,{TODAY}T10:00:01Z,m,0.11",
            f"b,{TODAY}T10:00:02Z,m,0.10",
            f"x9,{TODAY}T10:00:04Z,gemini/m-001,0.25",
            f"x8,{TODAY}T10:00:05Z,another,9.00",
            f"x7,{TODAY}T18:00:00Z,m,0.40",
            "",
        ]
    )
    for _ in range(2):
        assert settle(run, bill, "--json") == 0
        told = orjson.loads(capsys.readouterr().out)
        # a is 0.11; x9 is the first lost call; of the two others the bill, which spans their hour, knows nothing
        assert (told["settled"], told["still_held"]) == (3, 0)
        assert told["foreign_usd"] == pytest.approx(9.40)
        assert money(run) == (pytest.approx(0.11 + 0.10 + 0.25), 0)


@pytest.mark.parametrize(
    "rows",
    [
        # the bill does not have b, which was answered: it is not whole
        f"a,{TODAY}T10:00:01Z,m,gemini,0.1\nx,{TODAY}T18:00:00Z,m,gemini,0.1\n",
        # another model's calls around the lost ones say nothing of them
        f"y,{TODAY}T09:00:00Z,another,gemini,1\nx,{TODAY}T18:00:00Z,another,gemini,1\n",
        # nor do another provider's
        f"y,{TODAY}T09:00:00Z,m,openai,1\nx,{TODAY}T18:00:00Z,m,openai,1\n",
        # all calls, and three that a gateway sent on to somebody of another name: those may be the lost ones
        f"a,{TODAY}T10:00:00Z,m,,0.1\nb,{TODAY}T10:00:01Z,m,,0.1\n"
        + "".join(f"x{second},{TODAY}T10:00:{second:02d}Z,m,Google Vertex,0.2\n" for second in (5, 6, 7))
        + f"z,{TODAY}T18:00:00Z,m,,0.1\n",
    ],
)
def test_bill_that_is_not_whole_or_anothers_releases_nothing(run: Path, rows: str) -> None:
    assert settle(run, f"request_id,timestamp,model,provider_name,cost\n{rows}") == 0
    assert money(run) == (pytest.approx(0.20), 3)


def test_days_row_of_a_model_is_not_its_relatives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gemini-2.5-flash and gemini-2.5-flash-image are two products of Google's price list."""
    run = tmp_path / "run"
    asyncio.run(make(run, monkeypatch, (("a", 0.01), ("", None), ("b", 0.39)), models=FLASH))
    bill = f"date,model,cost\n{TODAY},gemini-2.5-flash-001,0.05\n{TODAY},gemini-2.5-flash-image,0.39\n"
    assert settle(run, bill) == 0
    assert money(run) == (pytest.approx(0.44), 0)  # the lost text call cost 0.05 - 0.01


def test_days_of_another_time_zone_are_taken_as_such(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # 10:00 UTC is midnight of the next day where clocks are 14 hours ahead.
    bill = "usage date,Cost ($)\n2026-11-22,0.50\n"
    assert settle(run, bill, "--zone", "Pacific/Kiritimati") == 0
    assert money(run) == (pytest.approx(0.20), 3)
    assert settle(run, bill.replace("11-22", "11-23"), "--zone", "Pacific/Kiritimati") == 0
    assert money(run) == (pytest.approx(0.50), 0)
    capsys.readouterr()
    for zone in ("Mars/Olympus", "../../etc/passwd"):
        assert settle(run, bill, "--zone", zone) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert settle(run, bill, "--provider", "gemnii") == 2
    assert "went to gemini" in capsys.readouterr().err


def test_day_of_another_provider_or_another_day_settles_nothing(run: Path) -> None:
    assert settle(run, f"date,provider,cost\n{TODAY},openai,5\n2026-11-20,gemini,5\n") == 0
    assert money(run) == (pytest.approx(0.20), 3)


@pytest.mark.parametrize(
    ("bill", "said"),
    [
        ("", "is empty; a header row is needed"),
        ("date,cost\n", "holds no rows"),
        ("date,words\n2026-11-22,3\n", "no column of costs among date, words"),
        ("date,cost,cost\n2026-11-22,3,1\n", "column 'cost': occurs twice"),  # the last one was taken
        ("date,Cost ($),cost\n2026-11-22,3,1\n", "the columns 'Cost ($)' and 'cost' are one"),
        ("date,cost\n2026-11-22,1,5\n", "3 cells under 2 columns"),  # 1,5: one dollar was taken
        ("date;cost\n2026-11-22;1,5\n", "row 2: cost is 1,5"),
        (f"date,cost\n2026-11-22,{'1' * 200_000}\n", "cost is 1111"),
        ("cost\n3\n", "neither ids of calls nor dates"),
        ("date,cost\n2026-11-22,NaN\n", "row 2: cost is NaN"),
        ("date,cost\n2026-11-22,-3\n", "row 2: cost is -3"),
        ("date,cost\n2026-11-22,inf\n", "row 2: cost is inf"),
        ("date,cost\n2026-11-22,\n", "row 2: cost is empty"),
        ('date,cost\n2026-11-22,"1,5"\n', "row 2: cost is 1,5"),
        ('date,cost\n2026-11-22,"0,039"\n', "row 2: cost is 0,039"),  # four cents, where a comma is the point
        ("date,cost\n2026-11-22,1_000\n", "row 2: cost is 1_000"),
        ("date,amount_value,amount_currency\n2026-11-22,3,eur\n", "row 2: amount_currency is eur"),
        ("date,cost\n22.11.2026,1\n", "row 2: date is '22.11.2026'"),
        ("date,cost\n2026-13-01,1\n", "row 2: date is '2026-13-01'"),
        ("date,cost\n9999-12-31T23:59:59-10:00,1\n", "row 2: date is '9999-12-31"),
        ("id,cost\na,1\na,1\n", "rows 2 and 3 are both of the call a"),
        ("id,date,cost\n,,1\n", "row 2 has neither the id of a call nor a date"),
    ],
)
def test_bad_bill_is_one_clear_line_and_changes_nothing(
    run: Path, bill: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert settle(run, bill) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert money(run) == (pytest.approx(0.20), 3)


def test_status_says_what_is_held_and_for_how_many_calls(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status", str(run), "--json"]) == 0
    told = orjson.loads(capsys.readouterr().out)
    assert (told["held_usd"], told["calls_held"]) == (
        pytest.approx(0.90),
        3,
    )  # too few are known to learn from
    assert main(["status", str(run)]) == 0
    assert "$0.9000 for 3 calls of unknown cost" in capsys.readouterr().out
