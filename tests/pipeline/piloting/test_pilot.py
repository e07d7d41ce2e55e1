"""A pilot does the same few tasks of every finding, recommends go or stop with reasons, and the build resumes it."""

from __future__ import annotations

import asyncio
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.quick import CallLog, judging, quick_catalogue, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.journal import JournalReader
from plantain.metrics.statistics.clusters import Rate, clustered_rate
from plantain.pipeline.forecast import make_plan, read_pilot
from plantain.pipeline.pilot import PilotNumbers, decide_pilot, drawn_pending, drawn_tasks, pilot_numbers
from plantain.pipeline.run import run_build
from plantain.records import TaskState


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[PilotNumbers, Path, Path]:
    """7 of 12 tasks; the numbers, the run and the log of its calls."""
    folder = tmp_path_factory.mktemp("pilot")
    recipe = quick_recipe(quick_catalogue(folder / "catalogue", images=4))
    log, run = CallLog(folder / "calls"), folder / "run"
    summary = asyncio.run(
        run_build(recipe, run, method=quick_method(log), only=lambda r: drawn_pending(r, 7))
    )
    assert summary.stopped is None  # the pilot is done, though the plan is not
    with JournalReader.open(run) as reader, Catalogue.open(recipe.data.catalogue) as catalogue:
        forecast = make_plan(recipe, catalogue, load_taxonomy(), read_pilot(run))
        numbers = pilot_numbers(reader, drawn_tasks(reader, 7), forecast)
        assert reader.counts()[TaskState.PENDING] == 5
    return numbers, run, log.path or folder


def test_every_finding_is_tried_and_counted(done: tuple[PilotNumbers, Path, Path]) -> None:
    numbers, run, _ = done
    with JournalReader.open(run) as reader:
        drawn = [reader.task(name).task for name in drawn_tasks(reader, 7)]
        states = Counter(row.state.value for row in reader.tasks() if row.state is not TaskState.PENDING)
    assert numbers.states == states and numbers.asked == 7
    assert sorted(Counter((task.finding, task.direction) for task in drawn).values()) == [2, 2, 3]
    assert numbers.rates["qualified"].n == states["success"] + states["failed"]
    # Four crops of one photograph: catalogue rows of four source files, so four groups at the most.
    assert numbers.rates["qualified"].clusters <= 4


def test_the_build_continues_without_repeating_a_task(
    done: tuple[PilotNumbers, Path, Path], tmp_path: Path
) -> None:
    _, pilot, calls = done
    run = shutil.copytree(pilot, tmp_path / "run")  # other tests count the tasks of the pilot
    before, log = calls.read_text().splitlines(), CallLog(tmp_path / "calls")
    recipe = quick_recipe(pilot.parent / "catalogue")
    asyncio.run(run_build(recipe, run, method=quick_method(log)))
    with JournalReader.open(run) as reader:
        assert reader.counts()[TaskState.PENDING] == 0
    after = log.lines()
    assert after and len(set(after)) == len(after) and not set(after) & set(before)


def test_a_repeated_pilot_with_turns_makes_no_call(tmp_path: Path) -> None:
    recipe = quick_recipe(quick_catalogue(tmp_path / "catalogue"), turns=2)
    method, calls = replace(quick_method(CallLog(tmp_path / "calls")), judges=(judging(True),)), set[bytes]()
    for _ in range(2):
        asyncio.run(run_build(recipe, tmp_path / "run", method=method, only=lambda r: drawn_pending(r, 4)))
        calls.add((tmp_path / "calls").read_bytes())
    assert len(calls) == 1


def rates(qualified: int, n: int = 50) -> dict[str, Rate]:
    none = dict.fromkeys(("stopped", "undecided", "not_applicable"), clustered_rate({(0, 1): n}))
    return {"qualified": clustered_rate({(1, 1): qualified, (0, 1): n - qualified}), **none}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, ""),
        ({"rates": rates(2)}, "all of the interval is below 25%"),
        ({"states": {"pending": 2, "success": 48}}, "2 of 50 tasks of the pilot still to be done"),
    ],
)
def test_stop_has_a_stated_reason(
    done: tuple[PilotNumbers, Path, Path], changed: dict[str, object], why: str
) -> None:
    # Wilson's 95 % interval of 2 of 50 ends at 0.135: below 0.25.
    good = replace(done[0], asked=50, states={"success": 30, "failed": 20}, rates=rates(30))
    against, _ = decide_pilot(replace(good, **changed), None)  # type: ignore[arg-type]
    assert why in "\n".join(against) and bool(against) is bool(why)
