"""The demo: real images that arrive with the dependencies, a catalogue of them, and a recipe over it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from plantain.build.recipe import Recipe
from plantain.findings import load_taxonomy
from plantain.models.offline.editor import render_instruction
from plantain.models.offline.language import Intent, compose
from plantain.models.offline.rendering import CannotShow
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Direction, SourceImage, derive_seed
from plantain.sources.catalogue import Catalogue
from plantain.sources.samples import sample_images

SEED = 7

FINDINGS = (
    "Pneumothorax",
    "Pleural Effusion",
    "Lung Lesion",
    "Cardiomegaly",
    "glioma",
    "meningioma",
    "AMD",
    "Diabetes",
    "Cataract",
)

RENDERED = (
    # modality, finding, extent, conspicuity: what we render ourselves, so that there is enough to remove
    ("chest_xray", "Pleural Effusion", "moderate", "marked"),
    ("chest_xray", "Pneumothorax", "large", "marked"),
    ("brain_mri", "glioma", "moderate", "marked"),
    ("brain_mri", "meningioma", "large", "marked"),
    ("fundus", "AMD", "moderate", "marked"),
    ("fundus", "Diabetes", "moderate", "marked"),
    ("fundus", "Cataract", "moderate", "moderate"),
)


def demo_recipe(folder: Path) -> Recipe:
    """The demo's recipe: everything offline, and findings added to any image that does not have them."""
    return Recipe.model_validate(
        {
            "name": "demo",
            "seed": SEED,
            "data": {"catalogue": folder / "catalogue", "findings": FINDINGS, "add_to": "any"},
            "limits": {"concurrency": 4},
        }
    )


def fill_demo_catalogue(path: Path) -> int:
    """Prepares the sample images, and renders some findings on them for the removals; returns the number of images.

    What we rendered is marked `synthetic` and says so in its note: taking it away again is easier than the real thing.
    """
    with Catalogue.create(path) as catalogue:
        for sample in sample_images():
            catalogue.add(*sample.prepared())
        for image, data in _rendered_images():
            catalogue.add(image, data)
        return sum(catalogue.count_by("modality").values())


def _rendered_images() -> Iterator[tuple[SourceImage, bytes]]:
    taxonomy = load_taxonomy()
    real = [sample.prepared() for sample in sample_images()]
    for modality, name, extent, conspicuity in RENDERED:
        finding = taxonomy.get(modality, name)
        for image, original in real:
            if image.modality != modality or name in image.labels:
                continue
            intent = Intent(name, Direction.ADD, extent=extent, conspicuity=conspicuity, softness="soft")
            try:
                rendering = render_instruction(
                    decode(original),
                    compose(intent, finding),
                    image,
                    derive_seed(SEED, "demo", image.id, name),
                )
            except CannotShow:
                continue
            data = encode_jpeg(rendering.pixels)
            labels = tuple(label for label in image.labels if label != taxonomy.normal(modality).name)
            yield (
                replace(
                    image,
                    id=f"{image.id}+{name.replace(' ', '')}",
                    labels=(*labels, name),
                    source_sha256=hashlib.sha256(data).hexdigest(),
                    prepared_sha256=hashlib.sha256(data).hexdigest(),
                    synthetic=True,
                    note=f"{name} rendered by plantain on {image.id}: removing it takes away our own rendering, "
                    "not a patient's finding",
                ),
                data,
            )
            break
