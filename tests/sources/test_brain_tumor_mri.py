from __future__ import annotations

import csv
from pathlib import Path

import cv2
import numpy as np
import pytest

from fakes.samples import head_in_profile
from plantain.catalogue.ingest import ingest
from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.pixels.decode import decode
from plantain.records import InputError
from plantain.sources.brain_slice import estimate_slice
from plantain.sources.brain_tumor_mri import BrainTumorReader
from plantain.sources.registry import SourceOptions
from sources.published import jpeg, put, scanned

TAXONOMY = load_taxonomy()
WORDS = {"glioma": "gl", "meningioma": "me", "notumor": "no", "pituitary": "pi"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Write both splits, all four labels, both shapes of name; one grey and one colour image each."""
    seed = 0
    for split, short in (("Training", "Tr"), ("Testing", "Te")):
        for label, word in WORDS.items():
            for name in (f"{short}-{word}Tr_0000.jpg", f"{short}-{word}_0010.jpg"):
                put(tmp_path / split / label / name, jpeg("brain_mri", seed, grey=seed % 2 == 0))
                seed += 1
    return tmp_path


def read(root: Path, **settings: str) -> BrainTumorReader:
    return BrainTumorReader(SourceOptions(root, settings=settings), TAXONOMY)


def test_label_comes_from_the_folder_and_split_from_the_source(tree: Path) -> None:
    # The file name states glioma, the folder notumor.
    put(tree / "Testing/notumor/Te-gl_0099.jpg", jpeg("brain_mri", 99))
    entries, refused, _ = scanned(read(tree))
    assert not refused
    assert len(entries) == 17
    assert entries["Te-gl_0099"].image.labels == ("notumor",)
    assert entries["Tr-piTr_0000"].image.labels == ("pituitary",)
    assert {key: entry.image.split for key, entry in entries.items()}["Te-me_0010"] == "test"


def test_the_split_is_not_called_a_patient_split(tree: Path) -> None:
    for entry in scanned(read(tree))[0].values():
        assert entry.image.group is None
        assert "no patient ids" in entry.image.note
        assert (entry.image.sequence, entry.image.contrast) == ("unknown", "unknown")


def test_an_image_under_two_labels_is_refused(tree: Path) -> None:
    both = jpeg("brain_mri", 200)
    put(tree / "Testing/glioma/x.jpg", both)
    put(tree / "Training/notumor/y.jpg", both)
    put(tree / "Training/pituitary/again.jpg", (tree / "Testing/pituitary/Te-pi_0010.jpg").read_bytes())
    entries, refused, _ = scanned(read(tree))
    two = "the same image has the labels glioma and notumor"
    assert refused == {
        "Testing/glioma/x.jpg": two,
        "Training/notumor/y.jpg": two,
        "Training/pituitary/again.jpg": "the same image as Testing/pituitary/Te-pi_0010.jpg",
    }
    assert {"x", "y"}.isdisjoint(entries)
    assert entries["Te-pi_0010"].image.split == "test"  # one label twice is one image, in one split


def test_the_archive_as_kaggle_packs_it(tree: Path, tmp_path: Path) -> None:
    """One more level, Mac and Windows litter, the merged collections' own names, capitals, another image format."""
    root = tmp_path / "archive (1)"
    (root / "Brain Tumor MRI").mkdir(parents=True)
    for split in ("Training", "Testing"):
        (tree / split).rename(root / "Brain Tumor MRI" / split)
    put(root / "__MACOSX/Training/glioma/._Tr-gl_0010.jpg", b"x")
    put(root / "Brain Tumor MRI/Training/glioma/Thumbs.db", b"x")
    top = root / "Brain Tumor MRI/Training"
    (top / "meningioma").rename(top / "Meningioma_Tumor")
    put(top / "no_tumor/Tr-noTr_0009.JPG", jpeg("brain_mri", 300))
    put(top / "glioma tumour/Tr-aug-gl_1.png", jpeg("brain_mri", 301))
    entries, refused, _ = scanned(read(root))
    assert not refused
    assert len(entries) == 18
    assert entries["Tr-me_0010"].image.labels == ("meningioma",)
    assert entries["Tr-noTr_0009"].image.labels == ("notumor",)
    assert entries["Tr-aug-gl_1"].image.labels == ("glioma",)


def test_ingest_estimates_plane_and_sequence_and_states_it(tree: Path, tmp_path: Path) -> None:
    sagittal = np.minimum(head_in_profile(), 255).astype(np.uint8)  # T1
    cv2.imwrite(str(tree / "Training/notumor/profile.png"), sagittal)
    with Catalogue.create(tmp_path / "out") as catalogue:
        assert ingest(read(tree), catalogue).added == 17
        assert catalogue.count_by("label") == {**dict.fromkeys(WORDS, 4), "notumor": 5}
        assert catalogue.count_by("split") == {"test": 8, "train": 9}
        images = list(catalogue.images())
    estimated = {image.id: image for image in images if image.plane != "unknown"}
    # All others are copies of a slice without its skull, for which nothing is estimated.
    assert {key: image.plane for key, image in estimated.items()} == {"profile": "sagittal"}
    assert estimated["profile"].sequence in ("T1", "unknown")
    assert "plane estimated" in estimated["profile"].note
    # The face and the sella under it are in the middle of that image.
    assert {image.view for image in images} == {"unknown"}


def high_in_the_head(cleft: int = 60) -> np.ndarray:
    """Return an axial slice above the ventricles: scalp, skull and a brain with a cleft, uint8 (256, 256, 3)."""
    level = np.zeros((256, 256), np.uint8)
    for axes, grey in (((100, 120), 200), ((92, 112), 15), ((86, 106), 110)):
        cv2.ellipse(level, (128, 128), axes, 0, 0, 360, grey, -1)
    cv2.line(level, (128, 28), (128, 228), cleft, 2)
    return np.repeat(cv2.GaussianBlur(level, (0, 0), 1.5)[:, :, None], 3, axis=2)


def test_a_slice_above_the_sella_is_recognised_unless_a_label_or_setting_decides(tree: Path) -> None:
    for label, cleft in (("notumor", 60), ("pituitary", 70)):
        cv2.imwrite(str(tree / f"Training/{label}/high-{label}.png"), high_in_the_head(cleft))
    described = {}
    for settings in ({}, {"view": "sella"}):
        for key, entry in scanned(read(tree, **settings))[0].items():
            if key.startswith("high"):
                described[key, *settings.values()] = entry.describe(entry.image, high_in_the_head())
    assert {key: image.view for key, image in described.items()} == {
        ("high-notumor",): "without sella",
        ("high-pituitary",): "unknown",
        ("high-notumor", "sella"): "sella",
        ("high-pituitary", "sella"): "sella",
    }
    assert "view estimated from the image, confidence" in described[("high-notumor",)].note


def test_settings_state_facts_that_the_source_does_not(tree: Path) -> None:
    entries, _, _ = scanned(read(tree, plane="coronal", sequence="T1", contrast="yes"))
    image = entries["Tr-gl_0010"].image
    assert (image.plane, image.sequence, image.contrast) == ("coronal", "T1", "yes")
    with pytest.raises(InputError, match="--set sequence=T3"):
        read(tree, sequence="T3")


SHARED = Path(__file__).parents[2] / "../shared/data/brain-tumor-mri/Training"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared slices are not here")
def test_slices_read_by_eye_after_the_rules_were_fitted_are_recognised() -> None:
    table = Path(__file__).with_name("slices_by_eye.csv")
    answered = right = off = wrong = 0
    for row in csv.DictReader(table.open()):
        seems = estimate_slice(decode((SHARED / row["file"]).read_bytes()))
        for estimate, truth in ((seems.plane, row["plane"]), (seems.sequence, row["sequence"])):
            answered += estimate != "unknown" and truth != "unsure"
            right += estimate == truth
        off += seems.view == "without sella" and row["sella"] == "no"
        wrong += seems.view == "without sella" and row["sella"] == "yes"
    # Two of 120 were wrong when the table was made; a rule that guesses has a third.
    assert answered >= 110
    assert right >= 0.95 * answered
    # 52 of 58 without a sella, and three of the 30 with one, where an addition that could be drawn is not planned.
    assert off >= 50
    assert wrong <= 3
