"""A person's choice of a region: one of the proposals, or a mask of their own, written into the benchmark."""

from __future__ import annotations

import hashlib
from pathlib import Path

import orjson

from plantain.bench.benchmark.native_format import OWN
from plantain.bench.benchmark.regions import read_mask, resized_region
from plantain.files.opening import read_inside
from plantain.files.writing import open_folder, replace_file
from plantain.pixels.arrays import Mask
from plantain.pixels.decode import declared_size
from plantain.pixels.encode import encode_mask
from plantain.records import InputError


def proposed_regions(root: Path, sample_id: str) -> tuple[Mask, ...]:
    """The proposals of a sample, the best first; none where nothing was proposed.

    Raises:
        InputError: `proposals.json` cannot be read, or a file that it names.
    """
    path = root / "proposals.json"
    if not path.is_file():
        return ()
    try:
        entries = orjson.loads(read_inside(root, path))["samples"].get(sample_id, [])
        files = [root / entry["file"] for entry in entries]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: samples: not as plantain wrote it") from error
    return tuple(read_mask(read_inside(root, file), str(file)).region for file in files)


def choose_region(root: Path, sample_id: str, region: Mask, who: str, how: str) -> None:
    """Makes a mask a sample's region of interest, and says in its notes who chose it.

    Runs that were made of the benchmark before will notice that it changed.

    Args:
        root: the folder of a benchmark in our own format.
        sample_id: the sample.
        region: bool (H, W), of any size with the image's shape; brought to the image's by nearest neighbour.
        who: the chooser's pseudonym.
        how: "proposal 2", "drawn", "proposal 1, corrected".

    Raises:
        InputError: no such benchmark or sample, or the region marks nothing or everything.
    """
    path = root / OWN
    if not path.is_file():
        raise InputError(f"{path}: no such file; regions are chosen in plantain's own format")
    data = orjson.loads(read_inside(root, path))
    row = next((row for row in data["samples"] if row["id"] == sample_id), None)
    if row is None:
        raise InputError(f"{path}: no sample {sample_id!r}")
    if not region.any() or region.all():
        raise InputError(f"{path}: sample {sample_id}: a region must mark a part of the image")
    size = declared_size(read_inside(root, root / row["previous"]))
    mask = encode_mask(resized_region(region, size))
    row["roi"] = f"previous_mask/{sample_id}.png"
    row["sha256"]["roi"] = hashlib.sha256(mask).hexdigest()
    notes = [note for note in row.get("notes", []) if not note.startswith("region:")]
    row["notes"] = [*notes, f"region: chosen by {who} ({how})"]
    target = root / row["roi"]
    open_folder(root, target.parent.name)
    replace_file(target, mask)
    replace_file(path, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
