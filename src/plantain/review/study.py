"""The parts of a reader study, and its frozen file, which changes by withdrawals only."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from plantain.files.opening import read_inside, replace_file
from plantain.records import InputError

STUDY, SECRET, IMAGES, RATINGS = "study.json", "secret", "images", "ratings.sqlite"
FORMAT = "plantain-study/1"
ORIGINAL = "original"
"""Key of the image before the edit, among the models whose outputs a case has."""


class ReaderTask(StrEnum):
    """The tasks of readers."""

    ACCEPT = "accept"
    RATE = "rate"
    PAIR = "pair"
    RANK = "rank"
    REAL_OR_EDITED = "real-or-edited"
    TWO_CHOICES = "real-or-edited-2afc"
    WHICH_FINDING = "which-finding"
    CHOOSE_ROI = "choose-roi"
    DESCRIBE_OK = "describe-ok"


COMPARES = (ReaderTask.PAIR, ReaderTask.RANK)
"""Tasks that need the outputs of several models for one case."""


class ItemKind(StrEnum):
    """The purpose of an item. Only `main` items count in the main figures."""

    MAIN = "main"
    TRAINING = "training"
    REPEAT = "repeat"
    ANCHOR = "anchor"


@dataclass(frozen=True, slots=True)
class Case:
    """One original and the edits made of it.

    Attributes:
        id: "c0001" and so on.
        source: id of its task or sample, to link results back; readers never see it.
        image: id of the original in the run, for withdrawals; "" where unknown; readers never see it.
        group: of readers who read it.
        stratum: from which cases are drawn in turn.
        cluster: patient or group; cases of one cluster are not independent.
        modality, finding, direction, instruction, description: of the edit, "" where unknown.
        size: (width, height) of all its images in pixels.
        served_bytes: length to which each of them is padded when it is served.
        images: ORIGINAL and models -> file below `images/`.
        ground_truth: file of the real image after the procedure; "" without one.
        verdicts: model -> the run's own decision about its edit, where it has one.
        label: of the original, where it has one.
        proposals: files of proposed regions, best first.
        spacing_mm: of a pixel, where known.
        credentialed: only readers who confirmed the agreement may see it.
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
    served_bytes: int
    images: Mapping[str, str]
    ground_truth: str = ""
    verdicts: Mapping[str, bool] | None = None
    label: str = ""
    proposals: tuple[str, ...] = ()
    spacing_mm: float | None = None
    credentialed: bool = False
    image: str = ""
    group: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """One question about one case.

    Attributes:
        id: "b1-00001" and so on.
        shown: whose images are judged, in frozen order; each reader sees them in an order of their own.
        reference: the original is shown next to them, named as such.
        truth: the right answer where one is known (training, anchors, real or edited).
        of: the item that a repeat repeats.
    """

    id: str
    case: str
    kind: ItemKind
    shown: tuple[str, ...]
    reference: bool = True
    truth: str = ""
    of: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Items of one task, read in a reader's own order and closed together.

    Attributes:
        criteria: (name, question) to accept, rate or rank; a block that ranks has one.
        dimension: short name of the criterion that is ranked, e.g. "EA"; "" for other tasks.
        scale: least and most of a rating.
        codes: reasons why an edit is wrong.
        choices: closed list of findings.
    """

    id: str
    task: ReaderTask
    title: str
    items: tuple[Item, ...]
    criteria: tuple[tuple[str, str], ...] = ()
    dimension: str = ""
    scale: tuple[int, int] = (0, 10)
    codes: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study:
    """A frozen study.

    Attributes:
        sources: names of the runs, benchmarks or tables of its cases.
        groups: of readers, each with cases of its own; 1: every reader reads everything.
        digest: SHA-256 of the frozen document.
        damaged: images that the source has lost, whose cases were left out.
    """

    folder: Path
    name: str
    seed: int
    sources: tuple[str, ...]
    cases: tuple[Case, ...]
    blocks: tuple[Block, ...]
    groups: int = 1
    digest: str = ""
    damaged: tuple[str, ...] = ()

    @cached_property
    def by_case(self) -> dict[str, Case]:
        return {case.id: case for case in self.cases}

    @cached_property
    def by_item(self) -> dict[str, tuple[Block, Item]]:
        return {item.id: (block, item) for block in self.blocks for item in block.items}

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Return the names of all models with an output in the study, sorted."""
        return tuple(sorted({key for case in self.cases for key in case.images} - {ORIGINAL}))

    @property
    def credentialed(self) -> bool:
        """Return True if some images are served only to readers who confirmed the agreement."""
        return any(case.credentialed for case in self.cases)

    @cached_property
    def secret(self) -> bytes:
        """Return the key of orders, image addresses and item names; it never leaves the folder."""
        return bytes.fromhex(read_inside(self.folder, self.folder / SECRET).decode("ascii").strip())

    def keyed(self, *parts: object) -> str:
        """Return 32 hex digits that depend on the parts and cannot be guessed without the secret."""
        text = "\x1f".join(str(part) for part in parts)
        return hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()[:32]


def unfinished_folder(folder: Path) -> Path:
    """Return the folder in which a study is made before it gets its name."""
    return folder.with_name(folder.name + ".unfinished")


def freeze(study: Study) -> Study:
    """Write a study whose images are already in its folder; return it with its digest."""
    # The secret is not derived from the seed: a copy of the study must not reveal the order of images.
    replace_file(study.folder / SECRET, secrets.token_hex(32).encode() + b"\n", 0o600)
    study = with_digest(study)
    write_document(study)
    return study


def with_digest(study: Study) -> Study:
    """Return a study with the SHA-256 of its document."""
    return replace(study, digest=_digest(_document(study)))


def write_document(study: Study) -> None:
    """Write `study.json` with the study's digest."""
    text = orjson.dumps({**_document(study), "hash": study.digest}, option=orjson.OPT_INDENT_2)
    replace_file(study.folder / STUDY, text + b"\n")


def _document(study: Study) -> dict[str, object]:
    settings = {entry.name: getattr(study, entry.name) for entry in fields(study)}
    del settings["folder"], settings["digest"]
    return dict(orjson.loads(orjson.dumps({"format": FORMAT, **settings})))


def open_study(folder: Path) -> Study:
    """Read a study.

    Raises:
        InputError: no study, one of another format, or one that was changed after it was frozen.
    """
    path = folder / STUDY
    if not path.is_file():
        raise InputError(f"{folder} is not a study: {STUDY} is missing; make one with `plantain review new`")
    try:
        document = orjson.loads(read_inside(folder, path))
        digest = document.pop("hash")
        if _digest(document) != digest:
            raise InputError(f"{path}: was changed since it was frozen (its hash differs)")
        if document.pop("format") != FORMAT:
            raise InputError(f"{path}: format: this plantain reads {FORMAT}")
        return TypeAdapter(Study).validate_python({**document, "folder": folder, "digest": digest})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not as plantain wrote it ({error})") from error


def _digest(document: Mapping[str, object]) -> str:
    return hashlib.sha256(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)).hexdigest()
