"""Images that a benchmark shares with other folders, in any format."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import skimage.data
from PIL import Image

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.leakage import find_leakage
from plantain.bench.benchmark.native_format import BenchmarkWriter
from plantain.bench.benchmark.samples import Sample, plain_image
from plantain.cli import main
from plantain.pixels.encode import prepare
from plantain.records import InputError, Licence

SIZE = (160, 120)


def photo(name: str) -> np.ndarray:
    return cv2.resize(getattr(skimage.data, name)(), SIZE, interpolation=cv2.INTER_AREA)


def encoded(pixels: np.ndarray, form: str, **options: object) -> bytes:
    Image.fromarray(pixels).save(file := io.BytesIO(), form, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Four samples of three originals."""
    out = tmp_path_factory.mktemp("leakage") / "bench"
    with BenchmarkWriter(out, "Mixed") as writer:
        for number, name in enumerate(("astronaut", "astronaut", "coffee", "chelsea")):
            before = photo(name)
            after = before.copy()
            after[40:80, 40 + number : 90] //= 2
            sample = Sample(
                id=str(number),
                organ="Skin",
                task="Remove a mole",
                prompt=f"Remove the mole, number {number}.",
                cluster=name,
                image=replace(plain_image(str(number), SIZE, "mixed"), licence=Licence.OPEN),
                previous=Path("set by the writer"),
                size=SIZE,
            )
            writer.add(sample, before, after, after[..., 0] != before[..., 0])
    return Benchmark.load(out)


def files(folder: Path, shown: dict[str, bytes]) -> None:
    for name, data in shown.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def tars(folder: Path, shown: dict[str, bytes]) -> None:
    folder.mkdir()
    with tarfile.open(folder / "train-000.tar", "w") as archive:
        for name, data in shown.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def parquet(folder: Path, shown: dict[str, bytes]) -> None:
    folder.mkdir()
    mask = encoded(np.eye(8, dtype=np.uint8) * 255, "PNG")
    cells = [{"bytes": data, "path": name} for name, data in shown.items()]
    table = pa.table({"edited": cells, "mask": [{"bytes": mask, "path": "mask.png"}] * len(cells)})
    pq.write_table(table, folder / "train-00000.parquet")


@pytest.mark.parametrize("stored", [files, tars, parquet])
def test_image_is_found_in_another_codec_size_exposure_and_frame(
    stored: object, bench: Benchmark, tmp_path: Path
) -> None:
    astronaut, square = photo("astronaut"), prepare(photo("coffee"))[0]
    brighter = np.clip(astronaut * 1.1 + 6, 0, 255).astype(np.uint8)
    shown = {
        "a.jpg": encoded(cv2.resize(brighter, (333, 250)), "JPEG", quality=70),
        "b/square.png": encoded(square, "PNG"),
        "c.png": encoded(photo("rocket"), "PNG"),
        "d.webp": encoded(photo("immunohistochemistry"), "WEBP"),
    }
    stored(tmp_path / "place", shown)  # type: ignore[operator]
    found = find_leakage(bench, tmp_path / "place")
    assert (found.samples_found, found.clusters_found, found.seen) == (3, 2, 4)
    assert {(pair.cluster, "a.jpg" in pair.other or "row 0" in pair.other) for pair in found.pairs} == {
        ("astronaut", True),
        ("coffee", False),
    }
    assert "2 of 3 originals (3 samples)" in found.line


def test_command_prints_pairs_and_counts(
    bench: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path / "place", {"a.png": encoded(photo("chelsea"), "PNG")})
    command = ["bench", "leakage", str(bench.root), str(tmp_path / "place")]
    assert main([*command, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["samples_found"], found["clusters_found"], found["seen"]) == (1, 1, 1)
    assert {pair["other"] for pair in found["pairs"]} == {"a.png"}
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 of 3 originals (1 sample) are near duplicates of images in place"
    assert lines[1].startswith("  3 (previous): a.png, ")
    assert "out of training" in lines[-1]


def _huge_member(path: Path) -> None:
    member = tarfile.TarInfo("a.png")
    member.size = 1 << 50
    path.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + b"\0" * 2048)


@pytest.mark.parametrize(
    ("name", "made", "message"),
    [
        ("a.parquet", lambda path: path.write_bytes(b"PAR1"), "a.parquet: not a readable Parquet"),
        ("a.txt", lambda path: path.write_text("none"), "place: no images"),
        ("a.tar", _huge_member, "a.tar: 'a.png' claims "),
    ],
)
def test_unreadable_folder_gives_one_line(
    name: str, made: Callable[[Path], object], message: str, bench: Benchmark, tmp_path: Path
) -> None:
    (tmp_path / "place").mkdir()
    made(tmp_path / "place" / name)
    with pytest.raises(InputError) as refused:
        find_leakage(bench, tmp_path / "place")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    with pytest.raises(InputError, match=r"did you mean '.*/place'"):
        find_leakage(bench, tmp_path / "plac")


def test_system_files_are_skipped_and_unread_containers_are_named(
    bench: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """AppleDouble files start with 00051607 (RFC 1740) and are named like the image that they belong to."""
    apple = b"\x00\x05\x16\x07" + bytes(60)
    place = tmp_path / "place"
    files(place, {"rocket.png": encoded(photo("rocket"), "PNG"), "._rocket.png": apple, "notes.md": b"# A"})
    files(place, {"__MACOSX/._b.png": apple, ".cache/huggingface/c.png": b"", "LICENSE": "Müller".encode()})
    files(place, {"cut.png": b"\x89PNG"})
    tars(place / "shards", {"./a.png": encoded(photo("coffee"), "PNG"), "./._a.png": apple, "b.zip": b"PK\0"})
    files(
        place,
        {"rest.zip": b"PK\x03\x04\0", "train/data.arrow": b"ARROW1\0\0", "e.jsonl": b'"' + b"iVBO" * 600},
    )
    assert main(["bench", "leakage", str(bench.root), str(place), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["seen"], found["clusters_found"]) == (2, 1)
    expected = ["cut.png", "e.jsonl", "rest.zip", "shards/train-000.tar/b.zip", "train/data.arrow"]
    assert found["unread"] == expected
    (place / "shards/train-000.tar").unlink()
    assert main(["bench", "leakage", str(bench.root), str(place)]) == 0
    assert capsys.readouterr().out == (
        "no sample is a near duplicate of 1 image in place; not read, so not compared: cut.png, e.jsonl, rest.zip, "
        "train/data.arrow\n"
        f"next: plantain bench generate {bench.root} --run runs/{bench.root.name}\n"
    )
