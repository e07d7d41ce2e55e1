"""Simulated readers for the demo: their answers depend on the item and on their strictness, by seed."""

from __future__ import annotations

import random
from typing import Any

from plantain.review.orders import reader_order, slot_order
from plantain.review.ratings import Ratings
from plantain.review.study import ORIGINAL, Block, Item, ItemKind, ReaderTask, Study


def simulate(study: Study, ratings: Ratings, readers: int = 2) -> int:
    """Let simulated readers answer everything and close their blocks; return the number of answers."""
    given = 0
    for number in range(readers):
        reader, _ = ratings.invite(code=f"simulated-{number + 1}")
        for block in study.blocks:
            for position, item in enumerate(reader_order(study, block, reader.number)):
                slots = slot_order(study, item, reader.number)
                repeated = item.kind is ItemKind.REPEAT
                draw = random.Random(f"{study.seed} {number} {item.of or item.id} {repeated}")
                taste = random.Random(f"{study.seed} {item.case} {item.shown}").random()
                quality = 0.7 * taste + 0.3 * draw.random() - 0.06 * number
                value = _answer(study, block, item, slots, quality, draw)
                focus = round(1000 * draw.lognormvariate(2.2, 0.4))
                key = f"simulated-{item.id}"
                ratings.save(reader.code, item.id, key, block.id, slots, position, value, focus)
                given += 1
            ratings.close_block(reader.code, block.id)
    return given


def _answer(
    study: Study, block: Block, item: Item, slots: list[str], quality: float, draw: random.Random
) -> dict[str, Any]:
    known = item.kind in (ItemKind.TRAINING, ItemKind.ANCHOR)
    wanted = item.truth if known and draw.random() < 0.9 else ""
    match block.task:
        case ReaderTask.ACCEPT:
            good = wanted == "yes" if wanted else quality > 0.3
            criteria = {name: good or draw.random() < 0.5 for name, _ in block.criteria}
            if not good:
                criteria[block.criteria[0][0]] = False
            codes = [] if good or not block.codes else [draw.choice(block.codes)]
            return {"criteria": criteria, "codes": codes}
        case ReaderTask.RATE:
            least, most = block.scale
            return {
                "scores": {
                    name: min(most, max(least, round(least + (most - least) * quality + draw.gauss(0, 0.8))))
                    for name, _ in block.criteria
                }
            }
        case ReaderTask.PAIR:
            return {"better": draw.choice(["left", "right", "tie"])}
        case ReaderTask.RANK:
            return {"ranks": draw.sample(range(1, len(slots) + 1), len(slots))}
        case ReaderTask.REAL_OR_EDITED:
            real = slots[0] == ORIGINAL
            return {"real": real if draw.random() < 0.7 else not real}
        case ReaderTask.TWO_CHOICES:
            right = slots.index(ORIGINAL) if draw.random() < 0.7 else 1 - slots.index(ORIGINAL)
            return {"real": ("left", "right")[right]}
        case ReaderTask.WHICH_FINDING:
            finding = study.by_case[item.case].finding
            return {"finding": finding if quality > 0.25 and finding in block.choices else "none"}
        case ReaderTask.DESCRIBE_OK:
            return {"right": quality > 0.3, "correction": ""}
        case ReaderTask.CHOOSE_ROI:
            return {"cannot": "a simulated reader draws nothing"}
