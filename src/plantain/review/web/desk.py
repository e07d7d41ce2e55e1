"""One reader's view of a study: the reader's items in order, images, answers and progress.

Orders of items and positions of images are derived from the study's secret and balanced over readers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plantain.files.opening import read_inside
from plantain.records import InputError
from plantain.review.answers import checked
from plantain.review.blinding import served
from plantain.review.ratings import Ratings, StudyReader
from plantain.review.study import IMAGES, ORIGINAL, Block, Item, ReaderTask, Study


def reader_order(study: Study, block: Block, number: int) -> list[Item]:
    """Return the items of a block in the order in which reader `number` (0, 1, ...) reads them.

    They are shuffled by study, block and reader, if possible so that no two neighbours show the same case, and the
    first does not show the last case of the previous block.
    """
    items = list(block.items)
    draw = random.Random(study.keyed("order", block.id, number))
    draw.shuffle(items)
    place = study.blocks.index(block)
    earlier = reader_order(study, study.blocks[place - 1], number) if place else []
    return _apart(items, draw, earlier[-1].case if earlier else "")


def slot_order(study: Study, item: Item, number: int) -> list[str]:
    """Return an item's models in the order of their positions on the page, rotated by one from reader to reader.

    So each model has each position equally often, and two consecutive readers see pairs mirrored.
    """
    if not item.shown:
        return []
    shown = list(item.shown)
    first = int(study.keyed("slots", item.id)[:8], 16)
    random.Random(first).shuffle(shown)
    turn = number % len(shown)
    return shown[turn:] + shown[:turn]


def _apart(items: Sequence[Item], draw: random.Random, before: str) -> list[Item]:
    """Swap items that follow one of their own case with others, at random, while that helps.

    `before` is the case that was seen last, "" for none.
    """
    order = list(items)

    def clashes(at: int) -> bool:
        near = range(max(0, at - 1), min(len(order), at + 2))
        same = any(other != at and order[other].case == order[at].case for other in near)
        return same or (at == 0 and order[0].case == before)

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


AHEAD = 2
"""Items beyond the first unanswered one that are served, so that the page can load them early."""

SHOWS_TRUTH = (ReaderTask.RANK, ReaderTask.DESCRIBE_OK)
"""Tasks that show the real image after the procedure as a reference, where a case has one."""


class NotAvailable(Exception):
    """Raised if a reader has no such item or image, or may not see it yet."""


@dataclass(frozen=True, slots=True)
class OrderedItem:
    """One item in a reader's order.

    Attributes:
        position: place in the order, from 0.
        slots: the models in the order of their positions on the page.
    """

    block: Block
    item: Item
    position: int
    slots: tuple[str, ...]


class Desk:
    """One reader's access to a served study: blocks, cases, images and answers."""

    def __init__(self, study: Study, ratings: Ratings, reader: StudyReader) -> None:
        self.study, self.ratings, self.reader = study, ratings, reader
        self.orders: dict[str, list[OrderedItem]] = {}
        self._items: dict[str, OrderedItem] = {}
        self._images: dict[str, tuple[str, int]] = {}
        for block in study.blocks:
            order = self.orders[block.id] = []
            for position, item in enumerate(reader_order(study, block, reader.number)):
                place = OrderedItem(block, item, position, tuple(slot_order(study, item, reader.number)))
                order.append(place)
                self._items[self._token("item", item.id)] = place
                case = study.by_case[item.case]
                files = [case.images[ORIGINAL]] if item.reference else []
                files += [case.ground_truth] if case.ground_truth and block.task in SHOWS_TRUTH else []
                files += [case.images[key] for key in place.slots]
                for name in files:
                    self._images[self._token("image", item.id, name)] = name, case.served_bytes
                for name in case.proposals if block.task is ReaderTask.CHOOSE_ROI else ():
                    self._images[self._token("image", item.id, name)] = name, 0

    def _token(self, *parts: object) -> str:
        return self.study.keyed(self.reader.code, *parts)

    def _url(self, item: Item, name: str) -> str:
        return f"/image/{self._token('image', item.id, name)}"

    # --- serving items -----------------------------------------------------------------------------

    def image(self, token: str) -> bytes:
        """Return the image of a token that this reader received. Raise NotAvailable for any other token."""
        if token not in self._images:
            raise NotAvailable
        name, length = self._images[token]
        data = read_inside(self.study.folder, self.study.folder / IMAGES / name)
        return served(data, length) if length else data

    def blocks(self) -> list[dict[str, Any]]:
        """Return one JSON dictionary per block, with its state and the reader's progress."""
        answered, closed = self.ratings.progress(self.reader.code)
        found: list[dict[str, Any]] = []
        for block in self.study.blocks:
            order = self.orders[block.id]
            done = [place.item.id in answered for place in order]
            state = "open"
            if block.id in closed:
                state = "closed"
            elif any(one["state"] != "closed" for one in found):
                state = "waiting"
            elif all(done):
                state = "done"
            found.append(
                {
                    "id": block.id,
                    "task": block.task.value,
                    "title": block.title,
                    "state": state,
                    "items": len(done),
                    "answered": sum(done),
                    "next": next((n for n, one in enumerate(done) if not one), len(done)),
                }
            )
        return found

    def case(self, block_id: str, position: int) -> dict[str, Any]:
        """Return the JSON for the page of one question, with this reader's earlier answer.

        Raises:
            NotAvailable: the block has no such position, or the reader may not see it yet.
        """
        place, state = self._reachable(block_id, position)
        block, item = place.block, place.item
        case = self.study.by_case[item.case]
        hidden = block.task is ReaderTask.REAL_OR_EDITED  # the instruction would answer the question
        truth = case.ground_truth if block.task in SHOWS_TRUTH else ""
        regions = case.proposals if block.task is ReaderTask.CHOOSE_ROI else ()
        return {
            "item": self._token("item", item.id),
            "block": block.id,
            "task": block.task.value,
            "title": block.title,
            "position": position,
            "items": len(self.orders[block_id]),
            "state": state,
            "size": list(case.size),
            "spacing_mm": case.spacing_mm,
            "modality": case.modality,
            "finding": "" if hidden else case.finding,
            "direction": "" if hidden else case.direction,
            "instruction": "" if hidden else case.instruction,
            "description": case.description if block.task is ReaderTask.DESCRIBE_OK else "",
            "original": self._url(item, case.images[ORIGINAL]) if item.reference else None,
            "truth": self._url(item, truth) if truth else None,
            "slots": [self._url(item, case.images[key]) for key in place.slots],
            "proposals": [self._url(item, name) for name in regions],
            "criteria": [list(pair) for pair in block.criteria],
            "scale": list(block.scale),
            "codes": list(block.codes),
            "answer": self.ratings.newest(self.reader.code, item.id),
        }

    # --- accepting answers ---------------------------------------------------------------------------

    def answer(self, token: str, key: str, answer: object, focus_ms: int) -> dict[str, Any]:
        """Store an answer durably and return the reply; a repeated key stores nothing.

        Args:
            token: the item's name on the page.
            key: id of the answer, chosen by the page.
            answer: the answer as sent, unchecked.
            focus_ms: time in ms that the reader spent on it.

        Raises:
            NotAvailable: this reader has no such item, or may not see it yet.
            InputError: the question does not allow the answer, or the block is closed.
        """
        place = self._items.get(token)
        if place is None:
            raise NotAvailable
        block, item, slots = place.block, place.item, list(place.slots)
        self._reachable(block.id, place.position)
        value = checked(block, item, self.study.by_case[item.case], answer)
        saved = self.ratings.save(
            self.reader.code, item.id, key, block.id, slots, place.position, value, focus_ms
        )
        return {"saved": saved, "item": token}

    def close(self, block_id: str) -> None:
        """Close a block. Raise NotAvailable if unknown or not open yet, InputError if items have no answer."""
        block = self._block(block_id)
        if block["state"] == "waiting":
            raise NotAvailable
        if block["state"] not in ("done", "closed"):
            raise InputError(
                f"{block['answered']} of {block['items']} items have an answer: the block cannot be closed yet"
            )
        self.ratings.close_block(self.reader.code, block_id)

    # --- inner --------------------------------------------------------------------------------------

    def _block(self, block_id: str) -> dict[str, Any]:
        found = next((one for one in self.blocks() if one["id"] == block_id), None)
        if found is None:
            raise NotAvailable
        return found

    def _reachable(self, block_id: str, position: int) -> tuple[OrderedItem, str]:
        block = self._block(block_id)
        known = 0 <= position < min(block["items"], block["next"] + AHEAD + 1)
        if not known or block["state"] == "waiting":
            raise NotAvailable
        return self.orders[block_id][position], str(block["state"])
