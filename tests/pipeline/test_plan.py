from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.findings import load_taxonomy
from plantain.journal import Journal, JournalReader, RunLocked, verify
from plantain.pipeline import merge as merging
from plantain.pipeline.forecast import BuildPlan, CallEstimate, Pilot, make_plan, read_pilot
from plantain.pipeline.merge import merge
from plantain.pipeline.plan import Shard, Share, in_words, scaled_recipe, share_of
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.run import run_build
from plantain.records import InputError, Step, Withdrawal
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.release.withdraw import concerned

PRICES = {
    "writer": {"input_per_m": 1.0, "output_per_m": 10.0},
    "editor": {"image_out_each": 0.04},
    "judge": {"input_per_m": 1.0, "output_per_m": 10.0},
}
HOSTED = """
name = "hosted"
[data]
catalogue = "catalogue"
findings = ["AMD"]
[models]
"""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quick_catalogue(tmp_path_factory.mktemp("plan") / "catalogue", images=4)


def priced(catalogue: Path) -> Recipe:
    section = {"requests_per_minute": 6.0, "prices": PRICES}
    return quick_recipe(catalogue, limits={"concurrency": 50}, parts={"providers": {"quick": section}})


def planned(recipe: Recipe, pilot: Pilot | None = None) -> BuildPlan:
    with Catalogue.open(recipe.data.catalogue) as catalogue:
        return make_plan(recipe, catalogue, load_taxonomy(), pilot)


def test_plan_counts_calls_money_and_time_by_hand(catalogue: Path) -> None:
    made = planned(priced(catalogue))
    assert (made.tasks, made.images) == (12, 4)  # 4 images, 3 findings to add
    assert made.rounds == CallEstimate(12.0, 36.0, 36.0)  # 1, min(3.15, 3) and 3 rounds
    assert made.calls == CallEstimate(36.0, 108.0, 108.0)
    # a typical round: writer 2200 in, 850 out; editor $0.04; judge 3800 in, 1250 out
    per_round = 0.0022 + 0.0085 + 0.04 + 0.0038 + 0.0125
    assert made.cost_usd is not None
    assert made.cost_usd.expected == pytest.approx(36 * per_round)
    assert made.cost_usd.low == pytest.approx(0.7 * 12 * per_round)
    # each model makes 36 calls at 6 a minute: that is longer than 36 x 27 s at 50 in flight
    assert made.duration_s.expected == pytest.approx(360.0)


