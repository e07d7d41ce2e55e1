"""Withdrawing a patient from a real run, its catalogue and its releases; also killed half-way, and repeated."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.quick import CallLog, quick_image, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.journal import BlobStore, JournalReader, verify
from plantain.journal.withdrawal import held_for_withdrawal, take_out
from plantain.pipeline.run import run_build
from plantain.records import Consent, InputError, Licence, Withdrawal
from plantain.records.messages import COMMANDS
from plantain.release.export import export_run
from plantain.release.naming import CROSSWALK
from plantain.release.plan import ExportOptions
from plantain.release.register import REGISTER, register, releases_with
from plantain.release.withdraw import concerned
from plantain.report.page import write_report
from plantain.runs.terms import costs_of

GONE, STAYS = "patient:10000032", "patient:10000048"
OPTIONS = ExportOptions(("trajectory", "parquet"), redistribution_approved="DUA 1")


def build(catalogue: Path, run: Path, log: Path) -> None:
    recipe = quick_recipe(catalogue, findings=("AMD", "Cataract"))
    asyncio.run(run_build(recipe, run, method=quick_method(CallLog(log), max_rounds=2)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue of two patients with two eyes each, a run on it, its report, and one release."""
    root = tmp_path_factory.mktemp("made")
    consent = Consent("the owner", "letter of today")
    with Catalogue.create(root / "catalogue") as catalogue:
        for number in range(4):
            image, data = quick_image(number)
            group = GONE if number < 2 else STAYS
            own = replace(image, group=group, licence=Licence.CREDENTIALED, consent=consent)
            catalogue.add(own, data, bytes(32))
    build(root / "catalogue", root / "run", root / "log")
    export_run(root / "run", root / "release", OPTIONS)
    write_report(root / "run")
    return root


