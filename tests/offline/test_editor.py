"""The procedural editor from file bytes to file bytes, on the real sample images, for every finding that it renders."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from fakes.samples import prepared_samples
from plantain.findings import load_taxonomy
from plantain.offline import editor
from plantain.offline.brain import RENDERERS as BRAIN
from plantain.offline.chest import RENDERERS as CHEST
from plantain.offline.editor import ProceduralEditor, edit_encoded, render_instruction
from plantain.offline.fundus import RENDERERS as FUNDUS
from plantain.offline.language import Intent, compose
from plantain.offline.rendering import FindingRenderer, Rendering, Scene
from plantain.offline.workers import close_workers
from plantain.pixels.blend import dilate
from plantain.pixels.decode import decode, decode_mask
from plantain.pixels.encode import encode_jpeg, is_normal_form, normalise
from plantain.records import Direction, Outcome, OutcomeKind, SourceImage
from plantain.roles import EditedImage, EditRequest, EncodedImage
from plantain.sources.samples import brain_average

SEED = 11

IMAGES = {
    "chest_xray": "rg1-chest-pa",
    "brain_mri": "mni152-t1-axial-z20",
    "fundus": "retina-left",
}

WITH_SELLA = "mni152-t1-axial-z-22"

FINDINGS = [
    (modality, name)
    for modality, renderers in (("chest_xray", CHEST), ("brain_mri", BRAIN), ("fundus", FUNDUS))
    for name in renderers
]


@pytest.fixture(scope="module")
def prepared() -> dict[str, tuple[SourceImage, bytes]]:
    below = (sample.prepared() for sample in brain_average([("axial", -22)]))
    return {image.id: (image, data) for image, data in (*prepared_samples(), *below)}


def instruct(modality: str, name: str, direction: Direction = Direction.ADD) -> str:
    intent = Intent(name, direction, extent="moderate", conspicuity="marked", softness="soft")
    return compose(intent, load_taxonomy().get(modality, name))


@pytest.mark.parametrize(("modality", "name"), FINDINGS)
def test_edit_leaves_everything_else_as_the_encoder_leaves_it(
    modality: str, name: str, prepared: dict[str, tuple[SourceImage, bytes]]
) -> None:
    image, data = prepared[WITH_SELLA if name == "pituitary" else IMAGES[modality]]
    edited = edit_encoded(data, instruct(modality, name), image, SEED)
    assert not isinstance(edited, Outcome), edited
    assert is_normal_form(edited.image.data) and normalise(edited.image.data) == edited.image.data
    assert edited.mask is not None
    after, before = decode(edited.image.data), decode(encode_jpeg(decode(data)))
    assert (after != before).any(), "nothing was drawn"
    outside = ~dilate(decode_mask(edited.mask.data), 20)
    difference = np.abs(after.astype(np.int16) - before)[outside]
    assert difference.size == 0 or difference.max() <= 1
    assert edited.support in ("local", "diffuse", "warp")


@pytest.mark.parametrize(("modality", "name"), [("chest_xray", "Pleural Effusion"), ("fundus", "AMD")])
def test_edit_is_the_same_in_a_worker_process(
    modality: str, name: str, prepared: dict[str, tuple[SourceImage, bytes]]
) -> None:
    image, data = prepared[IMAGES[modality]]
    request = EditRequest(image, EncodedImage(data, "image/jpeg"), instruct(modality, name), SEED)
    try:
        reply = asyncio.run(ProceduralEditor().edit(request))
    finally:
        close_workers()
    here = edit_encoded(data, request.instruction, image, SEED)
    assert isinstance(here, EditedImage) and reply.value == here


@pytest.mark.parametrize("support", ["local", "warp"])
def test_a_removal_goes_another_length_in_every_round(
    support: str, prepared: dict[str, tuple[SourceImage, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removal that takes 40 grey levels off a square; what each round makes of it by hand."""
    image, data = prepared[IMAGES["fundus"]]
    original = np.full_like(decode(data), 100)

    def remove(scene: Scene) -> Rendering:
        pixels = scene.pixels.copy()
        pixels[100:200, 100:200] -= 40
        return Rendering(pixels, np.any(pixels != scene.pixels, axis=2), support, "taken away")

    monkeypatch.setattr(editor, "_renderers", lambda modality: {"AMD": FindingRenderer(remove, remove)})
    words = instruct("fundus", "AMD", Direction.REMOVE)
    made = [render_instruction(original, words, image, SEED, number).pixels for number in range(1, 6)]
    assert np.array_equal(made[0], render_instruction(original, words, image, SEED).pixels)
    lengths = (1, 1.1, 0.92, 1.2, 0.84) if support == "local" else (1, 0.95, 0.9, 0.85, 0.8)
    assert [int(one[150, 150, 0]) for one in made] == [round(100 - 40 * length) for length in lengths]
    assert all((one[:100] == 100).all() and (one[200:] == 100).all() for one in made)
    drawn = render_instruction(original, instruct("fundus", "AMD"), image, SEED, 4).pixels
    assert int(drawn[150, 150, 0]) == 60  # what is drawn hangs on the seed, which each round has its own of


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ("Make it look nicer.", "names no finding"),
        ("Add a small drusen cluster at the macula.", "names no finding"),
        ("", "names no finding"),
    ],
)
def test_instruction_that_asks_for_nothing_known_is_not_applicable(
    instruction: str, why: str, prepared: dict[str, tuple[SourceImage, bytes]]
) -> None:
    image, data = prepared["rg1-chest-pa"]
    outcome = edit_encoded(data, instruction, image, SEED)
    assert (
        isinstance(outcome, Outcome) and outcome.kind is OutcomeKind.NOT_APPLICABLE and why in outcome.reason
    )
