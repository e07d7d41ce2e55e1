"""Read MedEBench as its authors published it, and as their paper shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from plantain.bench.benchmark.samples import FOLDERS, EntryReader, Reading, Sample, plain_image
from plantain.files.opening import read_inside
from plantain.records import Direction, InputError
from plantain.records.messages import nearest

METADATA: Final = "editing_metadata.json"

ORGANS: dict[str, tuple[str, ...]] = {
    "Teeth": ("tooth", "dental"),
    "Eyes": ("eye",),
    "Spine and Bones": ("spine", "bone", "bones", "bones and spine", "skeleton"),
    "Skin": (),
    "Nose": (),
    "Face": (),
    "GI Tract": ("gi", "gastrointestinal tract", "gastrointestinal", "digestive tract", "intestine"),
    "Ears": ("ear",),
    "Hands": ("hand",),
    "Mouth": ("lip", "lips"),
    "Torso": ("trunk",),
    "Feet": ("foot",),
    "Hair": (),
}
"""Other names by canonical name, in the order of the paper's Table 2 (which has Spine; Table 4 has Bones)."""

_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id",),
    "organ": ("organ",),
    "task": ("task",),
    "prompt": ("prompt",),
    "rephrased": ("rephrasedprompt",),
    "detailed": ("detailedprompt", "detaileddescription", "descriptionofchange", "changedescription"),
    "key_concept": ("keyconcept", "concept"),
    "previous": ("previousimage", "previous"),
    "changed": ("changedimage", "groundtruthimage", "groundtruth", "changed"),
    "roi": ("previousmask", "roimask", "mask"),
    "source": ("url", "source", "sourceurl"),
}
"""Ours to theirs: first the published file's key, then the paper's (Figure 8); case and punctuation do not count."""

TABLE_7: Final = (
    *("reconstruct ear", "remove wisdom teeth", "remove moles"),
    *("reconstruct nose", "remove varicose veins", "reconstruct toenails"),
)
"""The six tasks of the paper's Table 7; the metadata words them at length ("Reconstruct or repair nose skin")."""

_ADDING = re.compile(r"\W*(?:please\s+)?(?:add|implant|insert|place|put|apply|install|fit)\b", re.IGNORECASE)
_REMOVING = re.compile(
    r"\W*(?:please\s+)?(?:remove|erase|eliminate|excise|delete|extract|take\b[^.;,]*\b(?:away|out|off)|get\s+rid)\b",
    re.IGNORECASE,
)


def direction_of(text: str) -> Direction:
    """Infer from its opening verb if an instruction or task adds or removes; return CHANGE for other verbs.

    Example:
        >>> direction_of("Remove the second tooth.").value, direction_of("Add or remove braces.").value
        ('remove', 'change')
    """
    if re.match(r"\W*(?:add\s+or\s+remove|remove\s+or\s+add)\b", text, re.IGNORECASE):
        return Direction.CHANGE
    if _REMOVING.match(text):
        return Direction.REMOVE
    return Direction.ADD if _ADDING.match(text) else Direction.CHANGE


def _folded(name: str) -> str:
    """Return a name without case, punctuation and the word "and"."""
    return " ".join(word for word in re.split(r"[\W_]+", name.casefold()) if word and word != "and")


_NAMES = {_folded(alias): organ for organ, aliases in ORGANS.items() for alias in (organ, *aliases)}


def canonical_organ(name: str) -> tuple[str, str]:
    """Return (an organ's canonical name, ""), or (the given name, a remark) if MedEBench has no such organ.

    Example:
        >>> canonical_organ(" bones ")
        ('Spine and Bones', '')
        >>> canonical_organ("Teath")
        ('Teath', "not one of MedEBench's organs; did you mean 'Teeth'?")
    """
    found = _NAMES.get(_folded(name))
    if found:
        return found, ""
    near = nearest(_folded(name), _NAMES, cutoff=0.75)
    hint = f"; did you mean {_NAMES[near]!r}?" if near else ""
    return " ".join(name.split()), f"not one of MedEBench's organs{hint}"


def paper_tasks(sizes: Mapping[str, int], least: int = 1) -> tuple[str, ...]:
    """Return the tasks of a benchmark that match the six of Table 7; if several match one, the largest.

    Args:
        sizes: number of samples by task name.
        least: smallest number of samples that a task needs.

    Example:
        >>> paper_tasks({"Remove moles, nevi, or black marks": 136, "Reconstruct auricle": 11})
        ('Remove moles, nevi, or black marks',)
    """

    def words(text: str) -> set[str]:
        return {word.removesuffix("s") for word in _folded(text).split()}

    found = []
    for short in TABLE_7:
        fitting = [task for task, size in sizes.items() if size >= least and words(short) <= words(task)]
        found += sorted(fitting, key=lambda task: (-sizes[task], task))[:1]
    return tuple(found)


