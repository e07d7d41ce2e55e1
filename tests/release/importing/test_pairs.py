"""Published sets of edits as runs, from every kind of table, and judged again under the id of their own rows."""

from __future__ import annotations

import base64
import csv
import json
import os
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fakes.commands import json_of, plantain, printed, refused
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pixels.decode import decode
from plantain.pixels.encode import marked
from plantain.records import InputError, TaskState
from plantain.release.importing.pair_rows import TableRules, rows_of
from plantain.release.importing.pairs import import_pairs
from plantain.report.terminal import UNJUDGED, table_one

COLUMNS = ("id", "original", "edited", "prompt", "finding", "verdict")
ROWS = [
    dict(zip(COLUMNS, row, strict=True))
    for row in (
        ("a1", "o/1.png", "e/1.png", "Add drusen.", "AMD", "true"),
        ("a2", "o/1.png", "e/2.png", "Add haze.", "cataract", "no"),
        ("a3", "o/2.png", "e/3.png", "", "Their own", ""),
    )
]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two originals of 60 x 40 pixels and an edit of each, of half the size."""
    root = tmp_path_factory.mktemp("pairs")
    rng = np.random.default_rng(1)
    for folder in ("o", "e"):
        (root / folder).mkdir()
    for name in ("o/1", "o/2", "e/3"):
        Image.fromarray(rng.integers(0, 255, (40, 60, 3), np.uint8)).save(root / f"{name}.png")
    # which no judge accepts
    for name, size, colour in (("e/1", (30, 20), "white"), ("e/2", (60, 40), "black")):
        Image.new("RGB", size, colour).save(root / f"{name}.png")
    return root


def rows(**more: str) -> list[dict[str, str]]:
    return [{**row, "modality": "fundus", "direction": "add", **more} for row in ROWS]


def table(root: Path, name: str, records: list[dict[str, str]]) -> Path:
    path = root / name
    if path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in records))
    else:
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        def embedded(row: dict[str, str], key: str) -> dict[str, object]:
            return {"bytes": (root / row[key]).read_bytes(), "path": row[key]}

        embedded_rows = [
            {**row, **{key: embedded(row, key) for key in ("original", "edited")}} for row in records
        ]
        pq.write_table(pa.Table.from_pylist(embedded_rows), path)
    return path


def test_an_original_with_a_synthetic_mark_is_recorded_as_synthetic(pairs, tmp_path):
    (tmp_path / "o").mkdir()
    for name in ("1", "2"):
        data = (pairs / f"o/{name}.png").read_bytes()
        (tmp_path / f"o/{name}.png").write_bytes(marked(data) if name == "2" else data)
    shutil.copytree(pairs / "e", tmp_path / "e")
    import_pairs(table(tmp_path, "edits.csv", rows()), tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        assert sorted((image.id[:1], image.synthetic) for image in reader.images()) == [
            ("1", False),
            ("2", True),
        ]


def test_an_edit_of_our_size_is_turned_upright(pairs, tmp_path):
    """EXIF 2.32, 4.6.4: orientation 3 is upside down; every other reader of the run ignores it."""
    exif = Image.Exif()
    exif[0x0112] = 3
    shutil.copytree(pairs, tmp_path, dirs_exist_ok=True)
    levels = np.linspace(0, 255, 1024).astype(np.uint8)
    Image.fromarray(np.tile(levels[:, None], (1, 1024))).save(tmp_path / "o/1.png")
    Image.fromarray(np.tile(levels[::-1, None], (1, 1024))).save(tmp_path / "e/1.png", "JPEG", exif=exif)
    import_pairs(table(tmp_path, "edits.csv", rows()[:1]), tmp_path / "run")
    with JournalReader.open(tmp_path / "run") as reader:
        (attempt,) = reader.attempts(next(iter(reader.tasks())).id)
        pixels = decode(reader.read_blob(attempt.edited))
    assert np.abs(pixels[..., 0] - levels[:, None].astype(int)).max() <= 3


@pytest.mark.parametrize("name", ["edits.csv", "edits.jsonl", "edits.parquet"])
def test_a_table_becomes_a_run_whose_labels_are_published(pairs, tmp_path, name):
    done = import_pairs(table(pairs, name, rows()), tmp_path / "run")
    assert (done.rows, done.tasks, done.without_original) == (3, 3, 0)
    assert done.published == {"success": 1, "failed": 1, "none": 1}
    with JournalReader.open(tmp_path / "run") as reader:
        seen = {}
        for row in reader.tasks():
            (score,), (attempt,) = reader.scores(row.id), reader.attempts(row.id)
            seen[score.detail["id"]] = (row.task.finding, row.state, score.score.value, attempt.instruction)
            assert attempt.verdict is None and reader.has_blob(attempt.edited or "")
        images = list(reader.images())
    assert seen == {
        "a1": ("AMD", TaskState.SUCCESS, 1.0, "Add drusen."),
        "a2": ("Cataract", TaskState.FAILED, 0.0, "Add haze."),
        "a3": ("Their own", TaskState.STOPPED, None, "Add Their own."),
    }
    # Two originals, whatever the number of rows; padded to a square as an ingest would: 60 x 40 leaves 1024 x 683.
    assert {(i.geometry.inner_width, i.geometry.inner_height, i.licence.value) for i in images} == {
        (1024, 683, "unknown")
    }
    assert len(images) == 2
    caption = str(table_one(tmp_path / "run").caption)
    assert UNJUDGED.split()[0] in caption and "rate (as published)" in caption


def test_judges_answer_under_the_ids_of_the_rows_and_flip_against_the_published_verdict(pairs, tmp_path):
    from plantain.offline.workers import close_workers

    run = tmp_path / "run"
    edits = table(pairs, "e.csv", rows(accepted="yes"))
    out = printed("import", edits, "--run", run)
    assert "columns not used: accepted; to use one: --column ROLE=accepted; roles: original, edited," in out
    assert "1 edit of the unknown finding 'Their own'" in out
    decides = f"plantain judge rejudge {run} --judge offline/instruments --decisive"
    assert f"next: {decides}" in out
    for page in ("report", "status"):
        assert f"1 edit has no verdict yet; judge with: {decides}" in printed(page, run)
    try:
        assert f"to let these decide: {decides}" in printed(*decides.split()[1:-1])
        got = json_of("judge", "rejudge", run, "--judge", "offline/instruments")
    finally:
        close_workers()
    (judge,) = got["judges"]
    # The instruments measure nothing of a finding that is none of ours.
    expected = ("offline/instruments", 2, 1, 0)
    assert (judge["judge"], judge["judged"], sum(judge["unjudged"].values()), judge["qualified"]) == expected
    assert set(judge["criteria"]["realism"]) == {"n", "rate", "low", "high"}
    wanted = [("a1", False), ("a2", False), ("a3", None)]
    assert [(row["id"], row["qualified"]) for row in sorted(got["rows"], key=lambda row: row["id"])] == wanted
    whole = got["flips"][0]
    assert (whole["second"], whole["n"], whole["second_only"], whole["neither"]) == ("published", 2, 1, 1)
    assert [example["id"] for example in whole["examples"]] == ["a1"]
    page = (run / "rejudged.html").read_text()
    assert "no card" in page and "data:image/jpeg" in page


def test_one_unknown_finding_of_all_rows_is_imported_again_as_the_nearest(pairs, tmp_path):
    unknown = {"finding": "Cataracts", "verdict": "", "tool": "labnet-v2"}
    edits = table(pairs, "unknown.csv", [{**row, **unknown} for row in rows()])
    shown = printed("import", edits, "--run", tmp_path / "run")
    again = f"plantain import {edits} --run {tmp_path / 'run-2'} --set finding=Cataract"
    assert shown.endswith(f"next: {again}\n") and "cannot judge them" in shown
    assert "columns not used: tool; to use one: --column ROLE=tool; roles: original," in shown
    assert "rejudge" in printed(*again.split()[1:])


def test_a_cell_that_pandas_reads_as_missing_is_empty(tmp_path):
    head, cells = (
        "original,edited,prompt,finding,modality,direction,patient_id",
        "a.png,b.png,NaN,AMD,fundus,add,",
    )
    (tmp_path / "t.csv").write_text(f"{head}\n{cells}7.0\n{cells}NULL\n")
    found = list(rows_of(tmp_path / "t.csv", TableRules({}, {}, None, []))[1])
    assert [(row.instruction, row.group) for row in found] == [("", "7"), ("", "")]


def test_rejected_rows_are_counted_with_their_reason(pairs, tmp_path):
    spoilt = [
        *rows(),
        *rows()[:1],
        {**rows()[0], "id": "b", "edited": "../secret.png"},
        {**rows()[0], "id": "c", "edited": "e/none.png"},
        {**rows()[0], "id": "d", "direction": "sideways"},
        {**rows()[0], "id": "f", "verdict": "perhaps"},
        {**rows()[0], "id": "g", "modality": "funduss"},
        {**rows()[0], "id": "h", "finding": "Cataract", "prompt": " "},
        {**rows()[0], "id": "i", "finding": "MH", "modality": "brain_mri"},
    ]
    (pairs.parent / "secret.png").write_bytes((pairs / rows()[0]["edited"]).read_bytes())
    done = import_pairs(table(pairs, "spoilt.jsonl", spoilt), tmp_path / "run")
    assert (done.rows, done.tasks, sum(done.left_out.values())) == (11, 4, 7)
    assert done.without_instruction == 2  # a3 and h
    listed = list(csv.DictReader((tmp_path / "run" / "rejected.csv").open(newline="")))
    assert [row["row"] for row in listed] == ["4", "5", "6", "7", "8", "9", "11"]
    assert done.rejected == tmp_path / "run" / "rejected.csv"
    reasons = " ".join(done.left_out)
    for word in (
        "the same original, edit and finding as row 1",
        "leads out",
        "no such file",
        "add, remove or change",
        "verdict: 'perhaps'",
        "did you mean 'fundus'",
        "modality: brain_mri, but row 1 states fundus of the same original",
    ):
        assert word in reasons
    assert [row["id"] for row in listed] == ["a1", "b", "c", "d", "f", "g", "i"]
    assert listed[2]["reason"] == "edited: e/none.png: no such file"  # as the table names it


def test_a_refused_licence_names_the_option_that_allows_it(pairs, tmp_path):
    command = ["import", table(pairs, "edits.csv", rows()), "--run"]
    export = ["export", "--to", tmp_path / "release", "--licence", "CC-BY-4.0"]
    printed(*command, tmp_path / "run")
    assert "import them again with --set licence=open" in refused(*export, tmp_path / "run")
    printed(*command, tmp_path / "open", "--set", "licence=open")
    assert "licence of the edits of pairs is missing: pass --licence" in refused(
        *export[:3], tmp_path / "open"
    )
    printed(*export, tmp_path / "open")
    closed = table(pairs, "closed.csv", rows(licence="credentialed"))  # a licence that rows state is kept
    text = printed(
        "import", closed, "--run", tmp_path / "closed", "--set", "licence=open", "--set", "finding=MH"
    )
    assert "columns not used: finding" in text
    again = ["export", "--to", tmp_path / "again", "--licence", "CC-BY-4.0", tmp_path / "closed"]
    assert "credentialed" in refused(*again)


@pytest.mark.parametrize(
    ("change", "options", "complaint"),
    [
        ({}, {"columns": {"instructoin": "prompt"}}, "did you mean 'instruction'"),
        (
            {},
            {"columns": {"patient": "p"}},
            "--column patient: not a role of --column; choose one of original, edi",
        ),
        ({}, {"constants": {"edited": "e/1.png"}}, "--set edited: not a role of --set;"),
        (
            {"direction": "up"},
            {},
            "no row could be imported; row 2: direction: 'up': add, remove or change; all 3",
        ),
    ],
)
def test_a_refused_table_leaves_only_the_list_of_rejected_rows(pairs, tmp_path, change, options, complaint):
    with pytest.raises(InputError, match=complaint):
        import_pairs(table(pairs, "wrong.csv", rows(**change)), tmp_path / "run", **options)
    assert [path.name for path in tmp_path.iterdir()] == (["run.rejected.csv"] if change else [])


def test_a_missing_column_is_named_and_originals_are_joined_by_name(pairs, tmp_path):
    bare = [
        {k: v for k, v in row.items() if k != "original"} | {"id": n}
        for row, n in zip(rows(), "121", strict=True)
    ]
    path = table(pairs, "bare.csv", bare)
    with pytest.raises(InputError, match="no column for the original"):
        import_pairs(path, tmp_path / "no")
    done = import_pairs(path, tmp_path / "run", originals=pairs / "o")
    assert (done.tasks, done.without_original) == (3, 0)


@pytest.mark.parametrize(
    ("cell", "taken"),
    [
        ("e/2.png", ""),
        (".\\\\e\\\\2.png", ""),
        ({"path": "e/2.png", "bytes": None}, ""),
        ({"bytes": "B64", "path": None}, ""),
        ("data:image/png;base64,B64", ""),
        (None, "edited: is empty"),
        (float("nan"), "edited: is empty"),
        ("", "edited: is empty"),
        (["e/1.png", "e/2.png"], "edited: a list of 2; expected the name of a file"),
        ({"src": "e/2.png", "height": 40}, "edited: an object with src, height; expected the name of a file"),
        ({"bytes": "no"}, "edited: bytes that are not base64"),
        ({"bytes": [137, 80]}, "edited: bytes that are not base64"),
        (
            "https://a.example/2.png",
            "edited: a web address; download the image and give the name of its file",
        ),
        ("b'" + "x" * 2008, "edited: 2010 characters; expected the name of a file"),
        ("\ud800.png", "edited: has half of a surrogate pair, which is not a character"),
        (7, "edited: 7: no such file"),
    ],
)
def test_a_json_cell_without_an_image_rejects_only_its_row(pairs, tmp_path, cell, taken):
    """Forms in which pandas, `datasets`, its viewer and JavaScript write an image into JSON."""
    data = (pairs / "e" / "2.png").read_bytes()
    text = json.dumps([{**rows()[1], "edited": cell}, {**rows()[2], "verdict": float("nan")}])
    text = text.replace("B64", base64.b64encode(data).decode())
    lines = "\n".join(json.dumps(row) for row in json.loads(text))
    (pairs / "cells.jsonl").write_text(f"\ufeff{lines}\n{{broken\n", encoding="utf-8")
    done = import_pairs(pairs / "cells.jsonl", tmp_path / "run")
    listed = list(csv.reader((tmp_path / "run" / "rejected.csv").open(newline="")))[1:]
    assert done.published["none"] == 1 and done.tasks == 2 - bool(taken)
    assert [row[0] for row in listed] == (["1", "3"] if taken else ["3"])
    if taken:
        assert taken in listed[0][2]


def test_direction_comes_from_the_instruction_and_one_error_names_all_missing_columns(pairs, tmp_path):
    (pairs / "bare.csv").write_text(
        'before;after;prompt;license\no/1.png;e/1.png;"Add drusen; then stop.";CC-BY-4.0\n'
        "o/1.png;e/2.png;Please remove the haze.;cc0-1.0\no/2.png;e/3.png;Brighten it.;\n"
    )
    command = ["import", str(pairs / "bare.csv"), "--run", str(tmp_path / "run")]
    asked = plantain(*command)
    assert asked.returncode == 2
    line = "no column for the finding, modality; name each with --column finding=NAME, or one value"
    assert line in asked.stderr
    out = printed(*command, "--set", "modality=OCT")  # none of ours, so without a finding
    assert "2 edits of 3 rows" in out and "direction inferred from the instruction: 1 add, 1 remove" in out
    assert f"left out 1 row; each with its reason: {tmp_path / 'run' / 'rejected.csv'}" in out
    with JournalReader.open(tmp_path / "run") as reader:
        seen = {(row.task.modality, row.task.finding, row.task.direction.value) for row in reader.tasks()}
    assert seen == {("OCT", "", "add"), ("OCT", "", "remove")}


def test_a_published_tree_is_joined_to_its_originals_by_their_ids(pairs, tmp_path, capsys):
    tree = tmp_path / "tree" / "Fundus-edit" / "AMD"
    tree.mkdir(parents=True)
    for name in ("1-AMD-edit", "9-AMD-edit"):
        Image.open(pairs / "e" / "2.png").save(tree / f"{name}.jpeg")
    command = ["import", tmp_path / "tree", "--run", tmp_path / "run", "--originals", pairs / "o"]
    advised = refused(*command).rpartition(": plantain ")[2]
    assert main([*shlex.split(advised), "--json"]) == 0  # the line that was advised
    done = json.loads(capsys.readouterr().out)
    assert (done["tasks"], done["without_original"], done["published"]["success"]) == (2, 1, 2)


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl", "metadata.parquet"])
def test_a_link_out_of_the_folder_and_a_pipe_are_refused_as_tables(pairs, tmp_path, name):
    outside = table(pairs, "outside" + Path(name).suffix, rows())
    linked, piped = tmp_path / "linked", tmp_path / "piped"
    for folder in (linked, piped):
        folder.mkdir()
    (linked / name).symlink_to(outside)
    os.mkfifo(piped / name)
    for folder, complaint in ((linked, "a link that leads out of"), (piped, "not a regular file")):
        with pytest.raises(InputError, match=complaint):
            import_pairs(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()
