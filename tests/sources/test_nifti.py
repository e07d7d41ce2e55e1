from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pixels.test_volume import corner, made, stored, template
from plantain.catalogue.ingest import ingest
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.sources.nifti import NiftiReader
from plantain.sources.registry import SourceOptions
from sources.published import put, scanned

TAXONOMY = load_taxonomy()


@pytest.mark.parametrize(
    ("tilt", "plane", "note"),
    [
        (3.0, "axial", ""),
        (15.0, "axial", "oblique by 15 degrees"),
        (40.0, "unknown", "oblique by 40 degrees"),
    ],
)
def test_oblique_volumes_are_shown_unrotated_with_a_note(
    tmp_path: Path, tilt: float, plane: str, note: str
) -> None:
    put(tmp_path / "notumor/a.nii", stored(corner(), "LPS", 1, 1, tilt))
    (entry, *_) = scanned(NiftiReader(SourceOptions(tmp_path), TAXONOMY))[0].values()
    assert (entry.image.plane, entry.image.note) == (plane, note)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("BraTS_007_seg.nii.gz", "a mask or label map by its name"),
        ("aseg.auto.nii.gz", "a mask or label map by its name"),
        ("T1_pve_1.nii.gz", "a mask or label map by its name"),
        ("mwc1sub-01_T1w.nii", "a mask or label map by its name"),  # SPM's grey matter
        ("c1BraTS_007_flair.nii", "a mask or label map by its name"),  # of the volume in the same folder
        ("c4BraTS_007_flair.nii", "a mask or label map by its name"),
        ("labelsTr/BRATS_001.nii.gz", "a mask or label map by its name"),
        ("scan.hdr", "another format (Analyze"),
        ("lesion.nii.gz", "only 4 different values: a mask or label map"),
    ],
)
def test_masks_next_to_volumes_are_refused(tmp_path: Path, name: str, reason: str) -> None:
    labels = np.zeros((20, 20, 20), np.uint8)
    labels[5:15, 5:15, 5:15], labels[8:12, 8:12, 8:12], labels[9, 9, 9] = 1, 2, 4
    put(tmp_path / "glioma" / name, made(labels, packed=name.endswith("gz")))
    put(tmp_path / "glioma/BraTS_007_flair.nii.gz", made(corner(), packed=True))
    entries, refused, _ = scanned(NiftiReader(SourceOptions(tmp_path), TAXONOMY))
    assert reason in refused[f"glioma/{name}"]
    assert {entry.name for entry in entries.values()} == {"glioma/BraTS_007_flair.nii.gz"}


def test_ingest_keeps_labels_groups_and_counts(tmp_path: Path) -> None:
    root = tmp_path / "brains"
    put(root / "glioma/sub-01/anat/sub-01_T1w.nii.gz", made(corner(), packed=True))
    put(root / "glioma/sub-01/anat/sub-01_T2w.nii", made(corner() // 2 + 1))
    put(root / "notumor/BraTS_007_t1ce.nii.gz", template())
    put(root / "notumor/broken.nii.gz", b"\x1f\x8b no")
    reader = NiftiReader(SourceOptions(root, settings={"slices": "2"}), TAXONOMY)
    entries, refused, _ = scanned(reader)
    assert list(refused) == ["notumor/broken.nii.gz"]
    images = [entry.image for entry in entries.values()]
    assert [(image.sequence, image.contrast, image.labels, image.group) for image in images[::2]] == [
        ("T1", "unknown", ("glioma",), "sub-01"),
        ("T2", "unknown", ("glioma",), "sub-01"),
        ("T1", "yes", ("notumor",), images[4].group),
    ]
    assert images[0].id == "glioma_sub-01_anat_sub-01_T1w_axial_022"  # round(5 + 49 * 0.35)
    with Catalogue.create(tmp_path / "out") as catalogue:
        assert ingest(reader, catalogue).added == 6
        assert catalogue.count_by("plane") == {"axial": 6}
        held = catalogue.get(images[4].id)
        assert held.spacing_mm is not None
        digest = catalogue.digest()
        assert (ingest(reader, catalogue).unchanged, catalogue.digest()) == (6, digest)
        other = NiftiReader(SourceOptions(root, settings={"slices": "2", "plane": "coronal"}), TAXONOMY)
        assert ingest(other, catalogue).added == 6


def test_a_bad_volume_and_a_row_without_a_file_are_refused_in_one_line_each(tmp_path: Path) -> None:
    root = tmp_path / "brains"
    put(root / "small.nii", made(corner()[20:30, 20:30, :]))
    put(root / "sub-01_T1w.nii", made(corner()))
    put(root / "labels.csv", b"file,labels\nsub-01_T1w.nii,glioma\nsub-02_T1w.nii,glioma\n")
    reader = NiftiReader(SourceOptions(root, settings={"slices": "4"}), TAXONOMY)
    reported: list[object] = []
    with Catalogue.create(tmp_path / "out") as catalogue:
        done = ingest(reader, catalogue, on_file=reported.append)
    assert [(refused.name, refused.reason) for refused in done.refused] == [
        ("sub-02_T1w.nii", "the table of labels names it, and no such image is there"),
        ("small.nii", "10x10 pixels; each side must have at least 32"),
    ]
    assert done.added == 4
    assert len(reported) == 9
    assert sum(refused is not None for refused in reported) == 2
    # SPM's tissue maps are shares; a scan that a program has scaled to 0 to 1 cannot be distinguished from them.
    put(tmp_path / "shares/glioma/a.nii", made((corner() / 1000).astype(np.float32)))
    maps = NiftiReader(SourceOptions(tmp_path / "shares", settings={"slices": "3"}), TAXONOMY)
    with Catalogue.create(tmp_path / "maps") as catalogue:
        assert ingest(maps, catalogue).doubtful == {"values from 0 to 1, as in a probability map": 3}
    # If the source is one volume, the others of its table are not reported as missing.
    assert not scanned(NiftiReader(SourceOptions(root / "sub-01_T1w.nii"), TAXONOMY))[1]
