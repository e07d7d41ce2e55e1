"""Taking a patient's samples out of a benchmark's folder: pictures first, then rows, so that a kill loses no trace.

Only folders in our own format are changed: a published benchmark is its authors'.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from plantain.bench.benchmark.native_format import OWN
from plantain.files.opening import check_received
from plantain.files.writing import replace_file
from plantain.records import InputError, Withdrawal


@dataclass(frozen=True, slots=True)
class WithdrawnSamples:
    """What a withdrawal takes out of a benchmark.

    Attributes:
        name, root: of the benchmark.
        ids: samples that are asked for, sorted.
        known: those of the asked names that the benchmark knows.
    """

    name: str
    root: Path
    ids: tuple[str, ...]
    known: frozenset[str] = frozenset()


def is_benchmark(folder: Path) -> bool:
    """Whether a folder is a benchmark in our own format."""
    return (folder / OWN).is_file()


def asked_samples(root: Path, asked: Withdrawal, tasks: Collection[str] = ()) -> WithdrawnSamples:
    """The samples that are asked for, and those that were made of a build's tasks; changes nothing.

    Args:
        root: the benchmark's folder.
        asked: groups as the images' records or the clusters call them, with or without the dataset before it; images
            as the records or the benchmark call them.
        tasks: ids of withdrawn tasks of builds: a benchmark made of one names its samples by them.
    """
    data = _read(root)
    named = {}
    for row in data["samples"]:
        image, cluster = row["image"], str(row["cluster"])
        groups = asked.groups.intersection((image.get("group"), row["cluster"], cluster.partition("/")[2]))
        named[str(row["id"])] = groups | asked.images.intersection((image.get("id"), str(row["id"])))
    starts = {task[:12] for task in tasks if data.get("made_from")}
    gone = {name for name, names in named.items() if names or name.partition("-")[0] in starts}
    known = frozenset().union(*named.values())
    return WithdrawnSamples(str(data["name"]), root, tuple(sorted(gone)), known)


def withdraw_from_benchmark(found: WithdrawnSamples) -> None:
    """Removes the samples' pictures, then their rows; killed at any moment, doing it again finishes it."""
    if not found.ids:
        return
    check_received(found.root, levels=2)
    gone = set(found.ids)
    for folder in sorted(path for path in found.root.iterdir() if path.is_dir()):
        for path in folder.iterdir():
            if path.is_file() and path.stem in gone:
                path.unlink()
    data = _read(found.root)
    data["samples"] = [row for row in data["samples"] if str(row["id"]) not in gone]
    replace_file(found.root / OWN, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")


def _read(root: Path) -> dict[str, Any]:
    path = root / OWN
    try:
        data: dict[str, Any] = orjson.loads(path.read_bytes())
        for row in data["samples"]:
            row["id"], row["cluster"], row["image"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: cannot be read as a benchmark ({error})") from error
    return data
