from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fakes.samples import package_samples
from plantain.catalogue.groups import Groups
from plantain.catalogue.ingest import ingest
from plantain.catalogue.near import NEAR, join_near_duplicates, write_near_duplicates
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.pixels.likeness import LIMIT, close_pairs, distances, likeness
from plantain.sources.brain_tumor_mri import BrainTumorReader
from plantain.sources.entries import SourceOptions
from sources.published import jpeg, put

TAXONOMY = load_taxonomy()


def again(data: bytes, quality: int = 60, side: int = 300, gain: float = 1.0) -> bytes:
    """The same picture in other bytes: another size, quality and exposure."""
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
def test_copies_are_near_and_others_are_far(modality: str) -> None:
    data = jpeg(modality, 1, grey=modality != "fundus")
    copies = [again(data), again(data, 95, 700), again(data, 90, 512, 1.08)]
    assert max(int(distances(code(data), code(copy)[None])[0]) for copy in copies) <= LIMIT
    samples = [np.frombuffer(likeness(sample.pixels), np.uint8) for sample in package_samples()]
    apart = [int(distances(one, other[None])[0]) for one, other in itertools.combinations(samples, 2)]
    assert min(apart) > 2 * LIMIT


def test_every_close_pair_is_found_once() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 256, (300, 32), dtype=np.uint8)
    for at in range(0, 300, 3):  # a copy with up to 20 of 256 bits turned over
        bits = np.unpackbits(codes[at])
        bits[rng.choice(256, rng.integers(0, 21), replace=False)] ^= 1
        codes[at + 1] = np.packbits(bits)
    wanted = {
        (one, other, int(distances(codes[one], codes[other : other + 1])[0]))
        for one, other in itertools.combinations(range(300), 2)
    }
    wanted = {pair for pair in wanted if pair[2] <= LIMIT}
    found = [(min(a, b), max(a, b), bits) for a, b, bits in close_pairs(codes)]
    assert len(found) == len(set(found))
    assert set(found) == wanted
    assert len(wanted) > 50
    with pytest.raises(ValueError, match="at most 15"):
        list(close_pairs(codes, 16))


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


def test_near_duplicates_are_told_and_share_a_group(tree: Path, tmp_path: Path) -> None:
    groups = grow(tree, tmp_path / "out")
    assert groups["a1"] == groups["b"] == groups["c"]
    assert str(groups["b"]).startswith("joined:")
    assert groups["a0"] is groups["a2"] is None
    with (tmp_path / "out" / NEAR).open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["image"], row["near_duplicate"], row["same_group"]) for row in rows] == [
        ("a1", "b", "no"),
        ("a1", "c", "no"),
        ("b", "c", "no"),
    ]


def test_a_catalogue_that_grew_is_the_one_made_at_once(tree: Path, tmp_path: Path) -> None:
    late = tree / "Testing/notumor/b.jpg"
    data = late.read_bytes()
    late.unlink()
    grow(tree, tmp_path / "grown")
    put(late, data)
    put(
        tree / "Training/glioma/a.jpg", again(jpeg("chest_xray", 1), 70, 400)
    )  # now the smallest id of the group
    assert grow(tree, tmp_path / "grown") == grow(tree, tmp_path / "once")
    digests = []
    for name in ("grown", "once"):
        with Catalogue.open(tmp_path / name) as catalogue:
            digests.append(catalogue.digest())
    assert digests[0] == digests[1]
    assert (tmp_path / "grown" / NEAR).read_bytes() == (tmp_path / "once" / NEAR).read_bytes()


def test_a_thousand_copies_are_a_thousand_lines(tmp_path: Path) -> None:
    """Each copy with the first, one look-alike of them, and a few copies of another picture in every pair."""
    from catalogue.test_catalogue import record

    rng = np.random.default_rng(1)
    blank, like, other = rng.integers(0, 256, (3, 32), dtype=np.uint8)
    like = blank.copy()
    like[0] ^= 1
    with Catalogue.create(tmp_path / "c") as catalogue:
        for number in range(1000):
            catalogue.add(record(number), b"%d" % number, blank.tobytes())
        catalogue.add(record(1000), b"like", like.tobytes())
        for number in range(1001, 1004):
            catalogue.add(record(number), b"%d" % number, other.tobytes())
        catalogue.flush()
        pairs = join_near_duplicates(catalogue)
        assert len(pairs) == 999 + 1 + 3
        assert {pair.one for pair in pairs if pair.other < "i01001"} == {"i00000"}
        assert len(catalogue.count_by("group")) == 2
        assert {image.group for image in catalogue.images()} == {i.group for i in catalogue.images()} - {None}


def test_no_split_parts_near_duplicates_of_two_datasets(tree: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    grow(tree, tmp_path / "out")
    with Catalogue.open(tmp_path / "out") as catalogue:
        images = [replace(i, dataset=i.id) for i in catalogue.images() if i.group]
    groups = Groups(images)
    assert groups.count(images) == 1
