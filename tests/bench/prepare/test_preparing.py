"""A benchmark from raw pairs: alignment, refusals, descriptions, proposals, and every bad row of the table."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
import skimage.data

from fakes.medebench_tree import sample_image, spot, write_png
from plantain.bench.benchmark.benchmark import Benchmark, choose_region, proposed_regions
from plantain.bench.benchmark.checking import check_benchmark
from plantain.bench.prepare.alignment import align, apply_alignment
from plantain.bench.prepare.pairs import PairRules, prepare_pair, read_raw
from plantain.cli import main
from plantain.pixels.arrays import Pixels
from plantain.privacy.rapid_text import open_reader, why_no_reader
from plantain.records import InputError, Licence

SIZE = (300, 220)
FIELDS = {"organ": "skin", "task": "Remove a mole.", "prompt": "Remove the mole.", "licence": "open"}


def row(name: str, **fields: str) -> dict[str, str]:
    return {"id": name} | FIELDS | fields


def write_table(raw: Path, rows: list[dict[str, str]]) -> None:
    raw.mkdir(parents=True, exist_ok=True)
    with (raw / "pairs.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(column for row in rows for column in row)))
        writer.writeheader()
        writer.writerows(rows)


def write_raw(raw: Path) -> list[dict[str, str]]:
    """A pair from another viewpoint, an exact pair of another size, and one whose halves show different objects."""
    places = {"moved": ("chelsea", 60, 40), "exact": ("coffee", 120, 80), "other": ("ihc", 80, 80)}
    for name, (source, left, top) in places.items():
        clean = sample_image(source, left=left, top=top, size=SIZE)
        marked, _ = spot(clean, (140, 100), 20)
        if name == "moved":
            turn = cv2.getRotationMatrix2D((150, 110), 5.0, 1.05)
            after = cv2.warpAffine(clean, turn, SIZE, flags=cv2.INTER_CUBIC)
            clean = np.clip(np.rint(after * 0.9 + 10.0), 0, 255).astype(np.uint8)
        elif name == "other":
            clean = sample_image("chelsea", left=60, top=40, size=SIZE)
        write_png(raw / "before" / f"{name}.png", marked)
        write_png(raw / "after" / f"{name}.png", clean)
    described = {"modality": "Photograph", "detailed": "The mole was removed.", "key_concept": "the mole"}
    rows = [
        row("moved", patient="Jane Doe", **described),
        row("exact", url="https://example.org/jane-doe.jpg"),
        row("other", task="Remove a stain"),
    ]
    write_table(raw, rows)
    return rows


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("raw")
    write_raw(folder)
    return folder


@pytest.fixture(scope="module")
def made(raw: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "bench"
    assert main(["bench", "prepare", str(raw), "--to", str(out), "--keep", "text"]) == 0
    return out


def test_pairs_are_aligned_and_resized_to_512(made: Path) -> None:
    bench = Benchmark.load(made)
    assert [sample.id for sample in bench.samples] == ["exact", "moved"]
    assert bench.name == "bench"
    exact, moved = bench.samples
    assert exact.size == (512, 375)  # 300 x 220, resized to 512 on the longest side
    assert max(moved.size) == 512
    assert exact.aligned is True
    assert "quality" in moved.notes[0] and moved.notes[0].startswith("aligned: ")
    for sample in bench.samples:
        outside = cv2.dilate(bench.roi(sample).astype(np.uint8), np.ones((31, 31), np.uint8)) == 0
        apart = np.abs(bench.previous(sample).astype(float) - bench.changed(sample))[outside]
        assert apart.mean() < (1.0 if sample.id == "exact" else 14.0)
    assert check_benchmark(made).errors == ()
    header, line = (made / "rejected.csv").read_text().splitlines()
    assert header == "id,reason" and line.startswith("other,")
    assert "alignment quality" in line or "overlap" in line


def test_only_the_owners_words_are_stored_without_names_and_addresses(made: Path) -> None:
    bench = Benchmark.load(made)
    moved, exact = bench.sample("moved"), bench.sample("exact")
    assert (moved.detailed, moved.image.modality) == ("The mole was removed.", "Photograph")
    assert exact.detailed == "", "the table has no description of it"
    assert (moved.organ, moved.task, moved.key_concept) == ("Skin", "Remove a mole", "the mole")
    assert moved.image.licence is Licence.OPEN
    assert not moved.image.text_checked
    for path in (path for path in made.rglob("*") if path.is_file()):
        assert b"Jane" not in path.read_bytes() and b"example.org" not in path.read_bytes()
    assert moved.cluster.startswith("person-") and exact.cluster.startswith("source-")


def test_proposals_cover_the_change_and_wait_for_review(made: Path) -> None:
    bench = Benchmark.load(made)
    for sample in bench.samples:
        proposals = proposed_regions(made, sample.id)
        assert 1 <= len(proposals) <= 3
        assert np.array_equal(bench.roi(sample), proposals[0])
        assert any("not reviewed" in note for note in sample.notes)
    mask = np.zeros((SIZE[1], SIZE[0]), np.uint8)
    cv2.circle(mask, (140, 100), 24, 1, -1)
    expected = cv2.resize(mask, (512, 375), interpolation=cv2.INTER_NEAREST) > 0
    region = bench.roi(bench.sample("exact"))
    assert (region & expected).sum() / (region | expected).sum() > 0.75


def test_rater_chooses_another_region(made: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(made, tmp_path / "b"))
    before = Benchmark.load(out)
    drawn = np.zeros((375, 512), bool)
    drawn[100:200, 150:300] = True
    choose_region(out, "exact", drawn, "rater-1", "drawn")
    after = Benchmark.load(out)
    assert np.array_equal(after.roi(after.sample("exact")), drawn)
    assert "region: chosen by rater-1 (drawn)" in after.sample("exact").notes
    assert not any("not reviewed" in note for note in after.sample("exact").notes)
    assert after.digest != before.digest
    with pytest.raises(InputError, match="must mark a part"):
        choose_region(out, "exact", np.ones((375, 512), bool), "rater-1", "drawn")
    with pytest.raises(InputError, match="no sample 'x'"):
        choose_region(out, "x", drawn, "rater-1", "drawn")


def test_the_same_pairs_make_the_same_bytes(raw: Path, made: Path, tmp_path: Path) -> None:
    out = tmp_path / "bench"
    main(["bench", "prepare", str(raw), "--to", str(out), "--keep", "text"])
    again = {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert again == {p.relative_to(made): p.read_bytes() for p in made.rglob("*") if p.is_file()}


def test_face_is_refused_unless_accepted(tmp_path: Path) -> None:
    for folder in ("before", "after"):
        write_png(tmp_path / folder / "a.png", skimage.data.astronaut()[0:300, 60:400])
    write_table(tmp_path, [row("a")])
    pair = (tmp_path / "before/a.png", tmp_path / "after/a.png")
    assert prepare_pair(*pair, PairRules()) == "the image before shows a face"
    assert not isinstance(prepare_pair(*pair, PairRules(accept_faces=True)), str)


def test_text_that_may_name_a_patient_is_refused_unless_accepted(tmp_path: Path) -> None:
    reader = open_reader()
    if reader is None:
        pytest.skip(why_no_reader())
    clean = sample_image("coffee", left=60, top=40, size=(400, 300))
    named = clean.copy()
    cv2.putText(named, "JOHN SMITH 12.03.1971", (20, 40), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255, 255, 255), 2)
    for folder, pixels in (("before", clean), ("after", named)):
        write_png(tmp_path / folder / "a.png", pixels)
    write_table(tmp_path, [row("a")])
    pair = (tmp_path / "before/a.png", tmp_path / "after/a.png")
    reason = prepare_pair(*pair, PairRules(reader=reader))
    assert isinstance(reason, str)
    assert reason.startswith("the image after contains text that may identify a patient (")
    assert "SMITH" not in reason, "the detected text is not repeated"
    accepted = prepare_pair(*pair, PairRules(reader=reader, accept_text=True))
    assert not isinstance(accepted, str)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; a header row is needed"),
        ("id,organ\na,Skin\n", "columns: task missing"),
        ("id,organ,task,promt\n", "column 'promt' is not known; did you mean 'prompt'?"),
        ("id,organ,task\n../a,Skin,T\n", "line 2: id: '../a'; an id becomes a file name"),
        ("id,organ,task\nmoved,Skin,T\nMOVED,Skin,T\nz,Skin,T\n", "(and 1 more lines)"),
        ("id,organ,task,before\nz,Skin,T,moved.png\n", "needs the true image after each edit"),
    ],
)
def test_bad_table_gives_one_line(raw: Path, tmp_path: Path, text: str, message: str) -> None:
    for folder in ("before", "after"):
        (tmp_path / folder).symlink_to(raw / folder)
    (tmp_path / "pairs.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        read_raw(tmp_path)
    found = str(caught.value)
    assert message in found and "pairs.csv" in found and "\n" not in found


@pytest.mark.parametrize(
    "text",
    [
        "id,organ,task,prompt\nmoved,Skin,Wundhöhle,Close; then wait.\n",
        "id;organ;task;prompt\nmoved;Skin;Wundhöhle;Close; then wait.\n".replace(
            "Close; then wait.", '"Close; then wait."'
        ),
        ",id,organ,task,prompt\n0,moved,Skin,Wundhöhle,Close; then wait.\n",
        "Unnamed: 0,index,id,organ,task,prompt\n0,0,moved,Skin,Wundhöhle,Close; then wait.\n",
        "sep=|\r\nid|organ|task|prompt\r\nmoved|Skin|Wundhöhle|Close; then wait.\r\n",
        "ID\tOrgan\tTask\tPrompt\nmoved\tSkin\tWundhöhle\tClose; then wait.\n",
    ],
)
def test_tables_of_excel_and_pandas_are_read(raw: Path, tmp_path: Path, text: str) -> None:
    for folder in ("before", "after"):
        (tmp_path / folder).symlink_to(raw / folder)
    (tmp_path / "pairs.csv").write_bytes(text.encode("latin-1"))
    (pair,) = read_raw(tmp_path)
    assert (pair.id, pair.organ, pair.task) == ("moved", "Skin", "Wundhöhle")
    assert pair.prompt == "Close; then wait."


def test_the_published_procedures_are_those_of_table_5(capsys: pytest.CaptureFixture[str]) -> None:
    """MedEBench, Table 5: 42 tasks with more than five samples; 70 tasks in all (its introduction)."""
    assert main(["bench", "prepare", "--procedures", "published"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("  ") for line in lines) == 42
    assert lines[-1].startswith("The other 28 tasks have five samples or fewer")
    assert lines[lines.index("Ears") + 1 :][:2] == ["  Reconstruct ear", "  Reconstruct auricle"]
    assert main(["bench", "prepare", "--procedures", "publishd"]) == 2
    assert "did you mean 'published'?" in capsys.readouterr().err


CAT = sample_image("chelsea", left=60, top=40, size=SIZE)
COFFEE = sample_image("coffee", left=120, top=80, size=SIZE)
IHC = sample_image("ihc", left=80, top=80, size=SIZE)


def moved(pixels: Pixels, turn: float, scale: float, dx: float, dy: float) -> tuple[Pixels, np.ndarray]:
    """The image from another viewpoint, in other light, and the transform that was used."""
    matrix = cv2.getRotationMatrix2D((SIZE[0] / 2, SIZE[1] / 2), turn, scale)
    matrix[:, 2] += (dx, dy)
    warped = cv2.warpAffine(pixels, matrix, SIZE, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
    return np.clip(np.rint(warped * 0.85 + 18.0), 0, 255).astype(np.uint8), matrix


def corner_error(found: np.ndarray, used: np.ndarray) -> float:
    """Return the largest distance in pixels of a corner from itself after the used transform and the found one."""
    corners = np.array([[0, 0, 1], [SIZE[0], 0, 1], [0, SIZE[1], 1], [SIZE[0], SIZE[1], 1]], float)
    there = corners @ used.T
    back = np.hstack([there, np.ones((4, 1))]) @ found.T
    return float(np.abs(back - corners[:, :2]).max())


@pytest.mark.parametrize("pixels", [CAT, COFFEE, IHC], ids=["cat", "coffee", "stain"])
def test_known_transform_is_found_despite_light_and_the_edit(pixels: Pixels) -> None:
    marked, _ = spot(pixels, (140, 100), 22)
    after, used = moved(pixels, 6.0, 1.07, 9.0, -6.0)
    found = align(marked, after)
    assert found.refusal == ""
    assert corner_error(found.matrix, used) < 1.5
    assert found.quality > 0.9
    warped, covered = apply_alignment(after, found.matrix, SIZE)
    place = covered & ~spot(pixels, (140, 100), 34)[1]
    assert np.abs(warped.astype(float) - (pixels * 0.85 + 18.0))[place].mean() < 4.0
