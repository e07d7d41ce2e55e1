"""The facts of a run that its release states, the tables of its card, and its splits of whole groups.

No patient and no duplicate is in two splits.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plantain.privacy.licences import LicenceText


@dataclass(frozen=True, slots=True)
class TableConfig:
    """One named table of the dataset card: `load_dataset(OUT, name)`.

    Attributes:
        name: e.g. "failed".
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
    """Facts of the run beyond its attempts, for the cards; unchanged by export and import. It is `run.json`.

    Attributes:
        run_id, name, seed, code_version, frozen: the journal's header.
        models: by step ("write", "edit", "judge"): [[requested model, model that answered], ...], sorted.
        tasks: exported tasks by outcome.
        left_out: pending tasks, which are not in the release.
        pairs, without_pair: preference pairs by kind; tasks without one, by reason.
        splits: tasks by split; split_groups: number of groups that are kept together.
        ungrouped_images: images whose source records no patient or study.
        canary: GUID in every row of the test split.
        method: prompts, versions of offline models and rubric, by role.
        terms: licences that the images' owner named, by dataset.
        originals: by dataset, how many of its images have their original in the release ("carried") and how many do
            not ("left_out").
        original_terms: the owners' licences of source images, by dataset, where one was named.
        judges: verdicts by judge, decisive or not.
        damaged: where the run has lost an image, in words, "task ..., round ...: its edited image"; left out.
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
    terms: Mapping[str, LicenceText] = field(default_factory=dict)
    originals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    original_terms: Mapping[str, LicenceText] = field(default_factory=dict)
    judges: Mapping[str, int] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()


SPLITS = ("train", "validation", "test")

_VALIDATION, _TEST = 0.1, 0.1


FEWEST = 10
"""Groups from which on each split has one: a tenth of them is a group."""


def splits_of(groups: Iterable[str], seed: int) -> dict[str, str]:
    """Return the split of each group, about 80 : 10 : 10, by a seeded hash of its name.

    The hash alone decides, so that none changes sides as a run grows. Only where no group of `FEWEST` or more falls to
    test or validation, the one of train with the lowest hash does.
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
    """Return a note on splits without tasks, e.g. "no test split: too few groups (17)"; "" if there are none."""
    empty = [name for name in SPLITS if not splits.get(name)]
    return f"no {' and no '.join(empty)} split: too few groups ({groups:,})" if empty else ""


def canary_of(run_id: str) -> str:
    """Return the GUID that marks the test split of every release of a run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"plantain:test-split:{run_id}"))
