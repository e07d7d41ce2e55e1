"""Small studies from drawn images: three models, a few cases, no run needed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import cv2
import numpy as np

from plantain.cli import main
from plantain.review.freezing import StudySettings, new_study
from plantain.review.ratings import Ratings
from plantain.review.sources import Material
from plantain.review.study import ORIGINAL, Block, Item, ReaderTask, Study, open_study
from plantain.review.web.desk import slot_order
from plantain.rubrics import MED_BANANA

MODELS = ("acme/zebra-9", "beta/yak-2", "gamma/xerus-7")
"""Names that occur nowhere else, so that a search for them finds any leak."""


def drawn(case: int, model: int) -> np.ndarray:
    """A grey image with a disc for each model but the original; sizes in bytes and pixels differ by model."""
    rng = np.random.default_rng([case, model])
    side = 64 if model < 3 else 80  # one model answers in another size
    pixels = np.full((side, side, 3), 60 + 5 * (case % 20), np.uint8)
    pixels += rng.integers(0, 4 + 20 * model, (side, side, 1), dtype=np.uint8)
    if model:
        cv2.circle(pixels, (20 + 5 * model, 30), 6 + model, (200, 200, 200), -1)
    return pixels


def material(
    cases: int = 8, models: tuple[str, ...] = MODELS, *, credentialed: bool = False
) -> list[Material]:
    found = []
    for case in range(cases):
        images = {ORIGINAL: lambda case=case: drawn(case, 0)}
        images |= {name: lambda case=case, m=m: drawn(case, m) for m, name in enumerate(models, 1)}
        proposal = np.zeros((64, 64), bool)
        proposal[10:30, 20:40] = True
        found.append(
            Material(
                source=f"task{case:03d}",
                original=f"image{case}",
                stratum=("add" if case % 2 else "remove"),
                cluster=f"patient{case}",
                modality="chest_xray",
                finding="Pneumothorax",
                direction="add",
                instruction="Add a small pneumothorax.",
                images=images,
                description="A dark rim appeared.",
                ground_truth=lambda case=case: drawn(case, 0),
                credentialed=credentialed,
                proposals=(proposal,),
            )
        )
    return found


def small_study(
    folder: Path,
    *tasks: ReaderTask,
    cases: int = 4,
    models: tuple[str, ...] = MODELS,
    credentialed: bool = False,
    **more: object,
) -> Study:
    wanted = StudySettings(
        name="On paper", seed=1, tasks=tasks or tuple(ReaderTask), rubric=MED_BANANA, cases=cases, **more
    )  # type: ignore[arg-type]
    return new_study(folder, material(cases + 4, models, credentialed=credentialed), ["paper"], wanted)


def new_from(folder: Path, source: Path, *words: str) -> Study:
    """Make a study with `plantain review new`."""
    assert main(["review", "new", str(folder), "--from", str(source), *words]) == 0
    return open_study(folder)


def read_all(study: Study, readers: int, say: Callable[[int, Block, Item, list[str]], dict]) -> None:
    """Let new readers answer every item: `say` returns the answer of a reader, from 0, to an item with these slots."""
    with closing(Ratings.open(study)) as ratings:
        for number in range(readers):
            reader, _ = ratings.invite()
            for block in study.blocks:
                for place, item in enumerate(block.items):
                    slots = slot_order(study, item, reader.number)
                    value = say(number, block, item, slots)
                    ratings.save(reader.code, item.id, "k" * 8, block.id, slots, place, value, 1000)


def all_criteria(block: Block, yes: bool) -> dict:
    """The same answer to every criterion of an accept question."""
    return {"criteria": {name: yes for name, _ in block.criteria}, "codes": []}


def answer_to(case: dict, right: bool = True) -> dict:
    """Some answer that the question allows."""
    match case["task"]:
        case "accept":
            return {"criteria": {name: right for name, _ in case["criteria"]}, "codes": []}
        case "rate":
            return {"scores": {name: case["scale"][1] for name, _ in case["criteria"]}}
        case "pair":
            return {"better": "left" if right else "tie"}
        case "rank":
            return {"ranks": list(range(1, len(case["slots"]) + 1))}
        case "real-or-edited":
            return {"real": right}
        case "describe-ok":
            return {"right": right, "correction": ""}
    return {"proposal": 0, "mask": None}


def mask_of(size: tuple[int, int], value: int = 255) -> str:
    """A PNG in base64: rows 5 to 19 and columns 7 to 29 are inside."""
    plane = np.zeros((size[1], size[0]), np.uint8)
    plane[5:20, 7:30] = value
    return base64.b64encode(cv2.imencode(".png", plane)[1].tobytes()).decode()
