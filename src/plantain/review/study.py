"""The nouns of a reader study, and the frozen file that holds them: nothing in it changes once people read."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from plantain.files.opening import read_inside
from plantain.files.writing import replace_file
from plantain.records import InputError

STUDY, SECRET, PICTURES, RATINGS = "study.json", "secret", "pictures", "ratings.sqlite"
FORMAT = "plantain-study/1"
ORIGINAL = "original"
"""What stands for the picture before the edit, where outputs stand by their models."""


class ReaderTask(StrEnum):
    """What a reader is asked."""

    ACCEPT = "accept"
    RATE = "rate"
    PAIR = "pair"
    RANK = "rank"
    REAL_OR_EDITED = "real-or-edited"
    TWO_CHOICES = "real-or-edited-2afc"
    WHICH_FINDING = "which-finding"
    CHOOSE_ROI = "choose-roi"
    DESCRIBE_OK = "describe-ok"


class ItemKind(StrEnum):
    """Why an item is read. Only `main` counts in the main figures."""

    MAIN = "main"
    TRAINING = "training"
    REPEAT = "repeat"
    ANCHOR = "anchor"
    ATTENTION = "attention"


@dataclass(frozen=True, slots=True)
class Case:
    """One original and what was made of it.

    Attributes:
        id: "c0001" and on.
        source: of the original, as the run or benchmark calls it, for linking results back; readers never see it.
        stratum: by which cases were drawn in turn.
        cluster: patient or group; cases of one cluster are no independent samples.
        modality, finding, direction, instruction, description: of the edit, "" where there is none.
        size: (width, height) of all its pictures.
        pictures: ORIGINAL and models -> file below `pictures/`.
        truth: what is in the original, where its labels say so.
        proposals: files of proposed regions, best first.
        spacing_mm: of a pixel, where known.
        credentialed: its owner allows it only to readers who confirmed the agreement.
        wide: all grey levels of the original: `file` below `pictures/`, `low`, `step` and `unit` of a level, `black`
            and `white` of the prepared picture, `windows`, and whether these are `linear`; None: not served.
    """

    id: str
    source: str
    stratum: str
    cluster: str
    modality: str
    finding: str
    direction: str
    instruction: str
    description: str
    size: tuple[int, int]
    pictures: Mapping[str, str]
    truth: str = ""
    proposals: tuple[str, ...] = ()
    spacing_mm: float | None = None
    credentialed: bool = False
    wide: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One question about one case.

    Attributes:
        id: "b1-0001" and on.
        shown: whose pictures are judged, in frozen order; each reader sees them in an order of their own.
        reference: whether the original is shown beside them, named as such.
        truth: the right answer where one is known (training, anchors, attention).
        of: the item that a repeat repeats.
        notice: a line above the question ("" for none): what an attention check asks for.
    """

    id: str
    case: str
    kind: ItemKind
    shown: tuple[str, ...]
    reference: bool = True
    truth: str = ""
    of: str = ""
    notice: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Items of one task, read in a reader's own order and closed together.

    Attributes:
        criteria: (name, question) of what is accepted or rated.
        scale: least and most of a rating.
        codes: why something is wrong, for reasons and marks.
        choices: closed list of findings.
        pass_mark: share of a training that must be right before the main items.
        own_region: whether a reader may draw; else only choose.
    """

    id: str
    task: ReaderTask
    title: str
    items: tuple[Item, ...]
    criteria: tuple[tuple[str, str], ...] = ()
    scale: tuple[int, int] = (0, 10)
    codes: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    pass_mark: float = 0.0
    own_region: bool = True


@dataclass(frozen=True)
class Study:
    """A frozen study.

    Attributes:
        folder: where it lies.
        sources: what it was made from.
        groups: of readers, each with cases of its own; 1: everybody reads everything.
        changes: whether answers may be changed until their block is closed.
        agreement: text that readers of credentialed pictures confirm by name; "" for none.
    """

    folder: Path
    name: str
    seed: int
    sources: tuple[str, ...]
    cases: tuple[Case, ...]
    blocks: tuple[Block, ...]
    groups: int = 1
    changes: bool = True
    agreement: str = ""
    digest: str = field(default="")

    @cached_property
    def by_case(self) -> dict[str, Case]:
        return {case.id: case for case in self.cases}

    @cached_property
    def by_item(self) -> dict[str, tuple[Block, Item]]:
        return {item.id: (block, item) for block in self.blocks for item in block.items}

    @cached_property
    def group_of(self) -> dict[str, int]:
        """Main case -> its group of readers: every group has the same share of each stratum."""
        read = {item.case for _, item in self.by_item.values() if item.kind is ItemKind.MAIN}
        main = sorted((case for case in self.cases if case.id in read), key=lambda case: case.stratum)
        return {case.id: place % self.groups for place, case in enumerate(main)}

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Every model that an output of the study is by."""
        return tuple(sorted({key for case in self.cases for key in case.pictures} - {ORIGINAL}))

    @property
    def credentialed(self) -> bool:
        """Whether any picture is served only to readers who confirmed the agreement."""
        return any(case.credentialed for case in self.cases)

    @cached_property
    def secret(self) -> bytes:
        """Keys orders, picture addresses and item names; never leaves the folder."""
        return bytes.fromhex(read_inside(self.folder, self.folder / SECRET).decode("ascii").strip())

    def keyed(self, *parts: object) -> str:
        """32 hex digits that nobody without the secret can guess."""
        text = "\x1f".join(str(part) for part in parts)
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()[:32]


