from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fakes.samples import package_samples
from plantain.catalogue.ingest import ingest
from plantain.catalogue.near import NEAR, write_near_duplicates
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.pixels.likeness import LIMIT, distances, likeness
from plantain.sources.brain_tumor_mri import BrainTumorReader
from plantain.sources.registry import SourceOptions
from sources.published import digest_of, jpeg, put

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
    assert digest_of(tmp_path / "grown") == digest_of(tmp_path / "once")
    assert (tmp_path / "grown" / NEAR).read_bytes() == (tmp_path / "once" / NEAR).read_bytes()
