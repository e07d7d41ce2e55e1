"""`accepted_per_finding`: which images are tried, why it ends, and that order, kills and shards keep it.

The judge accepts the tasks at stated places of the seeded order, so the waves below are worked out by hand.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.quick import (
    CallLog,
    Draws,
    QuickJudge,
    drawn,
    observed,
    quick_image,
    quick_method,
    quick_recipe,
)
from pipeline.wrecks import derived, killed_builds
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.findings import load_taxonomy
from plantain.journal import JournalReader
from plantain.journal.questions.accepted import PartCount, accepted_rows
from plantain.pipeline.further import ending
from plantain.pipeline.merge import merge
from plantain.pipeline.plan import Shard, enumerate_tasks
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import Observations, TaskState, task_id
from plantain.report.page import write_report
from plantain.roles import JudgeRequest, Reply

IMAGES = 14


def one_photograph(folder: Path, images: int = IMAGES) -> Path:
    """A catalogue of one photograph under several sources: only their place in the plan differs."""
    record, data = quick_image(0)
    with Catalogue.create(folder) as catalogue:
        for i in range(images):
            source = hashlib.sha256(str(i).encode()).hexdigest()
            catalogue.add(replace(record, id=f"retina-{i}", source_sha256=source), data)
    return folder


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return one_photograph(tmp_path_factory.mktemp("many") / "catalogue")


def requires(catalogue: Path, accepted: int | None, **data: object) -> Recipe:
    data = {"accepted_per_finding": accepted, "yield_floor": 0.0, **data}
    return quick_recipe(catalogue, findings=("AMD",), data=data, max_rounds=1)


def order(catalogue: Path, finding: str = "AMD") -> list[str]:
    """Ids of the tasks in the seeded order, which `per_finding` takes from the front."""
    ids: list[str] = []
    with Catalogue.open(catalogue) as opened:
        for n in range(1, len(opened) + 1):
            recipe = requires(catalogue, None, per_finding=n, findings=[finding])
            ids += [
                task.id for task in enumerate_tasks(recipe, opened, load_taxonomy()) if task.id not in ids
            ]
    return ids


class Accepts(QuickJudge):
    """Accepts some tasks, and answers after a wait of its own for each."""

    def __init__(self, accepted: Collection[str]) -> None:
        super().__init__(CallLog())
        self.accepted = frozenset(accepted)

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        assert request.finding is not None
        task = task_id(
            request.image.source_sha256, request.image.frame, request.finding.name, request.direction
        )
        await asyncio.sleep(int(task[:2], 16) / 20_000)
        return Reply(observed(task in self.accepted))


def build(
    recipe: Recipe, run: Path, places: Collection[int], shard: str = "", limit: int | None = None
) -> str | None:
    tasks = order(recipe.data.catalogue)
    judge = Accepts([tasks[place] for place in places])
    editor = Draws(lambda request: drawn(request.original.data, 1))  # the same for every task
    method = replace(quick_method(CallLog(), max_rounds=1), editor=editor, judges=(judge,))
    part = Shard.parse(shard) if shard else None
    return asyncio.run(run_build(recipe, run, method=method, shard=part, limit=limit)).stopped


def tried(run: Path) -> set[str]:
    with JournalReader.open(run) as reader:
        return {row.id for row in reader.tasks() if row.state is not TaskState.PENDING}


def why(run: Path) -> list[tuple[int, int, int, str]]:
    with JournalReader.open(run) as reader:
        return [(row.required, row.accepted, row.tried, row.ended) for row in accepted_rows(reader)]


def test_images_are_drawn_until_enough_edits_are_accepted(
    many: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 3 required: places 0 to 2 give one; 2 are missing, so ceil(2 x 3 / 1) = 6 but at most 3: places 3 to 5 give two
    assert build(requires(many, 3), tmp_path / "run", {1, 4, 5, 9}) is None
    assert tried(tmp_path / "run") == set(order(many)[:6])
    assert why(tmp_path / "run") == [(3, 3, 6, "reached")]
    assert main(["status", str(tmp_path / "run"), "--json"]) == 0
    expected = {
        "modality": "fundus",
        "finding": "AMD",
        "direction": "add",
        "required": 3,
        "tried": 6,
        "accepted": 3,
    }
    (row,) = json.loads(capsys.readouterr().out)["accepted"]
    assert row == expected | {"ended": "reached", "why": "enough accepted"}
    assert main(["status", str(tmp_path / "run")]) == 0
    assert "3 of 3 accepted, 6 tried: enough accepted" in capsys.readouterr().out
    page = write_report(tmp_path / "run")
    assert "Why it ended" in page.read_text()
    assert json.loads(page.with_suffix(".json").read_text())["accepted"] == [row]
    # with more required, the run continues where it ended
    assert build(requires(many, 4), tmp_path / "run", {1, 4, 5, 6}) is None
    assert why(tmp_path / "run") == [(4, 4, 8, "reached")]  # one missing: ceil(1 x 6 / 3) = 2


def test_the_build_ends_when_images_are_used_up(many: Path, tmp_path: Path) -> None:
    assert build(requires(many, 3), tmp_path / "run", {1}) is None
    assert why(tmp_path / "run") == [(3, 1, IMAGES, "images")]
    assert build(requires(many, 3, per_finding=5), tmp_path / "capped", {1}) is None
    assert why(tmp_path / "capped") == [(3, 1, 5, "images")]


def test_the_build_ends_when_the_yield_is_below_the_floor(many: Path, tmp_path: Path) -> None:
    # Wilson's upper bound of 0 of n is z^2 / (n + z^2) with z^2 = 3.8415: 0.561 at 3, 0.390 at 6, 0.243 at 12
    assert build(requires(many, 3, yield_floor=0.3), tmp_path / "run", ()) is None
    assert why(tmp_path / "run") == [(3, 0, 12, "yield")]
    assert ending(200, PartCount(72, 72, 0), 0.05) == ""  # 3.8415 / 75.8415 = 0.05065
    assert ending(200, PartCount(73, 73, 0), 0.05) == "yield"  # 3.8415 / 76.8415 = 0.04999


@pytest.mark.parametrize("concurrency", [1, 7])
def test_order_of_the_answers_changes_nothing(many: Path, tmp_path: Path, concurrency: int) -> None:
    recipe = requires(many, 4)
    limits = recipe.limits.model_copy(update={"concurrency": concurrency})
    build(recipe.model_copy(update={"limits": limits}), tmp_path / "run", {0, 6, 7, 8, 11})
    # 4 tried, 1 accepted: min(ceil(3 x 4 / 1), 4) = 4 more give 2; then ceil(1 x 8 / 3) = 3 give one
    assert tried(tmp_path / "run") == set(order(many)[:11])


def test_limit_stops_between_waves_and_the_rest_follows(many: Path, tmp_path: Path) -> None:
    recipe, places = requires(many, 3), {1, 4, 5}
    assert build(recipe, tmp_path / "run", places, limit=3) == "limit"  # a whole wave
    assert why(tmp_path / "run") == [(3, 1, 3, "")]
    assert build(recipe, tmp_path / "run", places, limit=1) == "limit"
    assert build(recipe, tmp_path / "run", places) is None
    assert tried(tmp_path / "run") == set(order(many)[:6])


def test_limits_of_the_recipe_end_the_build_and_are_named(
    many: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = requires(many, 3)
    limits = recipe.limits.model_copy(update={"max_calls": 7})
    assert build(recipe.model_copy(update={"limits": limits}), tmp_path / "run", {1, 4, 5}) is not None
    assert main(["status", str(tmp_path / "run"), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["accepted"]
    assert row["ended"] == "" and "limits.max_calls = 7" in row["why"]
    build(recipe, tmp_path / "run", {1, 4, 5})
    assert why(tmp_path / "run") == [(3, 3, 6, "reached")]


def test_shards_share_the_number_and_a_merged_run_adds_the_missing_edits(many: Path, tmp_path: Path) -> None:
    recipe, tasks = requires(many, 5), order(many)
    mine = [[i for i, task in enumerate(tasks) if Shard(n, 2).has(task)] for n in (1, 2)]
    runs = [tmp_path / "one", tmp_path / "two"]
    places = {*mine[0][:3], *mine[1][:1]}  # the second shard runs out of images
    for number, run in enumerate(runs, start=1):
        build(recipe, run, places, shard=f"{number}/2")
    assert why(runs[0]) == [(3, 3, 3, "reached")]
    assert why(runs[1]) == [(2, 1, len(mine[1]), "images")]
    merge(runs, tmp_path / "all")
    assert why(tmp_path / "all") == [(5, 4, 3 + len(mine[1]), "")]
    build(recipe, tmp_path / "all", {*places, mine[0][3]})
    before = 3 + len(mine[1])
    # one missing, 4 accepted
    assert why(tmp_path / "all") == [(5, 5, before + math.ceil(before / 4), "reached")]


def test_plan_expects_tasks_by_the_yield(
    many: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'name = "asks"\n[data]\ncatalogue = "{many}"\nfindings = ["AMD"]\ndirections = ["add"]\n'
        "accepted_per_finding = 4\nyield_floor = 0.4\n"
    )
    assert main(["plan", str(recipe), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["tasks"], plan["accepted_per_finding"]) == (14, 4)
    # all, 57.2 % (Med-Banana-50K, 3) and the floor of the tasks succeed: 4 / 1, 4 / 0.572 and 4 / 0.4
    assert list(plan["tried"].values()) == pytest.approx([4.0, 6.993, 10.0], abs=1e-3)
    assert list(plan["rounds"].values()) == pytest.approx([4.0, 6.993 * 3.15, 50.0], abs=1e-2)
    assert main(["plan", str(recipe)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "tries images until 4 edits are accepted, no image is left, or its yield is below 0.4" in out


@pytest.mark.slow
def test_killed_run_resumes_to_the_tasks_of_an_unbroken_one(tmp_path: Path) -> None:
    one_photograph(tmp_path / "catalogue")
    for wreck in killed_builds(tmp_path, range(6, 84, 12), accepted=4):
        assert wreck.end == -9 and wreck.resume() == 0
        whole = tmp_path / "undisturbed"
        assert tried(wreck.run) == tried(whole) and why(wreck.run) == why(whole)
        assert derived(wreck.run) == derived(whole)
    ((required, accepted, asked, ended),) = why(whole)
    assert (required, accepted, ended) == (4, 4, "reached") and 4 < asked < IMAGES
    one, other = (write_report(run).with_suffix(".json").read_bytes() for run in (wreck.run, whole))
    assert one == other
