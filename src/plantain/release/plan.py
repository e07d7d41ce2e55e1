"""What a release consists of and how it is asked for: the seam between the layouts and the proof beside them.

The layouts (`export.py`, `layouts/`) write data files and record each one, and each image inside one, in a
staging database. When all are there, `finish.finish_release` writes what stands beside them: manifest, sums,
licences, cards. Both only ever see a snapshot of the journal, so a build may go on meanwhile.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from plantain.files.installing import install_line
from plantain.records import InputError, JudgeCard

SHARD_BYTES = 700_000_000
"""Payload of a Parquet or tar shard: within the 0.5 to 1 GB that hubs recommend."""

SHARD_ROWS = 10_000
"""Rows of a Parquet or tar shard at most, however small its pictures: whoever reads one keeps a few names for each."""

IMPORTED = "imported_release"
"""Meta key of a run that was made by an import: what its release said of the original run."""

ORIGINAL = "original"
"""Role of a source image as it was prepared."""

FACTS = "run.json"
"""In every release: facts of the run, and the state of the run that was exported."""

TRAJECTORIES = "trajectories/trajectories.jsonl"
"""In every release: each task's record, one a line."""

STAGING = ".export"
"""Folder inside an unfinished release; it says what is done and is removed last. Never part of a release."""


@dataclass(frozen=True, slots=True)
class ReleaseFile:
    """A file of a release, or an image inside one.

    Attributes:
        path: of the file, POSIX, relative to the release.
        sha256, bytes: of the whole file; of the image alone when `row` or `member` is set.
        role: "success", "failed", "superseded", "unjudged", "control" for edited images; "mask"; ORIGINAL; "shard"
            for a Parquet or tar file that holds images; "record" for JSON.
        pixel_sha256: of the decoded uint8 (H, W, 3) RGB bytes, as recorded at normalisation; None when it was not.
        task, generation, round: which attempt an image belongs to; None for files that are no image. An original
            stands for itself, and has none of them, or beside its edit, and has the same.
        row: 0-based row of the Parquet file that embeds the image.
        member: name inside the tar that holds the image, or the column of the Parquet row ("image", "jpg_0").
        source_sha256: blob in the journal when signing changed the bytes; "" when they are the blob's own.
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
        """True for an image inside a file, which has no line of its own in SHA256SUMS."""
        return self.row is not None or self.member is not None

    @property
    def is_edit(self) -> bool:
        """True for an edited image, wherever it stands."""
        return self.task is not None and self.role not in ("mask", ORIGINAL)


@dataclass(frozen=True, slots=True)
class CriterionRating:
    """Of one criterion: the share of readers for whom it `held`, and the mean `rating` on the study's scale."""

    criterion: str
    held: float | None
    rating: float | None