def freeze(study: Study) -> Study:
    """Writes a study that stands complete in memory; its pictures are there already. Returns it with its hash."""
    document = _document(study)
    digest = hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
    # The secret is not drawn from the seed: who knows the study must not know what readers see where.
    replace_file(study.folder / SECRET, secrets.token_hex(32).encode() + b"\n", 0o600)
    text = orjson.dumps({**document, "hash": digest}, option=orjson.OPT_INDENT_2)
    replace_file(study.folder / STUDY, text + b"\n")
    return replace(study, digest=digest)


def _document(study: Study) -> dict[str, object]:
    apart = ("folder", "digest", "cases", "blocks")
    settings = {entry.name: getattr(study, entry.name) for entry in fields(study) if entry.name not in apart}
    cases, blocks = [asdict(case) for case in study.cases], [asdict(block) for block in study.blocks]
    # through JSON and back, so that the hash is of what a reader of the file gets
    whole = {"format": FORMAT, **settings, "cases": cases, "blocks": blocks}
    plain: dict[str, object] = orjson.loads(orjson.dumps(whole))
    return plain


def open_study(folder: Path) -> Study:
    """Reads a study.

    Raises:
        InputError: no study, one of another format, or one that was changed since it was frozen.
    """
    path = folder / STUDY
    if not path.is_file():
        raise InputError(f"{folder} is not a study: it holds no {STUDY}; make one with `plantain review new`")
    try:
        document = orjson.loads(read_inside(folder, path))
        digest = document.pop("hash")
        if document.pop("format") != FORMAT:
            raise InputError(f"{path}: format: this plantain reads {FORMAT}")
        frozen = orjson.dumps({"format": FORMAT, **document}, option=orjson.OPT_SORT_KEYS)
        if hashlib.sha256(frozen).hexdigest() != digest:
            raise InputError(f"{path}: was changed since it was frozen (its hash differs)")
        cases = tuple(_case(row) for row in document.pop("cases"))
        blocks = tuple(_block(row) for row in document.pop("blocks"))
        sources = tuple(document.pop("sources"))
        return Study(folder=folder, cases=cases, blocks=blocks, sources=sources, digest=digest, **document)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not as plantain wrote it ({error})") from error


def _case(row: dict[str, Any]) -> Case:
    return Case(**{**row, "size": tuple(row["size"]), "proposals": tuple(row["proposals"])})


def _block(row: dict[str, Any]) -> Block:
    items = tuple(
        Item(**{**item, "shown": tuple(item["shown"]), "kind": ItemKind(item["kind"])})
        for item in row["items"]
    )
    lists = {name: tuple(row[name]) for name in ("scale", "codes", "choices")}
    criteria = tuple(tuple(pair) for pair in row["criteria"])
    return Block(**{**row, **lists, "criteria": criteria, "items": items, "task": ReaderTask(row["task"])})
