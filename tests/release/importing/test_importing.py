"""Importing restores everything that a release states; the rest stays unknown."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fakes.commands import printed, refused
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.records import InputError, Licence, TaskState
from plantain.release.export import export_run
from plantain.release.importing.importing import import_release
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions
from plantain.report.page import gather
from plantain.review.web.run_view import RunView
from release.runs import edited_image, make_run, tree

SAMPLES = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "med-banana-samples"


def again(release: Path, layouts: tuple[str, ...], scratch: Path, approved: str = "") -> Path:
    import_release(release, scratch / "imported")
    out = scratch / "again"
    export_run(
        scratch / "imported",
        out,
        ExportOptions(layouts, shard_bytes=60_000, redistribution_approved=approved),
    )
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_layout_comes_back_identical(layout: str, little_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_run(little_run, out, ExportOptions((layout,), shard_bytes=60_000, licences=("CC-BY-4.0",)))
    assert tree(again(out, (layout,), tmp_path)) == tree(out)


def test_pseudonyms_are_not_changed_again(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", images=4, licence=Licence.CREDENTIALED)
    options = ExportOptions(("parquet",), redistribution_approved="DUA 7", shard_bytes=60_000)
    export_run(run, tmp_path / "out", options)
    with pytest.raises(InputError, match="--redistribution-approved"):
        again(tmp_path / "out", ("parquet",), tmp_path)
    shutil.rmtree(tmp_path / "imported")
    assert tree(again(tmp_path / "out", ("parquet",), tmp_path, "DUA 7")) == tree(tmp_path / "out")


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the published samples are not here")
def test_published_samples_come_back_byte_for_byte(tmp_path: Path) -> None:
    summary = import_release(SAMPLES, tmp_path / "run")
    # counted with find: 42 JPEG files, each a success
    assert (summary.kind, summary.tasks, summary.images, summary.missing) == ("med-banana", 42, 42, 0)
    export_run(tmp_path / "run", tmp_path / "out", ExportOptions(("med-banana",)))
    ours = {name: digest for name, digest in tree(tmp_path / "out").items() if name.endswith(".jpeg")}
    assert ours == {name: digest for name, digest in tree(SAMPLES).items() if name.endswith(".jpeg")}
    with JournalReader.open(tmp_path / "run") as reader:
        for attempt in reader.all_attempts():
            assert (attempt.instruction, attempt.verdict, attempt.round) == ("", None, 0)
        for image in reader.images():
            assert (image.source_sha256, image.licence, image.labels) == ("", Licence.UNKNOWN, ())


def published(root: Path) -> Path:
    """Write a tree as the paper's section 5.1 shows it: one success in round 2, its failure, and one failed task."""
    names = (
        "Fundus-edit/AMD/0_left-AMD-edit.jpeg",
        "Fundus-edit-failed/AMD/0_left-AMD-edit-failed-1.jpeg",
        "Fundus-edit-failed/Glaucoma/1_left-Glaucoma-edit-failed-1.jpeg",
        "Chest-remove/normal/s50000028-Lung_Lesion-remove.jpeg",
    )
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(edited_image(number))
    flags = {"has_disease": True, "structure_reasonable": True, "looks_realistic": False, "qualified": False}
    entry = {
        "image_id": "0_left",
        "dataset": "Fundus",
        "modality": "fundus",
        "disease": "AMD",
        "task": "add",
        "rounds": [
            {"round": 1, "instruction": "Add drusen.", "verdict": {**flags, "reason": "hard rim"}},
            {"round": 2, "instruction": "Add softer drusen.", "verdict": {**flags, "qualified": True}},
        ],
        "outcome": "success",
        "success_round": 2,
        "output_path": names[0],
    }
    (root / "Fundus-edit" / "all_conversations.json").write_text(json.dumps([entry]))
    removed = {
        "image": "s50000028.jpg",
        "disease": "lung lesion",
        "rounds": [{"round": 1}],
        "status": "success",
    }
    chest = root / "Chest-remove" / "all_conversations.json"  # keyed, as the scripts write it
    chest.write_text(json.dumps({"s50000028-lung lesion": removed}))
    return root