def read_medebench(metadata: Path) -> Reading:
    """Read `editing_metadata.json` next to `previous/`, `changed/` and `previous_mask/`.

    The file may be a list of samples, `{"samples": [...]}` as published, or an object by id. Paths are relative to
    the metadata's folder or to the one above (as published: "editing/previous/1.png").

    Raises:
        InputError: the file has none of these forms; all other faults are listed in `Reading.problems`.
    """
    reader = EntryReader(metadata.parent, metadata.name)
    for index, (given_id, row) in enumerate(_rows(metadata)):
        where = f"samples[{index}]"
        if isinstance(row, dict):
            _read_row(reader, where, given_id, row)
        else:
            reader.problem(where, "not an object with the fields of a sample")
    return reader.reading("MedEBench")


def _rows(metadata: Path) -> list[tuple[str, object]]:
    try:
        data = orjson.loads(read_inside(metadata.parent, metadata))
    except orjson.JSONDecodeError as error:
        raise InputError(f"{metadata}: not JSON: {str(error)[:200]}") from error
    if isinstance(data, dict) and isinstance(data.get("samples"), list | dict):
        data = data["samples"]
    if isinstance(data, list):
        return [("", row) for row in data]
    if isinstance(data, dict):
        return list(data.items())
    raise InputError(f"{metadata}: expected a list of samples, or an object with a list named 'samples'")


def _read_row(reader: EntryReader, where: str, given_id: str, row: dict[str, object]) -> None:
    texts = _texts(reader, where, row)
    if texts is None:
        return
    texts["id"] = texts.get("id") or given_id
    missing = [name for name in ("id", "organ", "task", "prompt") if not texts.get(name)]
    if missing:
        more = f", as are {', '.join(missing[1:])}" if missing[1:] else ""
        reader.problem(f"{where}.{missing[0]}", f"missing{more}", texts["id"])
        return
    sample_id = texts["id"]
    organ, remark = canonical_organ(texts["organ"])
    if remark:
        reader.problem(f"{where}.organ", f"{organ!r} is {remark}", sample_id, warning=True)
    own: dict[str, Any] = {name: text for name, text in texts.items() if name not in FOLDERS}
    sample = Sample(
        **own | {"organ": organ, "task": texts["task"].rstrip(". ")},
        cluster="",
        image=plain_image(sample_id, (0, 0), "MedEBench"),
        previous=Path(),
        size=(0, 0),
        direction=direction_of(texts["prompt"]),
    )
    files = {what: _paths(reader.root, what, texts.get(what, ""), sample_id) for what in FOLDERS}
    reader.add(where, sample, files)


def _texts(reader: EntryReader, where: str, row: dict[str, object]) -> dict[str, str] | None:
    """Return the row's texts by our names; None, with a problem recorded, for another type."""
    folded = {re.sub(r"[\W_]+", "", str(key)).casefold(): key for key in row}
    used: set[str] = set()
    texts: dict[str, str] = {}
    for ours, theirs in _KEYS.items():
        keys = [folded[name] for name in theirs if name in folded]
        used.update(keys)
        if not keys:
            continue
        value = row[keys[0]]
        if ours == "id" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if not isinstance(value, str | None):
            reader.problem(f"{where}.{ours}", f"expected text, found {type(value).__name__}")
            return None
        texts[ours] = (value or "").strip()
    for key in row:
        if key not in used:
            near = nearest(str(key), ("rephrased_prompt", "detailed_prompt", *_KEYS))
            hint = f"; did you mean {near!r}?" if near else ""
            reader.problem(f"{where}.{str(key)[:40]}", f"a field that is not read{hint}", warning=True)
    return texts


def _paths(root: Path, what: str, written: str, sample_id: str) -> tuple[str, ...]:
    """Return where a file may be: as written, without the published leading folder, or by the layout's rule."""
    by_rule = f"{FOLDERS[what]}/{sample_id}.png"
    if not written:
        return (by_rule,) if what == "previous" or (root / by_rule).is_file() else ()
    written = written.replace("\\", "/")
    _, _, below = written.partition("/")
    published = below and written.startswith(("editing/", f"{root.resolve().name}/"))
    return (written, below) if published else (written,)
