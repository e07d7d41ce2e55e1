"""`plantain show` and `plantain report` through the command line's entry point."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fakes.commands import json_of, printed, refused
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.records import InputError


@pytest.fixture(scope="module")
def run(own_run: Path) -> Path:
    return own_run


def id_of(run: Path, finding: str, direction: str = "add") -> str:
    with JournalReader.open(run) as reader:
        return next(
            r.id
            for r in reader.tasks()
            if r.task.finding.startswith(finding) and r.task.direction == direction
        )


def test_show_prints_every_round_and_call(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # a narrower table breaks its cells; paths stay whole anyway
    out = printed("show", run, id_of(run, "glioma")[:6])
    assert "Generation 0, round 2, superseded" in out and "Generation 1, round 1" in out
    assert out.count("Add a subtle glioma") == 2 and "too subtle" in out
    assert "(an instrument, not an expert)" in out
    with JournalReader.open(run) as reader:
        for attempt in reader.attempts(id_of(run, "glioma")):
            assert attempt.edited is not None and str(reader.blob_path(attempt.edited)) in out  # on one line
    assert out.count("connection") == 2 and "0.0010" in out


def test_show_names_refusals_and_unscored_rounds(run: Path) -> None:
    assert "edit: refused: the editor declined" in printed("show", run, id_of(run, "Pneumothorax", "remove"))
    out = printed("show", run, id_of(run, "meningioma"))
    assert "judge: malformed" in out and "Stopped, round 2" in out


def test_show_panel_members(run: Path) -> None:
    out = printed("show", run, id_of(run, "AMD"))
    assert out.count("panel member") == 5 and "by panel" in out


def test_show_json_is_complete(run: Path) -> None:
    data = json_of("show", run, id_of(run, "AMD"))
    assert data["state"] == "success" and len(data["attempts"]) == 2 and len(data["verdicts"]) == 7
    assert len(data["calls"]) == 7 and all(Path(path).is_file() for path in data["files"].values())


def test_show_writes_a_page(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "story.html"
    lines = [f"page: {page}", f"next: plantain view {run}"]
    assert printed("show", run, id_of(run, "AMD"), "--to", page).splitlines() == lines
    assert "Panel of 3" in page.read_text(encoding="utf-8")


def test_show_of_a_run_lists_its_tasks(run: Path) -> None:
    data = json_of("show", run)
    with JournalReader.open(run) as reader:
        rows = {row.id: row for row in reader.tasks()}
    assert [task["id"] for task in data["tasks"]] == sorted(rows) and not data["more"]
    for asked, passes in (
        (["--state", "failed,stopped"], lambda row: row.state.value in ("failed", "stopped")),
        (["--finding", "amd"], lambda row: row.task.finding == "AMD"),
        (["--direction", "remove"], lambda row: row.task.direction == "remove"),
    ):
        ids = [task["id"] for task in json_of("show", run, *asked)["tasks"]]
        assert ids and all(passes(rows[task]) for task in ids)
    out = printed("show", run, "--limit", "1")
    assert sorted(rows)[0] in out and sorted(rows)[1] not in out and "and more" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--state", "faild"], "--state 'faild': did you mean 'failed'?"),
        (["--to", "x.html"], "--to: writes one task as a page"),
        (["abc", "--state", "failed"], "--state: filters the list of tasks"),
    ],
)
def test_invalid_filter_gives_one_line(run: Path, asked: list[str], message: str) -> None:
    assert message in refused("show", run, *asked)


@pytest.mark.parametrize("command", ["status", "report"])
def test_tasks_that_failed_or_stopped_are_named(run: Path, command: str) -> None:
    with JournalReader.open(run) as reader:
        names = {
            row.id: row.state.value for row in reader.tasks() if row.state.value in ("failed", "stopped")
        }
    assert set(names.values()) == {"failed", "stopped"}
    out = printed(command, run)
    assert all(f"{task} {state}" in out for task, state in names.items())
    if command == "report":
        page = (run / "report.html").read_text(encoding="utf-8")
        assert all(f"<code>{task}</code>" in page for task in names)
        assert [task["id"] for task in json.loads((run / "report.json").read_text())["unsuccessful"]["tasks"]]


def test_missing_files_of_an_imported_release_are_named_with_their_owner(run: Path, tmp_path: Path) -> None:
    task, imported = id_of(run, "AMD"), tmp_path / "imported"
    words = ["export", str(run), "--to", str(tmp_path / "release"), "--layout", "trajectory"]
    assert main([*words, "--licence", "MIT", "--originals", "none"]) == 0
    assert main(["import", str(tmp_path / "release"), "--run", str(imported)]) == 0
    out = " ".join(printed("show", imported, task).split())
    with JournalReader.open(imported) as reader:
        image = reader.image(reader.task(task).task.image_id)
        assert f"ask the owner of {image.dataset} for image {image.id}" in out
        with pytest.raises(InputError, match="was not in the release that this run was imported from"):
            reader.read_blob(image.prepared_sha256)
    data = json_of("show", imported, task)
    assert image.prepared_sha256 in data["absent"] and image.prepared_sha256 not in data["files"]


@pytest.mark.parametrize("task", ["zzz", ""])
def test_show_of_no_or_many_tasks_gives_one_line(run: Path, task: str) -> None:
    refused("show", run, task)


def test_show_prints_no_control_characters(hostile_run: Path) -> None:
    out = printed("show", hostile_run, id_of(hostile_run, "AMD"))
    assert "\x1b[31m" not in out and "\u202e" not in out and "<script>alert" in out


def test_report_prints_table_one_and_the_path(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # a narrower table breaks its cells
    out = printed("report", run)
    assert (
        "Table 1 (counts tasks)" in out and f"report: {run / 'report.html'}\nnext: plantain view {run}" in out
    )
    assert "rate (judge not validated): success of" in out  # no card validates this judge
    chest = next(line for line in out.splitlines() if line.strip().startswith("Chest X-ray  Add"))
    assert chest.split() == ["Chest", "X-ray", "Add", "4", "2", "1", "1", "67", "%", "9–97", "%", "1.50"]


def test_report_of_a_missing_run_gives_one_line(tmp_path: Path) -> None:
    assert str(tmp_path / "nothing") in refused("report", tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "r.json", "report"])
def test_report_to_another_file_than_html_gives_one_line(run: Path, tmp_path: Path, name: str) -> None:
    assert "--to" in refused("report", run, "--to", tmp_path / name)
    assert list(tmp_path.iterdir()) == []
