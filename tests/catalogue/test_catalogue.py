from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from PIL import Image

from fakes.samples import package_samples
from plantain.catalogue.ingest import ingest
from plantain.catalogue.near import NEAR, write_near_duplicates
from plantain.catalogue.store import BATCH, NAME, Catalogue
from plantain.findings import load_taxonomy
from plantain.pixels.likeness import LIMIT, distances, likeness
from plantain.records import Geometry, InputError, Licence, SourceImage
from plantain.sources.brain_tumor_mri import BrainTumorReader
from plantain.sources.registry import SourceOptions
from sources.published import digest_of, jpeg, put

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)


def record(number: int, label: str = "Edema", **more: object) -> SourceImage:
    image = SourceImage(
        id=f"i{number:05d}",
        dataset="made",
        modality="chest_xray",
        labels=(label,),
        licence=Licence.OPEN,
        source_sha256=f"{number:064x}",
        prepared_sha256="",
        geometry=Geometry(1, 1, "pad", 0, 0, 1, 1),
    )
    return dataclasses.replace(image, **more)


def test_a_catalogue_returns_the_added_images(tmp_path: Path) -> None:
    with Catalogue.create(tmp_path / "c") as catalogue:
        assert catalogue.add(record(2), b"two")
        assert catalogue.add(record(1, "Fracture", split="train", group="p1"), b"one")
        assert not catalogue.add(record(2), b"two")
        assert catalogue.find("i00001") is not None  # before any commit
    reader = Catalogue.open(tmp_path / "c")
    assert [image.id for image in reader.images()] == ["i00001", "i00002"]
    assert [image.id for image in reader.images(modality="chest_xray", label="Edema")] == ["i00002"]
    assert not list(reader.images(modality="fundus"))
    assert reader.read(reader.get("i00001")) == b"one"
    assert len(reader) == 2
    assert reader.count_by("label") == {"Edema": 1, "Fracture": 1}
    assert reader.count_by("split") == {"": 1, "train": 1}
    assert reader.count_by("group") == {"None": 1, "p1": 1}
    with pytest.raises(InputError, match="no image has the id 'x'"):
        reader.get("x")
    with pytest.raises(ValueError, match="no field 'id; DROP'"):
        reader.count_by("id; DROP")


def test_digest_depends_on_content_not_on_order_or_batches(tmp_path: Path) -> None:
    digests = []
    for name, order in (("a", range(100)), ("b", reversed(range(100)))):
        with Catalogue.create(tmp_path / name) as catalogue:
            for number in order:
                catalogue.add(record(number), b"%d" % number)
                if name == "b" and number % 7 == 0:
                    catalogue.flush()
            digests.append(catalogue.digest())
    assert digests[0] == digests[1]
    with Catalogue.create(tmp_path / "a") as catalogue:
        catalogue.add(record(0), b"0")
        assert catalogue.digest() == digests[0]
        catalogue.add(record(100), b"100")
        assert catalogue.digest() != digests[0]


def test_another_image_under_a_known_id_is_refused(tmp_path: Path) -> None:
    with Catalogue.create(tmp_path / "c") as catalogue:
        catalogue.add(record(1), b"x")
        with pytest.raises(InputError, match="another image or description"):
            catalogue.add(record(1), b"y")
        catalogue.flush()
        with pytest.raises(InputError, match="another image or description"):
            catalogue.add(record(1, "Fracture"), b"x")
        assert len(catalogue) == 1


def test_a_killed_writer_leaves_whole_batches(tmp_path: Path) -> None:
    catalogue = Catalogue.create(tmp_path / "c")
    for number in range(BATCH + 5):
        catalogue.add(record(number), b"%d" % number)
    # Not closed, as after a kill: the last five were never committed; their blobs are there and harmless.
    reader = Catalogue.open(tmp_path / "c")
    assert len(reader) == BATCH == len(list(reader.images()))
    for image in reader.images():
        reader.read(image)
    again = Catalogue.create(tmp_path / "c")
    assert sum(again.add(record(number), b"%d" % number) for number in range(BATCH + 5)) == 5
    again.close()


