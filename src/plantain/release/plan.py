"""The terms of an export: its options, the entries of its file list, the facts of the run that it states, its splits.

The layouts write data files and record each one, and each image inside one, in a staging database. Then `export.py`
writes manifest, sums, licences and cards. Both read a snapshot of the journal, so a build may continue meanwhile.
Splits are of whole groups, so that no patient and no duplicate is in two of them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plantain.files.installed import install_line, require_extra
from plantain.privacy.licences import LicenceText
from plantain.records import InputError

SHARD_BYTES = 700_000_000
"""Payload of a Parquet or tar shard: within the 0.5 to 1 GB that hubs recommend."""

SHARD_ROWS = 10_000
"""Most rows of a Parquet or tar shard, however small its images: readers keep a few names for each row."""

IMPORTED = "imported_release"
"""Meta key of an imported run: the facts of the original run."""

ORIGINAL = "original"
"""Role of a source image as it was prepared."""

ORIGINALS_FOLDER = "originals"
ORIGINALS_INDEX = f"{ORIGINALS_FOLDER}/{ORIGINALS_FOLDER}.jsonl"
"""A line for every image of the folder: its path, its hash, and the source images that it is the original of."""

FACTS = "run.json"
"""In every release: facts of the run."""

TRAJECTORIES = "trajectories/trajectories.jsonl"
"""In every release: each task's record, one a line."""

CONVERSATIONS = "trajectories/conversations.jsonl"
"""In releases of several turns: each chain of accepted edits, one a line."""

CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""Characters that no name in a release contains."""


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file of a release, or an image inside one: a line of its manifest.

    Attributes:
        path: path of the file, POSIX, relative to the release.
        sha256, bytes: hash and size of the whole file; if `row` or `member` is set, of the image.
        role: "success", "failed", "undecided", "superseded", "unjudged" for edited images; "mask";
            "original"; "shard" for a Parquet or tar file with images; "record" for JSON, CSV and other texts.
        pixel_sha256: hash of the decoded uint8 (H, W, 3) RGB bytes, if recorded at normalisation, else None.
        task, generation, round: the attempt of an image; None for other files, and for an original unless it is in
            the row of its edit.
        row: 0-based row of the Parquet file that embeds the image, else None.
        member: name of the image inside its tar, or its column of the Parquet row ("image", "jpg_0"), else None.
        source_sha256: hash of the journal's blob if signing changed the bytes; "" otherwise.
    """

    path: str
    sha256: str
    bytes: int
    role: str
    pixel_sha256: str | None = None
    task: str | None = None
    generation: int | None = None
    round: int | None = None
    row: int | None = None
    member: str | None = None
    source_sha256: str = ""

    @property
    def embedded(self) -> bool:
        """True if this is an image inside a file, which has no line in SHA256SUMS."""
        return self.row is not None or self.member is not None

    @property
    def is_edit(self) -> bool:
        """True if this is an edited image, by its role."""
        return self.task is not None and self.role not in ("mask", ORIGINAL)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of an export.

    Attributes:
        layouts: names of layouts, kept sorted; see `layouts/contract.py`.
        redistribution_approved: reference of the agreement that allows a credentialed source; "" for none.
        sign_cert, sign_key: PEM chain and key for C2PA; None leaves the images unsigned.
        shard_bytes: size of the images in one shard, in bytes.
        licences: terms that the images' owner names, each "LICENCE" or "DATASET=LICENCE".
        originals: "auto": include source images where their licence allows it; "none": do not.
        doi: DOI of the dataset, without the address of a resolver.

    Raises:
        InputError: the extra `release`, or `dicom` for that layout, is not installed, only one of certificate and key
            is given, `originals` is neither "auto" nor "none", or `doi` is invalid.
    """

    layouts: tuple[str, ...]
    redistribution_approved: str = ""
    sign_cert: Path | None = None
    sign_key: Path | None = None
    shard_bytes: int = SHARD_BYTES
    licences: tuple[str, ...] = ()
    originals: str = "auto"
    doi: str = ""

    def __post_init__(self) -> None:
        if self.originals not in ("auto", "none"):
            raise InputError(
                f"--originals {self.originals}: choose auto (where their licence allows it) or none"
            )
        if importlib.util.find_spec("pyarrow") is None:
            raise InputError(f"plantain export needs pyarrow: {install_line('release')}")
        if (self.sign_cert is None) != (self.sign_key is None):
            raise InputError("--sign and --key belong together: a certificate chain and its private key")
        if "dicom" in self.layouts:
            require_extra("--layout dicom", "dicom", "highdicom")
        object.__setattr__(self, "layouts", tuple(sorted(set(self.layouts))))
        object.__setattr__(self, "doi", _plain_doi(self.doi))


def _plain_doi(doi: str) -> str:
    """Return a DOI without the address around it."""
    plain = re.sub(r"^(https?://(dx\.)?doi\.org/|doi:)", "", doi.strip(), flags=re.IGNORECASE)
    if plain and not re.fullmatch(r"10\.\d{4,9}/[!-~]{1,200}", plain):
        raise InputError(f"--doi {doi}: a DOI starts with 10. and four digits, as in 10.5281/zenodo.1234567")
    return plain


@dataclass(frozen=True, slots=True)
class TableConfig:
    """One named table of the dataset card: `load_dataset(OUT, name)`.

    Attributes:
        name: e.g. "failed".
        rows: number of rows by split; only splits with rows.
    """

    name: str
    rows: Mapping[str, int]

    def pattern(self, split: str) -> str:
        """Return the pattern of a split's files."""
        return f"data/{self.name}/*-{split}-*.parquet"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about the run for the cards, besides its attempts; stored as `run.json`, unchanged by export and import.

    Attributes:
        run_id, name, seed, code_version, frozen: the journal's header.
        models: by step ("write", "edit", "judge"): [[requested model, model that answered], ...], sorted.
        tasks: number of exported tasks by outcome.
        left_out: number of pending tasks, which are not in the release.
        pairs: number of preference pairs.
        splits: number of tasks by split; split_groups: number of groups that are kept together.
        ungrouped_images: number of images whose source records no patient or study.
        method: prompts, versions of offline models and rubric, by role.
        terms: licences that the images' owner named, by dataset.
        originals: by dataset, number of images with their original in the release ("carried") and without
            ("left_out").
        judges: number of verdicts by judge, decisive or not.
        damaged: damaged images of the run, which are omitted, as "task ..., round ...: its edited image".
    """

    run_id: str
    name: str
    seed: int
    code_version: str
    frozen: Mapping[str, object]
    models: Mapping[str, list[list[str]]]
    tasks: Mapping[str, int]
    left_out: int
    pairs: int
    splits: Mapping[str, int]
    split_groups: int
    ungrouped_images: int
    method: Mapping[str, str] = field(default_factory=dict)
    terms: Mapping[str, LicenceText] = field(default_factory=dict)
    originals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    judges: Mapping[str, int] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()


SPLITS = ("train", "validation", "test")

_VALIDATION, _TEST = 0.1, 0.1


FEWEST = 10
"""Groups from which on each split has one: a tenth of them is a group."""


def splits_of(groups: Iterable[str], seed: int) -> dict[str, str]:
    """Assign each group to train, validation or test, about 80 : 10 : 10, by a seeded hash of its name.

    Only the hash decides, so that no group changes its split as a run grows. But if there are at least `FEWEST` groups
    and none is in test, or none in validation, the train group with the lowest hash is moved there.
    """
    places = {group: _place(group, seed) for group in groups}
    found = {
        group: "test" if place < _TEST else "validation" if place < _TEST + _VALIDATION else "train"
        for group, place in places.items()
    }
    for name in ("test", "validation"):
        left = [group for group, split in found.items() if split == "train"]
        if len(found) >= FEWEST and len(left) > 1 and name not in found.values():
            found[min(left, key=lambda group: (places[group], group))] = name
    return found


def _place(group: str, seed: int) -> float:
    digest = hashlib.sha256(f"split\x1f{seed}\x1f{group}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def empty_splits(splits: Mapping[str, int], groups: int) -> str:
    """Return a note on splits without tasks, e.g. "no test split: too few groups (17)"; "" if all have tasks."""
    empty = [name for name in SPLITS if not splits.get(name)]
    return f"no {' and no '.join(empty)} split: too few groups ({groups:,})" if empty else ""
