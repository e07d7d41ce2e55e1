"""Real images for an audit, from a run, a catalogue, or the packages that plantain depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from plantain.catalogue.store import NAME as CATALOGUE
from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy
from plantain.journal import JournalReader
from plantain.journal.connect import JOURNAL_NAME
from plantain.records import InputError, SourceImage
from plantain.sources.samples import PackageSample, brain_average, sample_images

MOST = 400
"""Most images read from a run or catalogue; more do not separate a judge from chance any better."""


CUTS = (
    *(("axial", 8), ("axial", 23), ("axial", 37), ("axial", 45), ("coronal", -20), ("coronal", 0)),
    *(("axial", -26), ("sagittal", 2), ("coronal", 1), ("axial", -22)),
)
"""Slices of the MNI average, in millimetres; the last four show the sella, for pituitary tumours."""

VIEWS = ((3, 1.1, 0.52, 0.52, 1.08), (-4, 1.14, 0.47, 0.48, 1.0), (1.5, 1.03, 0.5, 0.55, 0.88))
"""Views of a modality's one image: degrees counter-clockwise, zoom, its centre x, y (shares of the frame), gamma."""


@dataclass(frozen=True, slots=True, eq=False)
class AuditImage:
    """An image's record, `image`, and the bytes of its prepared file, `data`, as a catalogue stores them."""

    image: SourceImage
    data: bytes


def cluster_of(image: SourceImage) -> str:
    """Return the key that dependent images share: the patient if known, else the source file's hash."""
    return f"{image.dataset}/{image.group}" if image.group else image.source_sha256 or image.id


def images_in(folder: Path | None, taxonomy: Taxonomy) -> list[AuditImage]:
    """Return the real images of a run or catalogue; for None, the held-out images of installed packages.

    If a modality has images without a finding, only those are returned, so that all findings are drawn ones.

    Raises:
        InputError: the folder is neither a run nor a catalogue, or has no such image.
    """
    if folder is None:
        return package_images()
    if (folder / JOURNAL_NAME).is_file():
        with JournalReader.open(folder) as reader:
            images = [image for image in reader.images() if reader.has_blob(image.prepared_sha256)]
            found = _healthy(images, taxonomy, lambda image: reader.read_blob(image.prepared_sha256))
        if not found:
            raise InputError(f"{folder}: this run has no original images yet; build it first")
        return found
    if (folder / CATALOGUE).is_file():
        with Catalogue.open(folder) as catalogue:
            found = _healthy(catalogue.images(), taxonomy, catalogue.read)
        if not found:
            raise InputError(f"{folder}: this catalogue has no real image")
        return found
    raise InputError(f"{folder}: neither a run nor a catalogue; plantain ingest makes a catalogue of images")


def _healthy(
    images: Iterable[SourceImage], taxonomy: Taxonomy, read: Callable[[SourceImage], bytes]
) -> list[AuditImage]:
    """Return at most `MOST` of the real images, drawn by hash, in the order of their ids."""
    normal = {finding.name for finding in taxonomy.findings if finding.normal}
    real = [image for image in images if not image.synthetic]
    healthy = {image.modality for image in real if set(image.labels) & normal}
    kept = [image for image in real if image.modality not in healthy or set(image.labels) <= normal]
    kept.sort(key=lambda image: hashlib.sha256(image.id.encode()).digest())
    return [AuditImage(image, read(image)) for image in sorted(kept[:MOST], key=lambda image: image.id)]


def package_images() -> list[AuditImage]:
    """Return images made from those in packages that plantain depends on; the offline models were not fitted to them.

    There is only one chest radiograph and one fundus photograph, which are shown with different geometry and tone.

    Raises:
        InputError: a package is not installed.
    """
    found = []
    for sample in sample_images():
        if sample.image.modality != "brain_mri":
            found += [_viewed(sample, number, view) for number, view in enumerate(VIEWS)]
        elif sample.image.dataset == "dipy":
            found.append(AuditImage(*sample.prepared()))
    return found + [AuditImage(*sample.prepared()) for sample in brain_average(CUTS)]


def _viewed(sample: PackageSample, number: int, view: tuple[float, float, float, float, float]) -> AuditImage:
    degrees, zoom, x, y, gamma = view
    height, width = sample.pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D((x * width, y * height), degrees, zoom)
    turned = cv2.warpAffine(sample.pixels, matrix, (width, height), flags=cv2.INTER_LINEAR)
    toned = np.rint(255.0 * (turned / 255.0) ** gamma).astype(np.uint8)
    image = replace(sample.image, id=f"{sample.image.id}-view{number}", spacing_mm=None)
    return AuditImage(*replace(sample, image=image, pixels=toned).prepared())
