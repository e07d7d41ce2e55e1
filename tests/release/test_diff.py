from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from plantain.cli import main
from plantain.records import InputError
from plantain.release.diff import diff_releases
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from release.resealing import reseal
from release.runs import make_run

RECORDS = "trajectories/trajectories.jsonl"


def test_diff_of_a_release_with_itself_is_nothing(release: Path) -> None:
    assert diff_releases(release, release).same


def test_diff_names_tasks_that_came_and_went(tmp_path: Path) -> None:
    for images in (4, 6):
        run = make_run(tmp_path / f"run{images}", images=images)
        export_run(run, tmp_path / f"out{images}", ExportOptions(("med-banana",), licences=("CC-BY-4.0",)))
    forth = diff_releases(tmp_path / "out4", tmp_path / "out6")
    back = diff_releases(tmp_path / "out6", tmp_path / "out4")
    # Two more images with two tasks each; of those, the eighth story of eight stays pending.
    added = [change for change in forth.tasks if change.how == "added"]
    assert forth.counts["tasks"]["added"] == len(added) == back.counts["tasks"]["removed"] > 0
    assert forth.counts["images"]["added"] == back.counts["images"]["removed"] > 0
    assert {change.name for change in forth.run} >= {"tasks"}


def test_diff_says_which_field_of_a_task_changed(release: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(release, tmp_path / "copy"))
    lines = (copy / RECORDS).read_bytes().splitlines(keepends=True)
    task = json.loads(lines[0])["task_id"]
    lines[0] = lines[0].replace(b'"modality":"fundus"', b'"modality":"photo"', 1)
    (copy / RECORDS).write_bytes(b"".join(lines))
    reseal(copy)
    difference = diff_releases(release, copy)
    assert [(change.how, change.name) for change in difference.tasks] == [("changed", task)]
    assert "modality: fundus -> photo" in difference.tasks[0].detail
    assert [(change.how, change.name) for change in difference.files] == [("changed", RECORDS)]
    assert not difference.images and not difference.run


def test_diff_of_layouts_is_one_of_files_only(small_run: Path, release: Path, tmp_path: Path) -> None:
    export_run(small_run, tmp_path / "out", ExportOptions(("webdataset",), licences=("CC-BY-4.0",)))
    difference = diff_releases(release, tmp_path / "out")
    assert set(difference.counts) <= {"files"} and difference.counts["files"]["removed"] > 0


def test_diff_command_prints_counts_and_json(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", "diff", str(release), str(release)]) == 0
    assert capsys.readouterr().out == "the same\n"
    export_run(
        make_run(tmp_path / "run", images=2),
        tmp_path / "out",
        ExportOptions(("med-banana",), licences=("CC-BY-4.0",)),
    )
    assert main(["release", "diff", str(release), str(tmp_path / "out")]) == 0
    assert "tasks: " in capsys.readouterr().out
    assert main(["release", "diff", str(release), str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["same"] is False and sum(told["counts"]["tasks"].values()) == len(told["tasks"]) > 0


def test_diff_of_what_is_no_release_is_one_line(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", "diff", str(release), str(tmp_path)]) == 2
    assert "is no release" in capsys.readouterr().err
    copy = Path(shutil.copytree(release, tmp_path / "copy"))
    (copy / RECORDS).write_text("{}\n")
    with pytest.raises(InputError, match="line 1"):
        diff_releases(release, copy)


def test_diff_of_a_damaged_release_points_to_the_proof(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in ("run.json", RECORDS, "manifest.parquet", "LICENSES/parts.json"):
        copy = Path(shutil.copytree(release, tmp_path / path / "a copy"))
        (copy / path).write_bytes((copy / path).read_bytes()[:-9] + b"{")
        assert main(["release", "diff", str(release), str(copy)]) == 2
        (told,) = capsys.readouterr().err.splitlines()
        assert path in told and f"plantain verify '{copy}' names all that is damaged" in told
