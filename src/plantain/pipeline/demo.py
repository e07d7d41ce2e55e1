"""The demo: real images that installed dependencies contain, a catalogue of them, and a recipe over it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from plantain.catalogue.store import Catalogue
from plantain.findings import load_taxonomy
from plantain.offline.anatomy.maps import CannotShow
from plantain.offline.editor import render_instruction
from plantain.offline.language import Intent, compose
from plantain.pipeline.recipe import Recipe
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Direction, SourceImage, derive_seed
from plantain.sources.samples import sample_images

SEED = 5

FINDINGS = (
    "Pneumothorax",
    "Pleural Effusion",
    "Lung Lesion",
    "Cardiomegaly",
    "Fracture",
    "Pneumonia",
    "glioma",
    "meningioma",
    "AMD",
    "Diabetes",
    "Cataract",
    "Hypertension",
)

RENDERED = (
    # sample image, finding, extent, conspicuity, zone ("" for any): rendered so that there is enough to remove
    ("rg1-chest-pa", "Pleural Effusion", "moderate", "marked", ""),
    ("rg1-chest-pa", "Pneumothorax", "large", "marked", ""),
    ("rg1-chest-pa", "Cardiomegaly", "large", "marked", ""),
    ("rg1-chest-pa", "Pneumonia", "large", "marked", ""),
    ("mni152-t1-axial-z5", "glioma", "moderate", "marked", ""),
    ("mni152-t1-axial-z5", "meningioma", "large", "marked", "convexity"),
    ("mni152-t1-axial-z20", "glioma", "large", "marked", ""),
    ("dipy-t1-coronal", "glioma", "large", "moderate", ""),
    ("mni152-t1-coronal-y-10", "glioma", "large", "marked", ""),
    ("mni152-t1-axial-z40", "meningioma", "large", "marked", "convexity"),
    ("mni152-t1-coronal-y-10", "meningioma", "large", "marked", "falx"),
    ("retina-left", "AMD", "moderate", "marked", ""),
    ("retina-left", "Diabetes", "moderate", "marked", ""),
    ("retina-left", "Cataract", "moderate", "marked", ""),
    ("retina-left", "Hypertension", "moderate", "moderate", ""),
)


RENDERED_NOTE = (
    "shows a finding that plantain rendered: removing it removes our rendering, not a patient's finding"
)


def demo_recipe(folder: Path) -> Recipe:
    """Return the demo's recipe for the catalogue in `folder`: offline models, no check of burned-in text."""
    return Recipe.model_validate(
        {
            "name": "demo",
            "seed": SEED,
            "data": {
                "catalogue": folder / "catalogue",
                "findings": FINDINGS,
                "add_to": "any",
                "check_text": False,  # a third of the time, and the offline editor writes none
            },
            "limits": {"concurrency": 4},
        }
    )


def fill_demo_catalogue(path: Path) -> int:
    """Fill a catalogue with sample images, and with copies on which findings are drawn; return their number.

    A drawn finding is marked `synthetic` and noted, since removing it is easier than removing a real one.
    """
    with Catalogue.create(path) as catalogue:
        real = {image.id: (image, data) for image, data in (one.prepared() for one in sample_images())}
        for image, data in real.values():
            catalogue.add(image, data)
        for image, data in _rendered_images(catalogue, real):
            catalogue.add(image, data)
        return sum(catalogue.count_by("modality").values())


def _rendered_images(
    known: Catalogue, real: Mapping[str, tuple[SourceImage, bytes]]
) -> Iterator[tuple[SourceImage, bytes]]:
    taxonomy = load_taxonomy()
    for image_id, name, extent, conspicuity, zone in RENDERED:
        image, original = real[image_id]
        rendered_id = f"{image.id}+{name.replace(' ', '')}"
        if known.find(rendered_id) is not None:
            continue
        intent = Intent(name, Direction.ADD, None, zone or None, extent, conspicuity)
        instruction = compose(intent, taxonomy.get(image.modality, name))
        seed = derive_seed(SEED, "demo", image.id, name)
        try:
            rendering = render_instruction(decode(original), instruction, image, seed)
        except CannotShow:
            continue
        data = encode_jpeg(rendering.pixels)
        digest = hashlib.sha256(data).hexdigest()
        yield (
            replace(
                image,
                id=rendered_id,
                labels=(name,),
                source_sha256=digest,
                prepared_sha256=digest,
                synthetic=True,
                note=RENDERED_NOTE,
            ),
            data,
        )
