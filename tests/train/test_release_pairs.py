"""Examples read from a release: their clusters, and those that must not be trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fakes.requests import source_image
from plantain.catalogue.store import Catalogue
from plantain.records import InputError, SourceImage
from plantain.train.releases import ReleasePreferences, StoredOriginals

DATA = b"no training looks at these bytes"


def image(name: str, **changes: object) -> tuple[SourceImage, bytes]:
    data, own = (
        DATA + name.encode(),
        {"id": name, "source_sha256": hashlib.sha256(name.encode()).hexdigest()},
    )
    prepared = hashlib.sha256(data).hexdigest()
    return source_image(**{"modality": "fundus", **own, "prepared_sha256": prepared, **changes}), data


def release(folder: Path, images: Sequence[tuple[SourceImage, bytes]], splits: Sequence[str]) -> Path:
    """A release with one task for each image, and only those tables that a list of examples needs."""
    with Catalogue.create(folder / "catalogue") as catalogue:
        for one, data in images:
            catalogue.add(one, data)
    rows = [
        {
            "task_id": f"{number:020x}",
            "outcome": "success",
            "record": orjson.dumps(
                {"direction": "remove", "finding": "AMD", "split": split, "image": one}
            ).decode(),
        }
        for number, ((one, _), split) in enumerate(zip(images, splits, strict=True))
    ]
    (folder / "release" / "data" / "preference").mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "release" / "data" / "preference" / "0.parquet")
    return folder / "release"


def test_examples_of_one_image_are_one_cluster(tmp_path: Path) -> None:
    # No source named a patient: an image, two findings drawn on it, another slice of its file; an unrelated image.
    eye = image("eye")
    drawn = [image(f"eye+{name}", synthetic=True) for name in ("AMD", "Glaucoma")]
    slice_ = image("slice", source_sha256=eye[0].source_sha256, frame=3)
    made = release(tmp_path, [eye, *drawn, slice_, image("stranger")], [""] * 5)
    listed = ReleasePreferences(made, StoredOriginals(tmp_path / "catalogue")).listed()
    assert len({example.cluster for example in listed[:4]}) == 1
    assert listed[4].cluster != listed[0].cluster
    assert not any(example.reserved or example.final for example in listed)


def test_a_release_s_own_splits_are_kept(tmp_path: Path) -> None:
    made = release(tmp_path, [image(name) for name in "abc"], ["train", "validation", "test"])
    listed = ReleasePreferences(made, StoredOriginals(tmp_path / "catalogue")).listed()
    expected = [(False, False), (True, False), (True, True)]
    assert [(example.reserved, example.final) for example in listed] == expected


def test_record_in_another_format_is_refused(tmp_path: Path) -> None:
    made = release(tmp_path, [image("a")], [""])
    table = pq.read_table(made / "data/preference/0.parquet").to_pylist()
    table[0]["record"] = '{"direction": "add", "finding": "AMD", "split": "", "image": {"id": 3}}'
    pq.write_table(pa.Table.from_pylist(table), made / "data/preference/0.parquet")
    with pytest.raises(InputError, match="not plantain's"):
        ReleasePreferences(made, StoredOriginals(tmp_path / "catalogue")).listed()
