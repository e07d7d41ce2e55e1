"""What one reader may see and say: their order, their place in it, and nothing of anybody else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plantain.records import InputError
from plantain.review.answers import checked, is_right
from plantain.review.orders import reader_order, slot_order
from plantain.review.ratings import Ratings, StudyReader
from plantain.review.study import ORIGINAL, Block, Case, Item, ItemKind, ReaderTask, Study

AHEAD = 2
"""Items beyond the first unanswered one that are handed out, so that the next is loaded before it is asked for."""


class NotYours(Exception):
    """There is no such thing for this reader."""


@dataclass(frozen=True, slots=True)
class OrderedItem:
    """One item in a reader's order: `slots` are whose pictures stand where."""

    block: Block
    item: Item
    position: int
    slots: tuple[str, ...]


class Desk:
    """One reader's side of a study. Made once a reader; what they answered is asked of the ratings each time."""

    def __init__(self, study: Study, ratings: Ratings, reader: StudyReader) -> None:
        self.study, self.ratings, self.reader = study, ratings, reader
        self.orders: dict[str, list[OrderedItem]] = {}
        self._items: dict[str, OrderedItem] = {}
        self._pictures: dict[str, str] = {}
        for block in study.blocks:
            places = []
            for position, item in enumerate(reader_order(study, block, reader.number)):
                slots = tuple(slot_order(study, item, reader.number)) if item.shown else ()
                place = OrderedItem(block, item, position, slots)
                places.append(place)
                self._items[self._token("item", item.id)] = place
                case = study.by_case[item.case]
                wide = (case.wide["file"],) if case.wide and shows_wide(item) else ()
                for name in (*case.pictures.values(), *case.proposals, *wide):
                    self._pictures[self._token("picture", item.id, name)] = name
            self.orders[block.id] = places

    def _token(self, *parts: object) -> str:
        return self.study.keyed(self.reader.code, *parts)

    # --- what is served -----------------------------------------------------------------------------

    def picture(self, token: str) -> str:
        """The file of a picture that this reader was handed the token of. Raises NotYours."""
        try:
            return self._pictures[token]
        except KeyError as error:
            raise NotYours from error

    def blocks(self) -> list[dict[str, Any]]:
        """Where the reader stands in each block."""
        answered, closed = self.ratings.turns(self.reader.code), self.ratings.closed(self.reader.code)
        found, earlier_open = [], False
        for block in self.study.blocks:
            turn = self.ratings.turn(self.reader.code, block.id)
            done = [_is_done(place, answered, turn) for place in self.orders[block.id]]
            share = self._training_share(block, done, turn)
            training = sum(place.item.kind is ItemKind.TRAINING for place in self.orders[block.id])
            failed = all(done[:training]) and share is not None and share < block.pass_mark
            state = "open"
            if block.id in closed:
                state = "closed"
            elif earlier_open:
                state = "waiting"
            elif failed:
                state = "training failed"
            elif all(done):
                state = "done"
            found.append(
                {
                    "id": block.id,
                    "task": block.task.value,
                    "title": block.title,
                    "state": state,
                    "items": len(done),
                    "training": training,
                    "answered": sum(done),
                    "next": next((n for n, one in enumerate(done) if not one), len(done)),
                    "pass_mark": block.pass_mark,
                    "training_share": share,
                }
            )
            earlier_open = earlier_open or state != "closed"
        return found

    def case(self, block_id: str, position: int) -> dict[str, Any]:
        """Everything that the room needs to ask one question, and what this reader answered before.

        Raises:
            NotYours: no such place, or not yet.
        """
        place, state = self._reachable(block_id, position)
        block, item = place.block, place.item
        case = self.study.by_case[item.case]
        training = item.kind is ItemKind.TRAINING
        turn = self.ratings.turn(self.reader.code, block.id)
        known = _is_done(place, self.ratings.turns(self.reader.code), turn)
        return {
            "item": self._token("item", item.id),
            "block": block.id,
            "task": block.task.value,
            "title": block.title,
            "position": position,
            "items": len(self.orders[block_id]),
            "training": training,
            "notice": item.notice,
            "state": state,
            "size": list(case.size),
            "spacing_mm": case.spacing_mm,
            "modality": case.modality,
            "finding": case.finding if block.task not in _UNTOLD else "",
            "direction": case.direction if block.task not in _UNTOLD else "",
            "instruction": case.instruction if block.task not in _UNTOLD else "",
            "description": case.description if block.task is ReaderTask.DESCRIBE_OK else "",
            "original": self._url(item, case.pictures[ORIGINAL]) if item.reference else None,
            "wide": self._wide(item, case) if shows_wide(item) else None,
            "slots": [self._url(item, case.pictures[key]) for key in place.slots],
            "proposals": [self._url(item, name) for name in case.proposals]
            if block.task is ReaderTask.CHOOSE_ROI
            else [],
            "criteria": [list(pair) for pair in block.criteria]
            if block.task in (ReaderTask.ACCEPT, ReaderTask.RATE)
            else [],
            "scale": list(block.scale),
            "codes": list(block.codes),
            "choices": list(block.choices),
            "own_region": block.own_region,
            "answer": self.ratings.newest(self.reader.code, item.id) if known else None,
            "changes": self.study.changes,
        }

    # --- what is taken ------------------------------------------------------------------------------

    def answer(self, token: str, key: str, answer: object, focus_ms: int) -> dict[str, Any]:
        """Stores an answer; durable on return. The same key again is the same answer.

        Raises:
            NotYours: no such item of this reader, or not yet.
            InputError: an answer that the question does not allow, or a closed block.
        """
        place = self._items.get(token)
        if place is None:
            raise NotYours
        block, item = place.block, place.item
        self._reachable(block.id, place.position)
        value = checked(block, item, self.study.by_case[item.case], answer)
        if not self.study.changes and item.kind is not ItemKind.TRAINING:
            given = self.ratings.newest(self.reader.code, item.id) is not None
            if given and not self.ratings.key_known(self.reader.code, item.id, key):
                raise InputError("answers of this study stay as they were given")
        saved = self.ratings.save(
            self.reader.code, item.id, key, block.id, list(place.slots), place.position, value, focus_ms
        )
        reply: dict[str, Any] = {"saved": saved, "item": token}
        if item.kind is ItemKind.TRAINING and item.truth:
            right = is_right(block, item, list(place.slots), value)
            reply["feedback"] = {"right": right, "truth": _truth_in_words(block, item, place.slots)}
        return reply

    def close(self, block_id: str) -> None:
        """Closes a block whose items all have an answer. Raises NotYours or InputError."""
        standing = next((one for one in self.blocks() if one["id"] == block_id), None)
        if standing is None or standing["state"] == "waiting":
            raise NotYours
        if standing["state"] not in ("done", "closed"):
            raise InputError(
                f"{standing['answered']} of {standing['items']} items have an answer: the block cannot be closed yet"
            )
        self.ratings.close_block(self.reader.code, block_id)

    def train_again(self, block_id: str) -> None:
        """Begins the training of a block again, after it was not passed."""
        standing = next((one for one in self.blocks() if one["id"] == block_id), None)
        if standing is None or standing["state"] != "training failed":
            raise NotYours
        self.ratings.train_again(self.reader.code, block_id)

    # --- inner --------------------------------------------------------------------------------------

    def _reachable(self, block_id: str, position: int) -> tuple[OrderedItem, str]:
        standing = next((one for one in self.blocks() if one["id"] == block_id), None)
        if standing is None or not 0 <= position < standing["items"] or standing["state"] == "waiting":
            raise NotYours
        last = standing["next"] + AHEAD
        if standing["next"] < standing["training"] or standing["state"] == "training failed":
            last = min(last, standing["training"] - 1)
        if position > last:
            raise NotYours
        return self.orders[block_id][position], str(standing["state"])

    def _training_share(self, block: Block, done: list[bool], turn: int) -> float | None:
        """Share of the training's known items that were right at once; None where none is known.

        An answer that was mended after the feedback had told the truth does not count.
        """
        right = [
            is_right(
                block,
                place.item,
                list(place.slots),
                self.ratings.first(self.reader.code, place.item.id, turn) or {},
            )
            for place, answered in zip(self.orders[block.id], done, strict=True)
            if answered and place.item.kind is ItemKind.TRAINING and place.item.truth
        ]
        return sum(one is True for one in right) / len(right) if right else None

    def _wide(self, item: Item, case: Case) -> dict[str, Any] | None:
        """All grey levels of the original, where the study has them."""
        if case.wide is None:
            return None
        geometry = {key: value for key, value in case.wide.items() if key != "file"}
        return {**geometry, "url": self._url(item, case.wide["file"])}

    def _url(self, item: Item, name: str) -> str:
        return f"/picture/{self._token('picture', item.id, name)}"


def shows_wide(item: Item) -> bool:
    """Whether the original may have more grey levels than the edits: only where it stands there by its name."""
    return item.reference and ORIGINAL not in item.shown


_UNTOLD = (ReaderTask.REAL_OR_EDITED, ReaderTask.TWO_CHOICES, ReaderTask.WHICH_FINDING)
"""Tasks whose question would be answered by what was asked for."""


def _is_done(place: OrderedItem, answered: Mapping[str, int], turn: int) -> bool:
    """Whether an item has an answer; of training, one of this turn."""
    given = answered.get(place.item.id)
    return given is not None and (place.item.kind is not ItemKind.TRAINING or given == turn)


def _truth_in_words(block: Block, item: Item, slots: tuple[str, ...]) -> str:
    if block.task in (ReaderTask.PAIR, ReaderTask.TWO_CHOICES) and item.truth in slots:
        return ("left", "right")[slots.index(item.truth)]
    if block.task is ReaderTask.ACCEPT:
        return "accept" if item.truth == "yes" else "reject: this is an unchanged copy"
    return item.truth
