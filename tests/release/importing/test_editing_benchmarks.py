"""Output folders of four public benchmarks, written by hand as their own scripts write and read them.

Sources (GitHub repository, file, commit):
- GEdit-Bench: stepfun-ai/Step1X-Edit, GEdit-Bench/generate_image_example.py, e78b8113; further samples and the table of
  scores: GEdit-Bench/test_gedit_score.py in the PyPI package editscore 0.2.
- ImgEdit: PKU-YuanGroup/ImgEdit, Benchmark/Basic/basic_bench_readme.md, 3760afde, and basic_bench.py, c14480ac.
- MedGEN-Bench: yangjj007/MedGEN-Bench-eval, inference.py and agent.py, 3038ecae, and eval.py, 09a2a43b.
- MieDB-100k: Raiiyf/MieDB-100k, README.md, bd913b4a, and inference/Step1x_test.py, 313aeebf.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fakes.commands import printed
from plantain.journal import JournalReader
from plantain.pixels.decode import decode
from plantain.records import InputError
from plantain.release.export import export_run
from plantain.release.importing.pairs import import_pairs
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release

GEDIT_KEY = "0f385bcff859231789a9c978cafecc2a"


def image(path: Path, shade: int, size: tuple[int, int] = (48, 32)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, shade, shade)).save(path)


def gedit(root: Path) -> Path:
    """`save_dir/MODEL/fullset/TASK/LANGUAGE/KEY.png`, with a second sample and a removal whose edit is square."""
    folder = root / "save_dir" / "editor-a" / "fullset"
    image(folder / f"background_change/en/{GEDIT_KEY}_SRCIMG.png", 10)
    image(folder / f"background_change/en/{GEDIT_KEY}.png", 20)
    image(folder / f"background_change/en/{GEDIT_KEY}_sample1.png", 30)
    image(folder / "subject-remove/cn/ab_SRCIMG.png", 40)
    image(folder / "subject-remove/cn/ab.png", 50, (64, 64))
    return root / "save_dir"


def gedit_scores(root: Path) -> Path:
    """Write the table of the benchmark's scorer: paths as on its author's machine."""
    path = root / "editor-a" / "viescore_gpt-4.1" / "background_change_gpt_score.csv"
    path.parent.mkdir()
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        table = csv.writer(file)
        table.writerow(["source_image", "edited_image", "instruction", "sementics_score", "quality_score"])
        for key in (GEDIT_KEY, "ab"):
            table.writerow([f"/x/{key}_SRCIMG.png", f"/x/{key}.png", f"Instruction of {key}", 7, 8])
    return root


def imgedit(root: Path) -> Path:
    root.mkdir()
    entries = {
        "1082": {"id": "animal/000342021.jpg", "prompt": "Make it smooth.", "edit_type": "adjust"},
        "673": {"id": "style/000278574.jpg", "prompt": "Put a hat on it.", "edit_type": "add"},
    }
    (root / "basic_edit.json").write_text(json.dumps(entries))
    (root / "prompts.json").write_text(json.dumps({"adjust": "a rater's prompt"}))
    (root / "a.json").write_text("{}")
    for shade, (key, entry) in enumerate(entries.items(), 1):
        image(root / "original_images" / entry["id"], shade)
        image(root / "edited_images" / f"{key}.png", 100 + shade)
    image(root / "another-model" / "673.png", 150)
    return root


def miedb(root: Path) -> Path:
    root.mkdir()
    entries = [
        {
            "input_image": "input/7.png",
            "output_image": "output/7_red.png",
            "prompt": "Remove the polyp.",
            "category": "Modification",
        },
        {
            "input_image": "input/8.png",
            "output_image": "output/8.png",
            "prompt": "Sharpen it.",
            "category": "Transformation",
        },
    ]
    (root / "dataBenchmark").mkdir()
    (root / "dataBenchmark" / "metadata.json").write_text(json.dumps(entries))
    for number in (7, 8):
        image(root / f"dataBenchmark/input/{number}.png", number)
    for draw in range(3):
        image(root / f"inference/eval_results/FluxKontext/7_red_{draw}.png", 60 + draw)
    image(root / "inference/eval_results/gpt_image/8_0.png", 90, (64, 64))
    return root


def medgen(root: Path) -> Path:
    root.mkdir()

    def record(number: int, **result: object) -> str:
        known = {
            "sample_id": f"tableiv:ImageEditing:noise-reconstruction:{number:06d}",
            "category": "ImageEdit",
            "modality": "MRI",
            "instruction": "Reconstruct the noise-free image.",
            "input_image": f"images/{number}.png",
            "response": "done",
            "raw_response": "{}",
        }
        return json.dumps({**known, **result}) + "\n"

    image(root / "MedGEN_TableIV/images/1.png", 1)
    image(root / "output_image/edited_000000.png", 2)
    results = root / "inference_jsonl" / "tableiv" / "vlm_editor_edit.jsonl"
    results.parent.mkdir(parents=True)
    failed = {"output_image": "Edit Error: no quota", "error": "no quota"}
    lines = [record(1, output_image="output_image/edited_000000.png"), record(2, **failed)]
    results.write_text("".join(lines))
    # as eval.py copies results
    scored = [record(1, output_image="output_image/edited_000000.png", PSNR=30.1)]
    (results.parents[1] / "vlm_editor_edit_local_metrics.jsonl").write_text("".join(scored))
    # The benchmark's own inputs, and its reference images under the name of a result: neither is an edit.
    (root / "MedGEN_TableIV" / "edit.jsonl").write_text(
        '{"instruction": "x", "input_image": "images/1.png"}\n'
    )
    oracle = record(1, output_image="images/1.png", eval_smoke_fixture=True)
    (root / "MedGEN_TableIV" / "smoke_eval_edit.jsonl").write_text(oracle)
    return root


def edits(run: Path) -> list[tuple[str, str, str, str, str]]:
    """Return (benchmark, model, modality, direction, instruction) of every edit, sorted."""
    with JournalReader.open(run) as reader:
        found = []
        for attempt in reader.all_attempts():
            task = reader.task(attempt.task_id).task
            (score,) = reader.scores(attempt.task_id, attempt.generation)
            shown = reader.image(task.image_id)
            assert shown.prepared_sha256, "every original was found"
            assert task.finding == ""  # no benchmark names one
            model = str(score.detail["model"])
            found.append((shown.dataset, model, task.modality, task.direction.value, attempt.instruction))
    return sorted(found)


def test_gedit_bench_has_its_instructions_in_the_scores(tmp_path):
    summary = import_pairs(gedit_scores(gedit(tmp_path)), tmp_path / "run")
    assert (summary.tasks, summary.resized) == (3, 1)
    first = ("GEdit-Bench", "editor-a", "unknown", "change", f"Instruction of {GEDIT_KEY}")
    removal = ("GEdit-Bench", "editor-a", "unknown", "remove", "Instruction of ab")
    assert edits(tmp_path / "run") == [first, first, removal]


def test_gedit_bench_has_its_instructions_in_the_parquet_files_of_the_data_set(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    root = gedit(tmp_path)
    (root / "data").mkdir()
    columns = {"task_type": ["t"] * 5, "key": [GEDIT_KEY, "ab", "c", "d", "e"], "instruction": list("vwxyz")}
    pq.write_table(pa.table(columns), root / "data" / "train-00000-of-00001.parquet")
    import_pairs(root / "editor-a", tmp_path / "empty", constants={"instruction": "Do it."})
    import_pairs(root, tmp_path / "run")
    assert [row[4] for row in edits(tmp_path / "empty")] == ["Do it."] * 3
    assert [row[4] for row in edits(tmp_path / "run")] == ["v", "v", "w"]


def test_gedit_bench_without_instructions_names_the_remedy(tmp_path):
    with pytest.raises(InputError, match=r"instruction: not in the folder; .* copy those into data/"):
        import_pairs(gedit(tmp_path), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_imgedit(tmp_path):
    import_pairs(imgedit(tmp_path / "imgedit"), tmp_path / "run")
    assert edits(tmp_path / "run") == [
        ("ImgEdit", "", "unknown", "add", "Put a hat on it."),
        ("ImgEdit", "", "unknown", "change", "Make it smooth."),
        ("ImgEdit", "another-model", "unknown", "add", "Put a hat on it."),
    ]
    # Benchmark/UGE/UGE_edit.json, c14480ac
    harder = {"2": {"id": "style/000278574.jpg", "prompt": "Remove it."}}
    (tmp_path / "imgedit/basic_edit.json").write_text(json.dumps(harder))
    image(tmp_path / "imgedit/edited_images/2.png", 7)
    import_pairs(tmp_path / "imgedit", tmp_path / "uge")
    assert edits(tmp_path / "uge") == [("ImgEdit", "", "unknown", "change", "Remove it.")]


def test_miedb_100k_has_several_draws_and_edits_of_another_shape(tmp_path):
    summary = import_pairs(miedb(tmp_path / "miedb"), tmp_path / "run")
    assert (summary.tasks, summary.resized) == (4, 1)
    removal = ("MieDB-100k", "FluxKontext", "unknown", "remove", "Remove the polyp.")
    sharpened = ("MieDB-100k", "gpt_image", "unknown", "change", "Sharpen it.")
    assert edits(tmp_path / "run") == [removal, removal, removal, sharpened]
    with JournalReader.open(tmp_path / "run") as reader:
        (square,) = (a for a in reader.all_attempts() if a.instruction == "Sharpen it.")
        pixels = decode(reader.read_blob(square.edited or ""))
    # 48 x 32 in a frame of 1024: 1024 columns, 683 rows, black above and below; the square edit fills the same area.
    assert pixels.shape == (1024, 1024, 3)
    assert abs(int(np.count_nonzero(pixels[:, 512, 0] > 45)) - 683) <= 2
    assert int(np.count_nonzero(pixels[512, :, 0] > 45)) == 1024


def test_edits_that_neither_add_nor_remove_are_released_in_every_layout(tmp_path):
    import_pairs(miedb(tmp_path / "miedb"), tmp_path / "run", constants={"verdict": "true"})
    export_run(tmp_path / "run", tmp_path / "out", ExportOptions(LAYOUTS))
    assert verify_release(tmp_path / "out", against=tmp_path / "run").problems == ()
    names = {path.parent.parent.name for path in (tmp_path / "out").glob("MieDB-100k-*/*/*.jpeg")}
    assert names == {"MieDB-100k-change", "MieDB-100k-remove"}


def test_medgen_bench_keeps_its_own_modality_and_lists_edits_that_failed(tmp_path):
    summary = import_pairs(medgen(tmp_path / "medgen"), tmp_path / "run")
    words = "Reconstruct the noise-free image."
    assert edits(tmp_path / "run") == [("MedGEN-Bench", "vlm_editor_edit", "MRI", "change", words)]
    assert dict(summary.left_out) == {"edited: none; no quota": 1}


def test_a_benchmark_gets_modality_and_finding_from_set(tmp_path):
    root = miedb(tmp_path / "miedb")
    given = ["--set", "modality=brain_mri", "--set", "finding=glioma"]
    out = printed("import", root, "--run", tmp_path / "run", *given)
    assert "4 edits of 4 rows" in out
    assert "1 edit was resized to the shape of the original" in out
    with JournalReader.open(tmp_path / "run") as reader:
        tasks = [reader.task(a.task_id).task for a in reader.all_attempts()]
    assert {(task.modality, task.finding) for task in tasks} == {("brain_mri", "glioma")}
    out = printed("import", root, "--run", tmp_path / "bare")
    assert "4 edits without a finding: offline/instruments cannot judge them" in out and "rejudge" not in out


def test_a_column_is_refused_for_a_benchmark(tmp_path):
    with pytest.raises(InputError, match="is a benchmark's output folder and has no columns"):
        import_pairs(miedb(tmp_path / "miedb"), tmp_path / "run", columns={"instruction": "prompt"})


def test_a_path_that_leads_out_of_the_folder_is_not_read(tmp_path):
    root = miedb(tmp_path / "miedb")
    image(tmp_path / "secret.png", 1)
    entries = json.loads((root / "dataBenchmark/metadata.json").read_text())
    for entry in entries:
        entry["input_image"] = "../../secret.png"
    (root / "dataBenchmark/metadata.json").write_text(json.dumps(entries))
    with pytest.raises(InputError, match="a link that leads out of"):
        import_pairs(root, tmp_path / "run")
