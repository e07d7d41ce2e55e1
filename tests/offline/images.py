"""Real images for the tests of the offline models: samples of the packages, and slices that show the sella."""

from __future__ import annotations

from functools import cache

from fakes.samples import package_samples
from plantain.findings import load_taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode
from plantain.records import Finding, SourceImage
from plantain.sources.samples import brain_average

TAXONOMY = load_taxonomy()
TARGETS = tuple(f for m in TAXONOMY.modalities for f in TAXONOMY.targets(m, optional=True))
IMAGES = {"chest_xray": "rg1-chest-pa", "brain_mri": "mni152-t1-axial-z20", "fundus": "retina-left"}
SIDE = 512
WITH_SELLA = "mni152-t1-axial-z-22"


@cache
def prepared() -> dict[str, tuple[SourceImage, bytes]]:
    """Return every image by its id, prepared at half of a catalogue's size: a quarter of the time."""
    samples = (*package_samples(), *brain_average([("axial", -22)]))
    return {image.id: (image, data) for image, data in (sample.prepared(SIDE) for sample in samples)}


def image_for(finding: Finding) -> tuple[SourceImage, Pixels]:
    """Return an image on which the finding can be drawn."""
    image, data = prepared()[WITH_SELLA if finding.name == "pituitary" else IMAGES[finding.modality]]
    return image, decode(data)