def test_the_form_of_the_paper_is_read_and_nothing_is_invented(tmp_path: Path) -> None:
    import_release(published(tmp_path / "tree"), tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        rows = {(row.task.image_id, row.task.finding): row for row in reader.tasks()}
        assert {key: (row.state, row.round) for key, row in rows.items()} == {
            ("0_left", "AMD"): (TaskState.SUCCESS, 2),
            ("1_left", "Glaucoma"): (TaskState.FAILED, 1),
            ("s50000028", "Lung Lesion"): (TaskState.SUCCESS, 1),
        }
        first, second = reader.attempts(rows["0_left", "AMD"].id)
        assert (first.instruction, second.instruction) == ("Add drusen.", "Add softer drusen.")
        # three booleans are no verdict of four criteria: kept as text, not completed
        assert first.verdict is None
        assert first.judge_outcome is not None and "hard rim" in first.judge_outcome.reason
        assert rows["s50000028", "Lung Lesion"].task.modality == "chest_xray"
    export_run(tmp_path / "run", tmp_path / "out", ExportOptions(("med-banana", "preference")))
    ours = {name: digest for name, digest in tree(tmp_path / "out").items() if name.endswith(".jpeg")}
    assert ours == {name: d for name, d in tree(tmp_path / "tree").items() if name.endswith(".jpeg")}
    assert list((tmp_path / "out").glob("data/preference/*.parquet"))


def test_published_verdicts_survive_import_and_are_exported_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The form of the paper's section 5.2: three booleans, `qualified` and a reason for each round."""
    import_release(published(tmp_path / "tree"), tmp_path / "run")
    rounds = json.loads((tmp_path / "tree/Fundus-edit/all_conversations.json").read_text())[0]["rounds"]
    with JournalReader.open(tmp_path / "run") as reader:
        task = next(row.id for row in reader.tasks() if row.task.image_id == "0_left")
        judged = gather(reader).judged
        seen = RunView(tmp_path / "run").task(task).rounds[0]
    # Two attempts have a verdict, one of them qualified; our own judges gave none.
    assert {name: (yes, n) for name, yes, n in judged.published} == {
        "qualified": (1, 2),
        "has_disease": (2, 2),
        "structure_reasonable": (2, 2),
        "looks_realistic": (0, 2),
    }
    assert judged.judged == 0 and ("published verdict only", 2) in judged.unjudged
    assert [(one.verdict.judge, one.verdict.qualified) for one in seen.judges] == [("published", False)]
    assert seen.judges[0].verdict.observations.facts == {"has_disease": True}
    shown = printed("show", tmp_path / "run", task)
    assert "by published" in shown and "hard rim" in shown
    assert main(["show", str(tmp_path / "run"), task, "--json"]) == 0
    assert [
        {name: value for name, value in one.items() if name not in ("generation", "round")}
        for one in json.loads(capsys.readouterr().out)["published"]
    ] == [one["verdict"] for one in rounds]
    assert main(["show", str(tmp_path / "run"), task, "--to", str(tmp_path / "t.html")]) == 0
    assert (
        "hard rim" in (tmp_path / "t.html").read_text()
        and "under way" not in (tmp_path / "t.html").read_text()
    )
    export_run(tmp_path / "run", tmp_path / "out", ExportOptions(("med-banana",)))
    again = json.loads((tmp_path / "out/Fundus-edit/all_conversations.json").read_text())
    (entry,) = [
        one for one in (again.values() if isinstance(again, dict) else again) if one["image_id"] == "0_left"
    ]
    for before, after in zip(rounds, entry["rounds"], strict=True):
        assert before["verdict"].items() <= after["verdict"].items()


def break_record(root: Path) -> str:
    path = root / "trajectories" / "trajectories.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"state":"', b'"state":"very ')
    path.write_bytes(b"".join(lines))
    return "line 2: state"


def break_table(root: Path) -> str:
    path = next(root.glob("data/success/*.parquet"))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path.name


@pytest.mark.parametrize("spoil", [break_record, break_table])
def test_a_broken_release_is_refused_and_makes_no_run(release: Path, tmp_path: Path, spoil) -> None:  # type: ignore[no-untyped-def]
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    named = spoil(copy)
    assert named in refused("import", copy, "--run", tmp_path / "run")
    assert {path.name for path in tmp_path.iterdir()} == {"copy"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[{"disease": "AMD", "image": "0_left"}', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('[{"disease": "\\ud800"}]', "not JSON"),
        ("[7]", "entry 0: expected an object with a disease"),
        ('"AMD"', "expected an object or a list of tasks"),
    ],
)
def test_conversations_without_entries_are_refused(text: str, fault: str, tmp_path: Path) -> None:
    root = published(tmp_path / "tree")
    (root / "Fundus-edit" / "all_conversations.json").write_text(text)
    with pytest.raises(InputError, match=fault) as raised:
        import_release(root, tmp_path / "run")
    assert "all_conversations.json" in str(raised.value) and "\n" not in str(raised.value)


def test_import_into_a_run_is_refused(release: Path, small_run: Path) -> None:
    before = tree(small_run)
    with pytest.raises(InputError, match="not an empty folder"):
        import_release(release, small_run)
    assert tree(small_run) == before


def test_imported_run_can_be_reported_and_shown(release: Path, tmp_path: Path) -> None:
    """Its source images, and here half of its edits, are missing: the page states it instead of failing."""
    copy = tmp_path / "copy"
    shutil.copytree(release / "trajectories", copy / "trajectories")
    shutil.copy(release / "run.json", copy)
    shutil.copytree(release / "data" / "failed", copy / "data" / "failed")
    summary = import_release(copy, tmp_path / "run")
    assert summary.missing > 0 and summary.images > 0
    assert main(["report", str(tmp_path / "run")]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Not in the imported release" in page
    assert page.count("data:image/jpeg") > 0
    with JournalReader.open(tmp_path / "run") as reader:
        first = next(reader.tasks()).id
    assert main(["show", str(tmp_path / "run"), first]) == 0