@dataclass(frozen=True, slots=True)
class EditRating:
    """What the readers of one study said of one edit: the attempt of `round` in the task's current generation."""

    study: str
    task: str
    round: int
    readers: int
    accepted: float | None
    criteria: tuple[CriterionRating, ...]


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What a person asks of an export.

    Attributes:
        layouts: names of layouts, sorted; see `layouts/contract.py`.
        redistribution_approved: reference of the agreement that allows a credentialed source; "" when there is none.
        sign_cert, sign_key: PEM chain and key for C2PA; None leaves the images unsigned.
        shard_bytes: payload of one shard.
        licences: terms that the images' owner names, each "LICENCE" or "DATASET=LICENCE".
        originals: "auto": source images go along where their licence allows it; "none": they do not.
        original_licences: under what terms their owner publishes the source images, each "DATASET=LICENCE".
        doi: of the dataset, once it has one.
        beside: files that come along as they are, by their paths: reader studies.
        people: what the readers of those studies said of edits, for the columns of tables.
    """

    layouts: tuple[str, ...]
    redistribution_approved: str = ""
    sign_cert: Path | None = None
    sign_key: Path | None = None
    shard_bytes: int = SHARD_BYTES
    licences: tuple[str, ...] = ()
    originals: str = "auto"
    original_licences: tuple[str, ...] = ()
    doi: str = ""
    beside: Mapping[str, bytes] = field(default_factory=dict)
    people: tuple[EditRating, ...] = ()


def export_options(
    layouts: Iterable[str],
    *,
    redistribution_approved: str = "",
    sign_cert: Path | None = None,
    sign_key: Path | None = None,
    shard_bytes: int = SHARD_BYTES,
    licences: tuple[str, ...] = (),
    originals: str = "auto",
    original_licences: tuple[str, ...] = (),
    doi: str = "",
    beside: Mapping[str, bytes] | None = None,
    people: tuple[EditRating, ...] = (),
) -> ExportOptions:
    """What a person asked for, with each layout once and in our order.

    Raises:
        InputError: the extra `release` is not installed, of certificate and key only one is given, `originals` is
            neither "auto" nor "none", or `doi` is none.
    """
    if originals not in ("auto", "none"):
        raise InputError(f"--originals {originals}: choose auto (where their licence allows it) or none")
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError(f"plantain export needs pyarrow: {install_line('release')}")
    if (sign_cert is None) != (sign_key is None):
        raise InputError("--sign and --key belong together: a certificate chain and its private key")
    return ExportOptions(
        tuple(sorted(set(layouts))),
        redistribution_approved,
        sign_cert,
        sign_key,
        shard_bytes,
        tuple(licences),
        originals,
        tuple(original_licences),
        _plain_doi(doi),
        dict(beside or {}),
        people,
    )


def _plain_doi(doi: str) -> str:
    """A DOI without the address that it may stand in."""
    plain = re.sub(r"^(https?://(dx\.)?doi\.org/|doi:)", "", doi.strip(), flags=re.IGNORECASE)
    if plain and not re.fullmatch(r"10\.\d{4,9}/[!-~]{1,200}", plain):
        raise InputError(f"--doi {doi}: a DOI begins with 10. and four digits, as in 10.5281/zenodo.1234567")
    return plain


class Signer(Protocol):
    """Adds provenance to one released JPEG (`provenance.open_signer` returns one)."""

    def sign(self, jpeg: bytes, task: str, round: int) -> bytes:
        """The same picture with a signed manifest."""
        ...


@dataclass(frozen=True, slots=True)
class TableConfig:
    """One named table of the dataset card: `load_dataset(OUT, name)`.

    Attributes:
        name: e.g. "failed" or "failed_chest_xray_add".
        splits: file patterns by split, e.g. {"train": ("data/failed/*-train-*.parquet",)}; only those with rows.
        rows: number of rows by split.
        default: the one that is loaded when no name is given.
    """

    name: str
    splits: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, int]
    default: bool = False


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What cards say of the run beyond its attempts; the same after export and import. It is `run.json`.

    Attributes:
        run_id, name, seed, code_version, frozen: the journal's header.
        models: by step ("write", "edit", "judge"): [[model asked for, model that answered], ...], sorted.
        tasks: exported tasks by how they ended; "control" are those that came back.
        left_out: tasks that were still pending, and so are not in the release.
        pairs: preference pairs by kind; and successful tasks without one, by why.
        splits: tasks by split.
        split_groups: how many groups the splits keep together.
        ungrouped_images: images whose source records no patient or study.
        canary: GUID carried by every row of the test split.
        method: what the run remembers of prompts, versions of offline models and rubric, by role.
        terms: licences that the images' owner named, by dataset.
        originals: by dataset, how many of its images came with their original ("carried") and how many without
            ("left_out"); empty in releases that were made before any carried originals.
        judges: verdicts by who gave them, decisive or not.
        original_terms: under what terms their owner publishes the source images, by dataset, where somebody said so.
    """

    run_id: str
    name: str
    seed: int
    code_version: str
    frozen: Mapping[str, object]
    models: Mapping[str, list[list[str]]]
    tasks: Mapping[str, int]
    left_out: int
    pairs: Mapping[str, int]
    without_pair: Mapping[str, int]
    splits: Mapping[str, int]
    split_groups: int
    ungrouped_images: int
    canary: str
    method: Mapping[str, str] = field(default_factory=dict)
    terms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    originals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    original_terms: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    judges: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Release:
    """Everything that the proof needs to know of the data files, all of it streamed or small.

    Attributes:
        out: the release's folder; write files there under temporary names and rename them.
        facts: what is said of the run.
        configs: the tables of the card, empty when no Parquet layout was asked for.
        sources: per dataset: {"licence", "images", "version"}; from the released images only.
        files: every recorded file and embedded image by (path, row, member), streamed; may be iterated again.
        edited: (role, hash of the blob, signed) of every edited image, each once.
        cards: of judges, by path.
    """

    out: Path
    facts: RunFacts
    configs: tuple[TableConfig, ...]
    sources: Mapping[str, Mapping[str, str | int]]
    files: Iterable[ReleaseFile] = field(repr=False)
    edited: Iterable[tuple[str, str, bool]] = field(repr=False, default=())
    cards: Mapping[str, JudgeCard] = field(default_factory=dict)