def test_open_refuses_another_folder_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no catalogue there"):
        Catalogue.open(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="neither an empty folder nor a catalogue"):
        Catalogue.create(tmp_path)
    (tmp_path / NAME).write_text("not a database, but long enough to be looked at as one" * 20)
    for opener in (Catalogue.open, Catalogue.create):
        with pytest.raises(InputError, match="not a catalogue"):
            opener(tmp_path)


def test_a_newer_catalogue_is_refused_not_misread(tmp_path: Path) -> None:
    Catalogue.create(tmp_path / "c").close()
    with sqlite3.connect(tmp_path / "c" / NAME) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'version'")
    for opener in (Catalogue.open, Catalogue.create):
        with pytest.raises(InputError, match="version 99"):
            opener(tmp_path / "c")


TAXONOMY = load_taxonomy()


def again(data: bytes, quality: int = 60, side: int = 300, gain: float = 1.0) -> bytes:
    """Return the same image in other bytes: another size, quality and exposure."""
    image = (
        Image.open(io.BytesIO(data))
        .convert("RGB")
        .resize((side, side))
        .point(lambda v: min(255, int(v * gain)))
    )
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return out.getvalue()


def code(data: bytes) -> np.ndarray:
    return np.frombuffer(likeness(np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))), np.uint8)


@pytest.mark.parametrize("modality", ["chest_xray", "fundus"])
def test_copies_are_near_and_other_images_are_far(modality: str) -> None:
    data = jpeg(modality, 1, grey=modality != "fundus")
    copies = [again(data), again(data, 95, 700), again(data, 90, 512, 1.08)]
    assert max(int(distances(code(data), code(copy)[None])[0]) for copy in copies) <= LIMIT
    samples = [np.frombuffer(likeness(sample.pixels), np.uint8) for sample in package_samples()]
    apart = [int(distances(one, other[None])[0]) for one, other in itertools.combinations(samples, 2)]
    assert min(apart) > 2 * LIMIT


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "brains"
    for number in range(3):
        put(root / f"Training/glioma/a{number}.jpg", jpeg("chest_xray", number))
    put(root / "Testing/notumor/b.jpg", again(jpeg("chest_xray", 1)))
    put(root / "Testing/notumor/c.jpg", again(jpeg("chest_xray", 1), 80, 640))
    return root


def grow(root: Path, out: Path) -> dict[str, str | None]:
    with Catalogue.create(out) as catalogue:
        done = ingest(BrainTumorReader(SourceOptions(root), TAXONOMY), catalogue)
        write_near_duplicates(out / NEAR, done.near)
        return {image.id: image.group for image in catalogue.images()}


def test_near_duplicates_are_listed_and_share_a_group(tree: Path, tmp_path: Path) -> None:
    groups = grow(tree, tmp_path / "out")
    assert groups["a1"] == groups["b"] == groups["c"]
    assert str(groups["b"]).startswith("joined:")
    assert groups["a0"] is groups["a2"] is None
    with (tmp_path / "out" / NEAR).open() as file:
        rows = list(csv.DictReader(file))
    expected = [("a1", "b", "no"), ("a1", "c", "no"), ("b", "c", "no")]
    assert [(row["image"], row["near_duplicate"], row["same_group"]) for row in rows] == expected


def test_a_grown_catalogue_equals_one_made_at_once(tree: Path, tmp_path: Path) -> None:
    late = tree / "Testing/notumor/b.jpg"
    data = late.read_bytes()
    late.unlink()
    grow(tree, tmp_path / "grown")
    put(late, data)
    # now the smallest id of the group
    put(tree / "Training/glioma/a.jpg", again(jpeg("chest_xray", 1), 70, 400))
    assert grow(tree, tmp_path / "grown") == grow(tree, tmp_path / "once")
    assert digest_of(tmp_path / "grown") == digest_of(tmp_path / "once")
    assert (tmp_path / "grown" / NEAR).read_bytes() == (tmp_path / "once" / NEAR).read_bytes()
