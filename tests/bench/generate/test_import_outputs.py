"""Importing outputs made elsewhere: files found, and files refused before the import starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.small_bench import Brightener, by, made, small_bench
from plantain.bench.benchmark.native_format import encode_png
from plantain.bench.generate.output_files import MAX_FILE_BYTES, export_outputs, find_outputs, outputs_at
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun
from plantain.pixels.decode import decode
from plantain.records import InputError

IDS = ["1", "2_b", "2"]


def put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        (folder / name).write_bytes(encode_png(np.full((8, 8, 3), number, np.uint8)))
    return folder


def test_tree_gives_one_arm_for_each_model(tmp_path: Path) -> None:
    put(tmp_path / "good", "1_0.png", "1_1.png", "2_b_0.png")
    put(tmp_path / "other model", "2_0.jpg", "99_0.png")
    (tmp_path / "notes.txt").write_text("about these")
    (tmp_path / "empty").mkdir()
    good, other = find_outputs(tmp_path, "", IDS)
    assert (good.label, other.label) == ("outputs/good", "outputs/other model")
    assert sorted(good.files) == [("1", 0), ("1", 1), ("2_b", 0)]
    assert len(good.arm.grid) == 2
    assert other.strangers == ("99_0.png",)


def test_unsafe_file_is_refused_in_one_line_with_its_name(tmp_path: Path) -> None:
    secret = put(tmp_path / "secret", "x.png") / "x.png"
    cases: dict[str, tuple[str, object]] = {
        "link": ("a link", lambda path: path.symlink_to(secret)),
        "folder": ("no plain file", lambda path: path.mkdir()),
        "large": ("MiB; at most 64 MiB", lambda path: path.open("wb").truncate(MAX_FILE_BYTES + 1)),
    }
    for name, (found, make) in cases.items():
        folder = put(tmp_path / name / "model", "1_0.png")
        make(folder / "2_0.png")  # type: ignore[operator]
        with pytest.raises(InputError) as caught:
            find_outputs(tmp_path / name, "", IDS)
        assert found in str(caught.value) and "2_0.png" in str(caught.value) and "\n" not in str(caught.value)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "model").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="a link; links are not followed"):
        find_outputs(tmp_path / "here", "", IDS)


def test_single_output_per_sample_needs_no_number(tmp_path: Path) -> None:
    (one,) = find_outputs(put(tmp_path / "mine", "1.png", "2_b.png", "2_0.png"), "", IDS)
    assert sorted(one.files) == [("1", 0), ("2", 0), ("2_b", 0)]
    put(tmp_path, "1_0.png")
    with pytest.raises(InputError, match="contains images and folders"):
        find_outputs(tmp_path, "", IDS)
    with pytest.raises(InputError, match="no such folder"):
        find_outputs(tmp_path / "nowhere", "", IDS)


def test_exported_outputs_are_imported_with_equal_pixels(tmp_path: Path) -> None:
    benchmark, run, editor = small_bench(tmp_path / "bench", 3), tmp_path / "run", Brightener()
    made(benchmark, run, by(editor, seeds=2))
    with BenchRun.open(run) as bench:
        assert export_outputs(bench, tmp_path / "files") == 12 + 6
        before = [decode(bench.read(one)) for one in bench.outputs(editor.name)]
    folder = tmp_path / "files" / "offline__brightener"
    assert sorted(path.name for path in folder.iterdir()) == [f"{i}_{k}.png" for i in "123" for k in "01"]
    assert "compositeSynthetic" in Image.open(folder / "1_0.png").text["XML:com.adobe.xmp"]
    assert "XML:com.adobe.xmp" not in Image.open(tmp_path / "files" / "copy-input" / "1_0.png").text
    other = tmp_path / "other"
    ids = [sample.id for sample in benchmark.samples]
    made(benchmark, other, ArmRequest(outputs=outputs_at([f"{folder}=Theirs"], ids)))
    with BenchRun.open(other) as bench:
        after = [decode(bench.read(one)) for one in bench.outputs("outputs/Theirs")]
    assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))


def test_missing_outputs_can_be_added_later_and_changed_ones_are_refused(tmp_path: Path) -> None:
    benchmark, run = small_bench(tmp_path / "bench", 3), tmp_path / "run"
    folder = tmp_path / "theirs"
    folder.mkdir()
    ids = [sample.id for sample in benchmark.samples]
    for sample in benchmark.samples[:2]:
        (folder / f"{sample.id}_0.png").write_bytes(encode_png(benchmark.changed(sample)))
    (folder / "2_0.png").write_bytes(b"\xff\xd8\xff no picture")

    def imported() -> list[str]:
        made(benchmark, run, ArmRequest(outputs=outputs_at([str(folder)], ids)))
        with BenchRun.open(run) as bench:
            return [one.reason.partition(" (")[0] for one in bench.outputs("outputs/theirs")]

    (folder / "2_0.png").rename(folder / "2_0.jpg")
    first = imported()
    assert first[0] == ""
    assert first[1].startswith("malformed: edited image: ")
    assert first[2] == "no_image: missing: no file for this sample"
    (folder / "3_0.png").write_bytes(encode_png(benchmark.changed(benchmark.samples[2])))
    assert imported() == [*first[:2], ""]
    (folder / "1_0.png").write_bytes(encode_png(benchmark.previous(benchmark.samples[0])))
    with pytest.raises(InputError, match=r"1_0\.png: not the file that .* imported before as outputs/theirs"):
        imported()
    (folder / "1_0.png").unlink()
    assert imported() == [*first[:2], ""]  # imported outputs are kept