def test_plan_uses_the_rates_of_a_pilot(catalogue: Path, tmp_path: Path) -> None:
    asyncio.run(run_build(quick_recipe(catalogue), tmp_path / "run", method=quick_method(CallLog(None))))
    pilot = read_pilot(tmp_path / "run")
    made = planned(priced(catalogue), pilot)
    mean = sum(pilot.rounds) / len(pilot.rounds)
    assert made.rounds.expected == pytest.approx(12 * mean)
    assert made.rounds.low <= made.rounds.expected <= made.rounds.high <= 36.0
    # every attempt was written and edited once; a refused one was not judged
    assert made.calls_by[(Step.WRITE, "quick/writer")].expected == pytest.approx(made.rounds.expected)
    assert made.calls_by[(Step.JUDGE, "quick/judge")].expected < made.rounds.expected


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (
            'editor = "gemini/gemini-3.1-flash-imge"',
            "did you mean 'gemini/gemini-3.1-flash-image'? (if it is new",
        ),
        ('judge = "gemini/gemini-3.1-flash-image"', "can be editor, not judge; for one, 'gemini/"),
        (
            'editor = "offline/procedurl"',
            "models.editor: no model 'offline/procedurl'; did you mean 'offline/proc",
        ),
        ('editor = "offline/templates"', "can be writer, not editor"),
        ("judge = []", "models.judge"),
    ],
)
def test_plan_and_build_refuse_with_the_same_sentence(
    models: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    quick_catalogue(tmp_path / "catalogue", images=1)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(HOSTED + models)
    printed = []
    for command in (["plan"], ["build", "--run", str(tmp_path / "run")]):
        assert main([command[0], str(recipe), *command[1:]]) == 2
        printed.append(capsys.readouterr().err.splitlines()[-1])
    assert printed[0] == printed[1] and message in printed[0]
    assert not (tmp_path / "run").exists()


NINE = (1, 0, 1, 3, 2, 1, 2, 1, 1)
"""Tasks of nine shards of twelve."""

LAYOUTS = ("med-banana", "parquet", "trajectory")
TABLES = ("task", "attempt", "verdict", "criterion", "score", "image", "blob")


def build(recipe: Recipe, run: Path, shard: str = "", limit: int | None = None) -> None:
    part = Shard.parse(shard) if shard else None
    method = quick_method(CallLog(None), max_rounds=2)
    asyncio.run(run_build(recipe, run, method=method, shard=part, limit=limit))


def rows(run: Path, table: str) -> list[tuple[object, ...]]:
    with JournalReader.open(run) as reader:
        return sorted(map(tuple, reader.connection.execute(f"SELECT * FROM {table}")), key=repr)


def exported(run: Path, out: Path) -> dict[str, bytes]:
    export_run(run, out, ExportOptions(LAYOUTS, licences=("CC-BY-4.0",)))
    return {
        str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*")) if file.is_file()
    }


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return quick_recipe(quick_catalogue(tmp_path_factory.mktemp("quick") / "catalogue", 4), max_rounds=2)


@pytest.fixture(scope="module")
def whole(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build(recipe, run := tmp_path_factory.mktemp("whole") / "run")
    return run


@pytest.fixture(scope="module")
def shards(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three shards; the second was stopped and resumed without stating its number again."""
    folder = tmp_path_factory.mktemp("shards")
    runs = [folder / f"part-{number}" for number in (1, 2, 3)]
    build(recipe, runs[0], "1/3")
    build(recipe, runs[1], "2/3", limit=1)
    build(recipe, runs[1])
    build(recipe, runs[2], "3/3")
    return runs


def test_merged_shards_are_the_run_that_was_never_split(
    whole: Path, shards: list[Path], tmp_path: Path
) -> None:
    merged = merge([shards[2], shards[0], shards[1]], tmp_path / "all")
    assert sum(merged.tasks.values()) == 12 and merged.tasks["pending"] == 0
    assert merged.blobs > 12
    for table in TABLES:
        assert rows(tmp_path / "all", table) == rows(whole, table), table
    # a run's id is random, and appears in a release
    same_id = Path(shutil.copytree(whole, tmp_path / "whole"))
    with (
        sqlite3.connect(same_id / "journal.sqlite") as database,
        JournalReader.open(tmp_path / "all") as reader,
    ):
        database.execute("UPDATE meta SET value = ? WHERE key = 'run_id'", (reader.header.run_id,))
    one, other = exported(same_id, tmp_path / "one"), exported(tmp_path / "all", tmp_path / "other")
    assert one.keys() == other.keys()
    differing = [name for name in one if one[name] != other[name]]
    assert differing == [], differing
    assert left_by_merge(tmp_path) == ["all"]


def test_every_task_is_in_one_shard(
    whole: Path, shards: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    every = {str(row[0]) for row in rows(whole, "task")}
    found = [{str(row[0]) for row in rows(run, "task")} for run in shards]
    assert set.union(*found) == every and sum(map(len, found)) == len(every)
    for number, run in enumerate(shards, start=1):
        with JournalReader.open(run) as reader:
            assert main(["status", str(run), "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["shard"] == f"{number}/3"
            assert share_of(reader) == Share(
                Shard(number, 3), len(found[number - 1]), 12, reader.meta("plan_digest")
            )


def test_money_and_limits_are_shared_by_tasks(recipe: Recipe) -> None:
    limited = Recipe.model_validate(
        {
            **recipe.model_dump(),
            "limits": {"budget_usd": 120.0, "max_calls": 1000, "max_hours": 3.0},
            "providers": {"quick": {"requests_per_minute": 60.0, "tokens_per_minute": 9000.0}},
        }
    )
    share = Share(Shard(2, 5), 3, 12, "")
    mine = scaled_recipe(limited, share)
    assert (mine.limits.budget_usd, mine.limits.max_calls, mine.limits.max_hours) == (30.0, 250, 3.0)
    assert mine.providers["quick"].requests_per_minute == 15.0
    assert mine.frozen_part() == limited.frozen_part()
    parts = [
        scaled_recipe(limited, Share(Shard(n, 9), tasks, 12, "")).limits for n, tasks in enumerate(NINE, 1)
    ]
    assert sum(part.budget_usd or 0.0 for part in parts) == pytest.approx(120.0)
    assert sum(part.max_calls or 0 for part in parts) <= 1000 and parts[1].max_calls == 0
    assert "shard 2/5: 3 of 12 tasks" in in_words(share)


def test_missing_and_foreign_shards_are_named(
    recipe: Recipe, whole: Path, shards: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, three = shards
    build(recipe, fourth := tmp_path / "fourth", "4/4")
    fewer = recipe.model_copy(update={"data": recipe.data.model_copy(update={"findings": ("AMD",)})})
    build(fewer, other := tmp_path / "other", "2/3")
    cases = {
        "missing shards: 2/3; ": [one, three],
        "is shard 4/4": [one, two, fourth],
        "another plan": [one, other, three],
        "not a shard of a plan": [one, whole, three],
    }
    for message, runs in cases.items():
        assert main(["run", "merge", *map(str, runs), "--run", str(tmp_path / "all")]) == 2
        printed = capsys.readouterr().err
        assert message in printed and printed.count("\n") == 1, printed
        assert not (tmp_path / "all").exists()
    assert main(["run", "merge", *map(str, shards), "--run", str(whole)]) == 2
    assert "already exists" in capsys.readouterr().err


def test_damage_is_found_and_an_interrupted_merge_is_repeated(shards: list[Path], tmp_path: Path) -> None:
    copies = [Path(shutil.copytree(run, tmp_path / run.name)) for run in shards]
    spoilt = copies[1] / "blobs" / only_in(copies[1], copies[0])
    kept = spoilt.read_bytes()
    spoilt.write_bytes(kept[:-1] + b"?")
    with pytest.raises(InputError, match="not complete"):
        merge(copies, tmp_path / "all")
    assert not left_by_merge(tmp_path)
    spoilt.write_bytes(kept)
    with pytest.raises(RunLocked, match=r"process .* has been writing"), written_to(copies[0]):
        merge(copies, tmp_path / "all")
    assert merge(copies, tmp_path / "all").tasks["pending"] == 0
    missing = copies[2] / "blobs" / only_in(copies[2], copies[0])
    missing.unlink()
    with pytest.raises(InputError, match="the image is missing"):
        merge(copies, tmp_path / "later")


def left_by_merge(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(("all", ".all")))


def only_in(run: Path, other: Path) -> Path:
    """Return a blob that only the first of two shards has: edits differ by shard, originals are shared."""
    sha256 = min({str(row[0]) for row in rows(run, "blob")} - {str(row[0]) for row in rows(other, "blob")})
    return Path(sha256[:2]) / sha256


@contextlib.contextmanager
def written_to(run: Path) -> Iterator[None]:
    journal = Journal.open(run)
    try:
        yield
    finally:
        asyncio.run(journal.close())


@pytest.mark.parametrize("stage", ["join", "verify"])
def test_a_merge_killed_at_any_stage_leaves_nothing_and_is_repeated(
    stage: str, shards: list[Path], tmp_path: Path
) -> None:
    child = os.fork()
    if child == 0:
        setattr(merging, stage, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        merge(shards, tmp_path / "all")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert left_by_merge(tmp_path) == [".all.unfinished"]
    merged = merge(shards, tmp_path / "all")
    assert sum(merged.tasks.values()) == 12 and left_by_merge(tmp_path) == ["all"]
    with JournalReader.open(tmp_path / "all") as reader:
        assert verify(reader).ok


def test_images_withdrawn_from_a_shard_are_not_merged(
    recipe: Recipe, shards: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copies = [Path(shutil.copytree(run, tmp_path / run.name)) for run in shards]
    gone = str(rows(copies[0], "task")[0][2])
    main(["run", "withdraw", str(copies[0]), "--image", gone])
    with pytest.raises(
        InputError, match=f"contains image {gone}, .*`plantain run withdraw .* --image {gone}` first"
    ):
        merge(copies, tmp_path / "all")
    for run in copies[1:]:
        main(["run", "withdraw", str(run), "--image", gone])
    capsys.readouterr()
    merge(copies, tmp_path / "all")
    assert gone not in {str(row[2]) for row in rows(tmp_path / "all", "task")}
    found = concerned(tmp_path / "all", Withdrawal(images=frozenset({gone})))
    assert found is not None and found.before
    more = recipe.model_copy(update={"data": recipe.data.model_copy(update={"findings": ("AMD",)})})
    build(more, tmp_path / "all")
    assert gone not in {str(row[2]) for row in rows(tmp_path / "all", "task")}