@pytest.fixture
def case(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change; files are linked, since blobs are never written twice."""
    for name in ("catalogue", "run", "release", "log"):
        source = made / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    return tmp_path


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix not in (".sqlite-shm", ".sqlite-wal") and path.name != "lock"
    }


def holding(root: Path, *words: str) -> list[str]:
    return [
        str(path)
        for path in root.rglob("*")
        if path.is_file() and any(word.encode() in path.read_bytes() for word in words)
    ]


def test_withdrawal_removes_all_of_the_patient_and_nothing_else(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, catalogue = case / "run", case / "catalogue"
    before = files(run)
    with JournalReader.open(run) as reader:
        gone = [row.id for row in reader.tasks() if row.task.image_id in ("retina-0", "retina-1")]
        theirs = {
            sha
            for task in gone
            for attempt in reader.attempts(task)
            for sha in (attempt.edited, attempt.raw, attempt.mask)
            if sha
        } | {reader.image(name).prepared_sha256 for name in ("retina-0", "retina-1")}
        others = {
            sha
            for row in reader.tasks()
            if row.id not in gone
            for attempt in reader.attempts(row.id)
            for sha in (attempt.edited, attempt.raw, attempt.mask)
            if sha
        }
        spent, counts = reader.spent_usd(), sum(reader.counts().values())

    asked = ["run", "withdraw", str(run), str(catalogue), "--group", GONE, "--json"]
    assert main([*asked, "--dry-run"]) == 0
    foretold = json.loads(capsys.readouterr().out)
    assert files(run) == before

    assert main(asked) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["folders"] == foretold["folders"]
    of_run = next(one for one in document["folders"] if one["kind"] == "run")
    assert of_run["images"] == 2
    assert of_run["tasks"] == len(gone) == 4  # two eyes, two findings
    # The release was made in the folder that this case is a copy of, and calls its images by pseudonyms.
    assert [Path(path).name for path in of_run["releases"]] == ["release"]
    assert len(of_run["released_as"]) == 2
    assert all(name.startswith("x") for name in of_run["released_as"])

    with JournalReader.open(run) as reader:
        assert verify(reader).problems == ()
        assert sum(reader.counts().values()) == counts - 4
        assert reader.spent_usd() == spent
        assert all(not reader.has_blob(sha) for sha in theirs - others)
        assert all(reader.has_blob(sha) for sha in others)
    words = ("retina-0", "retina-1", GONE, *gone, *of_run["released_as"])
    assert holding(run, *words) == []
    assert holding(catalogue, "retina-0", "retina-1", GONE) == []
    assert not (run / "report.html").exists()
    with Catalogue.open(catalogue) as left:
        assert [image.id for image in left.images()] == ["retina-2", "retina-3"]

    again = export_run(run, case / "again", OPTIONS)
    assert again.facts.split_groups == 1
    assert main(["verify", str(case / "again"), "--against", str(run)]) == 0


def test_a_later_build_does_not_restore_the_patient(case: Path, tmp_path: Path) -> None:
    assert main(["run", "withdraw", str(case / "run"), "--group", GONE]) == 0
    # The catalogue still has the patient, and a new finding makes the plan be enumerated again.
    recipe = quick_recipe(case / "catalogue", findings=("AMD", "Cataract"))
    with Catalogue.open(case / "catalogue") as catalogue, Catalogue.create(tmp_path / "grown") as grown:
        for image in catalogue.images():
            grown.add(replace(image, note="grown"), catalogue.read(image))
    recipe = recipe.model_copy(
        update={"data": recipe.data.model_copy(update={"catalogue": tmp_path / "grown"})}
    )
    asyncio.run(run_build(recipe, case / "run", method=quick_method(CallLog(case / "log"), max_rounds=2)))
    with JournalReader.open(case / "run") as reader:
        assert {row.task.image_id for row in reader.tasks()} == {"retina-2", "retina-3"}


def test_a_killed_withdrawal_is_completed_by_the_next_call(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = case / "run"
    pid = os.fork()
    if pid == 0:
        asked = Withdrawal(frozenset({GONE}))
        found = concerned(run, asked)
        with held_for_withdrawal(run) as connection:
            take_out(connection, asked, found.image_ids if found else (), found.releases if found else ())
            os._exit(9)  # rows are gone and committed; blobs, crosswalk, register and free pages are not
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert holding(run, "retina-0") != []
    assert main(["run", "withdraw", str(run), "--group", GONE]) == 0
    assert "already withdrawn" in capsys.readouterr().out
    assert holding(run, "retina-0", "retina-1", GONE) == []
    with JournalReader.open(run) as reader:
        assert verify(reader).problems == ()
        referred = {sha for (sha,) in reader.connection.execute("SELECT sha256 FROM blob")}
    assert {path.name for path in (run / "blobs").rglob("*") if path.is_file()} == referred


def test_an_unknown_group_is_one_line(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(case)
    assert main(["run", "withdraw", str(case / "run"), "--group", "patient:10000033"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "patient:10000032" in error  # the nearest that there is
    assert files(case) == before
    assert main(["run", "withdraw", str(case), "--group", GONE]) == 2
    assert "not a run, a catalogue" in capsys.readouterr().err


def test_a_release_name_leads_to_the_patient(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = json.loads((case / "run" / CROSSWALK).read_bytes())["ids"]
    pseudonym = known[f"scikit-image/{GONE}"]
    assert main(["run", "withdraw", str(case / "run"), "--group", pseudonym, "--dry-run"]) == 0
    out, words = capsys.readouterr().out, f"run withdraw {case / 'run'} --group {pseudonym}"
    assert "would remove 2 images" in out and out.splitlines()[-1] == f"next: plantain {words}"
    assert (case / "run" / REGISTER).is_dir()


def test_the_catalogue_of_the_runs_recipe_and_a_new_export_are_named(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, catalogue = case / "run", case / "catalogue"
    (case / "r.toml").write_text('name = "quick"\n[data]\ncatalogue = "catalogue"\n')
    with closing(sqlite3.connect(run / "journal.sqlite", isolation_level=None)) as journal:
        typed = json.dumps([[str(case), ["plantain", "build", "r.toml", "--run", None]]])
        journal.execute("INSERT INTO meta VALUES (?, ?)", (COMMANDS, typed))
    again = f"plantain run withdraw {run} {catalogue} --group {GONE}"
    assert main(["run", "withdraw", str(run), "--group", GONE]) == 0
    printed = capsys.readouterr().out
    assert f"{catalogue} still contains it: {again}\n" in printed
    assert printed.splitlines()[-1].startswith(f"next: plantain export {run} --to ")
    assert main(again.split()[1:]) == 0
    assert "still contains" not in capsys.readouterr().out


def test_withdrawing_a_patients_last_image_removes_the_patients_name(case: Path) -> None:
    for name in ("retina-0", "retina-1"):
        assert main(["run", "withdraw", str(case / "run"), str(case / "catalogue"), "--image", name]) == 0
    assert holding(case / "run", "retina-0", "retina-1", GONE) == []
    assert holding(case / "catalogue", "retina-0", "retina-1", GONE) == []
    assert main(["run", "withdraw", str(case / "catalogue"), "--group", GONE]) == 0  # withdrawn before


def test_withdrawal_removes_every_file_derived_from_a_run(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the files listed in the documentation of a run's folder remain: no page, table or copy."""
    run = case / "run"
    for name in ("rejudged.html", "next-years-page.html", "attention/a/retina-0_0.png", ".page.html.part"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_bytes(b"pixels of retina-0")
    stray = BlobStore(run / "blobs").put(b"stored, and killed before its row", "image/png")[0]
    killed = case / ".elsewhere.unfinished"
    killed.mkdir()
    (killed / "lock").touch()
    study = ["review", "new", str(case / "study"), "--from", str(run), "--task", "accept"]
    assert main(study) == 0
    (run / "inside").mkdir()
    shutil.copy(run / "journal.sqlite", run / "inside")
    capsys.readouterr()
    assert main(["run", "withdraw", str(run), "--group", GONE, "--json", "--dry-run"]) == 0
    assert json.loads(capsys.readouterr().out)["folders"][1]["folder"] == str(case / "study")
    assert main(["run", "withdraw", str(run), "--group", GONE]) == 0
    printed = capsys.readouterr().out
    assert f"{case / 'study'}: removed " in printed
    assert "inside in it is a folder of its own" in printed
    own = {"journal.sqlite", "lock", "blobs", "inside", CROSSWALK, REGISTER}
    assert {path.name.removesuffix("-wal").removesuffix("-shm") for path in run.iterdir()} <= own
    assert not BlobStore(run / "blobs").path(stray.sha256).exists()
    assert not killed.exists()


def test_calls_of_unknown_cost_are_charged_once_by_the_estimate_of_the_budget(case: Path) -> None:
    """By hand: 0.95 of the known costs are at most $0.01, so four lost calls count $0.04, not the reserved $12."""
    run = case / "run"
    with held_for_withdrawal(run) as database:
        database.execute("UPDATE call SET cost_usd = 0.01, reserved_usd = 3.0")
        lost = "SELECT min(id) FROM call WHERE step = 'write' GROUP BY task"
        database.execute(f"UPDATE call SET cost_usd = NULL WHERE id IN ({lost} ORDER BY 1 LIMIT 4)")

    def money() -> tuple[float, float]:
        with JournalReader.open(run) as reader:
            return reader.spent_usd(), sum(costs.held_usd for costs in costs_of(reader).values())

    spent, held = money()
    assert held == pytest.approx(0.04)
    for group in (GONE, STAYS):
        assert main(["run", "withdraw", str(run), "--group", group]) == 0
        assert sum(money()) == pytest.approx(spent + 0.04)
    assert money()[1] == 0


@pytest.mark.parametrize("damaged", [b"", b'{"path": "/x"', b"[]", b'{"path": "/x"}'])
def test_a_damaged_register_is_one_line_and_stays_as_it_is(damaged: bytes, tmp_path: Path) -> None:
    register(tmp_path, tmp_path / "one", ["a"])
    (listed,) = (tmp_path / REGISTER).iterdir()
    listed.write_bytes(damaged)
    with pytest.raises(InputError, match=r"release-register.*: is damaged"):
        releases_with(tmp_path, ["a"])
    with pytest.raises(InputError, match=r"release-register.*: is damaged"):
        register(tmp_path, tmp_path / "one", ["b"])
    assert listed.read_bytes() == damaged
