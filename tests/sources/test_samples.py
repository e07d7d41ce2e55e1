from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from fakes.samples import package_samples
from plantain.findings import load_taxonomy
from plantain.pixels.decode import decode
from plantain.pixels.encode import is_source_form
from plantain.records import InputError, Licence
from plantain.sources.folder import FolderReader
from plantain.sources.registry import Setting, SourceKind, SourceOptions
from plantain.sources.samples import PackageSample, sample_images


@pytest.fixture(scope="module")
def samples() -> tuple[PackageSample, ...]:
    return package_samples()


def test_samples_suffice_for_a_demo(samples: tuple[PackageSample, ...]) -> None:
    assert len(samples) >= 6
    assert {sample.image.modality for sample in samples} == {"chest_xray", "brain_mri", "fundus"}
    assert len({s.image.dataset for s in samples if s.image.modality == "brain_mri"}) >= 2
    assert len({sample.image.id for sample in samples}) == len(samples)
    # Task ids hash (source, frame): no two images may share both.
    assert len({(s.image.source_sha256, s.image.frame) for s in samples}) == len(samples)


def test_samples_state_their_modality_and_source(samples: tuple[PackageSample, ...]) -> None:
    taxonomy = load_taxonomy()
    for sample in samples:
        image = sample.image
        assert image.labels
        for label in image.labels:
            taxonomy.get(image.modality, label)
        assert image.group
        assert image.note
        assert image.licence in (Licence.OPEN, Licence.ATTRIBUTION)
        assert not image.synthetic
        assert sample.pixels.dtype == np.uint8
        if image.modality != "fundus":
            assert np.array_equal(sample.pixels[..., 0], sample.pixels[..., 2])


def test_the_chest_is_not_called_healthy(samples: tuple[PackageSample, ...]) -> None:
    chest = next(s.image for s in samples if s.image.modality == "chest_xray")
    assert chest.labels == ("Lung Lesion",)
    assert "not a healthy chest" in chest.note
    assert (chest.view, chest.projection) == ("frontal", "PA")


def test_the_left_eye_has_its_disc_on_the_left(samples: tuple[PackageSample, ...]) -> None:
    fundus = next(s for s in samples if s.image.modality == "fundus")
    _, column = np.unravel_index(np.argmax(fundus.pixels[:, :, 1]), fundus.pixels.shape[:2])
    assert fundus.image.laterality == "left"
    assert column < fundus.pixels.shape[1] / 3


def test_prepared_samples_are_complete_and_the_same_each_time(samples: tuple[PackageSample, ...]) -> None:
    for sample in samples[:3]:
        image, data = sample.prepared()
        assert is_source_form(data)
        assert decode(data).shape == (1024, 1024, 3)
        assert (image.geometry.width, image.geometry.height) == sample.pixels.shape[1::-1]
        assert sample.prepared() == (image, data)


def test_a_slice_of_one_millimetre_has_its_spacing(samples: tuple[PackageSample, ...]) -> None:
    image, _ = next(s for s in samples if s.image.id == "mni152-t1-axial-z20").prepared()
    # 197x233 pixels of 1 mm; 233 become 1024, so one prepared pixel is 197/866 = 233/1024 = 0.2275 mm.
    assert image.spacing_mm == pytest.approx(0.2275, abs=1e-4)


def test_missing_package_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "dipy" else find(name))
    with pytest.raises(InputError, match="needs the package dipy: in plantain's clone: pip install"):
        sample_images()


def test_a_setting_that_a_kind_does_not_declare_is_refused(tmp_path: Path) -> None:
    """Its reader reads none: declared settings are checked all the same."""
    kind = SourceKind("of the moon", FolderReader, settings={"phase": Setting("full", ("full", "new"))})
    for settings, message in (
        ({"phse": "new"}, "--set phse: moon has no such setting; did you mean 'phase'"),
        ({"phase": "nwe"}, "--set phase=nwe: did you mean 'new'"),
    ):
        options = SourceOptions(tmp_path, "chest_xray", Licence.OPEN, settings=settings)
        with pytest.raises(InputError, match=message):
            kind.reader("moon", options, load_taxonomy())
