"""Each reader's order of items and image positions, drawn with the study's secret, balanced over readers."""

from __future__ import annotations

import random
from collections.abc import Sequence

from plantain.review.study import Block, Item, ItemKind, Study

FAR = 3
"""Fewest items between a repeat and the repeated item, where the block is long enough."""


def reader_order(study: Study, block: Block, number: int) -> list[Item]:
    """Return the items of a block as reader `number` (0, 1, ...) reads them: training first.

    They are shuffled with a key of the study, the block and the reader, so that, where possible, no two neighbours
    show the same case, nor does the first one show the last case of the previous block.
    """
    mine = reader_items(study, block, number)
    training = [item for item in mine if item.kind is ItemKind.TRAINING]
    rest = [item for item in mine if item.kind is not ItemKind.TRAINING]
    draw = random.Random(study.keyed("order", block.id, number))
    draw.shuffle(rest)
    place = study.blocks.index(block)
    earlier = reader_order(study, study.blocks[place - 1], number) if place else []
    first = _apart(training, draw, _last_case(earlier))
    return [*first, *_apart(rest, draw, _last_case(first or earlier))]


def reader_items(study: Study, block: Block, number: int) -> list[Item]:
    """Return the items of a block that reader `number` reads, in frozen order.

    With groups of readers, a main case belongs to one of them; training and anchors are for all.
    """
    shared_kinds = (ItemKind.TRAINING, ItemKind.ANCHOR)
    return [
        item
        for item in block.items
        if item.kind in shared_kinds or study.by_case[item.case].group == number % study.groups
    ]


def slot_order(study: Study, item: Item, number: int) -> list[str]:
    """Return the models in the order of their positions, rotated by one from reader to reader.

    So each model is in each position equally often over readers, and two readers in a row see pairs mirrored.
    """
    if not item.shown:
        return []
    shown = list(item.shown)
    first = int(study.keyed("slots", item.of or item.id)[:8], 16)
    random.Random(first).shuffle(shown)
    turn = (number + (1 if item.kind is ItemKind.REPEAT else 0)) % len(shown)
    return shown[turn:] + shown[:turn]


def _last_case(order: Sequence[Item]) -> str:
    return order[-1].case if order else ""


def _apart(items: Sequence[Item], draw: random.Random, before: str) -> list[Item]:
    """Swap items that follow one of their own case with others, at random, while that helps.

    `before` is the case that was seen last, "" for none.
    """
    order = list(items)

    def clashes(at: int) -> bool:
        near = range(max(0, at - 1), min(len(order), at + 2))
        same = any(other != at and order[other].case == order[at].case for other in near)
        same = same or (at == 0 and order[0].case == before)
        far = range(max(0, at - FAR), min(len(order), at + FAR + 1))
        return same or any(order[at].of == order[o].id or order[o].of == order[at].id for o in far if o != at)

    for _ in range(4):
        wrong = [at for at in range(len(order)) if clashes(at)]
        if not wrong:
            break
        for at in wrong:
            for other in draw.sample(range(len(order)), min(len(order), 40)):
                order[at], order[other] = order[other], order[at]
                if not clashes(at) and not clashes(other):
                    break
                order[at], order[other] = order[other], order[at]
    return order
