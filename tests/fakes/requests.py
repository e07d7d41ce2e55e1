"""Requests as the loop would make them, for tests of adapters."""

from __future__ import annotations

import numpy as np

from plantain.findings import load_taxonomy
from plantain.pixels.encode import encode_source
from plantain.records import Attempt, Direction, EditTask, Geometry, Licence, SourceImage
from plantain.roles import EditRequest, EncodedImage, JudgeRequest, WriteRequest
from plantain.rubrics import MED_BANANA, MEDEBENCH


def original(side: int = 1024) -> EncodedImage:
    """A prepared image with some structure."""
    ramp = np.linspace(10, 220, side, dtype=np.float32)
    plane = ((ramp[None, :] + ramp[:, None]) / 2).astype(np.uint8)
    return EncodedImage(encode_source(np.stack([plane] * 3, axis=2)), "image/jpeg")


def source_image(**changes: object) -> SourceImage:
    fields: dict[str, object] = {
        "id": "patient-7-film-3",
        "dataset": "hospital-x",
        "modality": "chest_xray",
        "labels": ("No Finding",),
        "licence": Licence.OPEN,
        "source_sha256": "0" * 64,
        "prepared_sha256": "1" * 64,
        "geometry": Geometry(1024, 1024, "pad", 0, 0, 1024, 1024),
        "view": "frontal",
        "projection": "PA",
    }
    return SourceImage(**{**fields, **changes})  # type: ignore[arg-type]


def write_request(
    history: tuple[Attempt, ...] = (), direction: Direction = Direction.ADD, image: SourceImage | None = None
) -> WriteRequest:
    finding = load_taxonomy().get("chest_xray", "Pneumothorax")
    task = EditTask("t1", "patient-7-film-3", "chest_xray", finding.name, direction)
    return WriteRequest(task, finding, image or source_image(), original(), history, seed=2**62 + 5)


def edit_request(
    image: EncodedImage | None = None, instruction: str = "Add a small bright spot."
) -> EditRequest:
    return EditRequest(source_image(), image or original(), instruction, seed=2**62 + 5)


def judge_request(direction: Direction = Direction.ADD, instruction: str = "Add a spot.") -> JudgeRequest:
    finding = load_taxonomy().get("chest_xray", "Pneumothorax")
    return JudgeRequest(
        source_image(), original(), original(), instruction, finding, direction, MED_BANANA, seed=2**62 + 5
    )


def scale_request(before: EncodedImage, after: EncodedImage, real: EncodedImage, *words: str) -> JudgeRequest:
    """MedEBench's question about an edit, with the real result; words are the instruction and its variant."""
    text, variant = (*words, "P")[:2]
    change, skin = Direction.CHANGE, source_image(modality="skin")
    return JudgeRequest(skin, before, after, text, None, change, MEDEBENCH, 7, real, variant)
