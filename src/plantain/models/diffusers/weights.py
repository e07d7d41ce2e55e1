"""Open weights on this machine: a folder, or the hub's cache. Reads file names and small files; loads nothing."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plantain.files.opening import files_like
from plantain.records import InputError

INDEX = "model_index.json"
TRAINED = "plantain.json"
"""Written by a training: the side of the canvas that it used."""

LORA = "pytorch_lora_weights.safetensors"
"""diffusers' name for LoRA weights; a pipeline's folder with this file is loaded with them."""

LARGE = 1 << 20
"""Of files larger than this many bytes, the digest reads the first and the last megabyte."""

VARIANT = "fp16"
"""Variant of published files in half precision."""

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_WEIGHT_FILES = ("*.safetensors", "*.bin")
_TOKENS = ("tokenizer.json", "vocab.*", "*.model", "tekken.json")
_SHARD = re.compile(r"-\d{5}-of-\d{5}\.")


class NotReady(InputError):
    """Raised for weights that cannot be loaded: missing, incomplete, or under a licence that was not accepted."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights on disk.

    Attributes:
        name: the hub id, or the folder as the user wrote it.
        folder: folder of the weights, or one file of LoRA weights.
        digest: version of the weights: the hub's commit, or a hash over the folder's files.
    """

    name: str
    folder: Path
    digest: str


def is_hub_id(name: str) -> bool:
    """Return True if a name has the form of a hub id, org/name, and is not a local folder."""
    return bool(_HUB_ID.fullmatch(name)) and not name.startswith(".") and not Path(name).is_dir()


def find_weights(name: str, revision: str, cache_dir: Path | None) -> Weights | None:
    """Locate weights by folder or hub id; return None for a hub id that is not in the cache.

    Args:
        name: folder, or hub id.
        revision: commit or branch of the hub; "" for "main".
        cache_dir: the hub's cache; None for the usual folder.

    Raises:
        InputError: no such folder.
    """
    if not is_hub_id(name):
        folder = Path(name).expanduser()
        if not folder.exists():
            raise InputError(f"weights {name!r}: neither a folder nor a hub id like org/name")
        return Weights(name, folder.resolve(), folder_digest(folder))
    cached = hub_cache(cache_dir) / f"models--{name.replace('/', '--')}"
    commit = revision if _COMMIT.fullmatch(revision) else _ref(cached, revision or "main")
    folder = cached / "snapshots" / commit
    return Weights(name, folder, commit[:12]) if commit and folder.is_dir() else None


def hub_cache(cache_dir: Path | None) -> Path:
    """Return the folder of the hub's cache: `cache_dir`, else by its environment variables, else its default."""
    if cache_dir is not None:
        return cache_dir
    if os.environ.get("HF_HUB_CACHE"):
        return Path(os.environ["HF_HUB_CACHE"]).expanduser()
    home = os.environ.get("HF_HOME")
    base = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return base.expanduser() / "hub"


def has_index(weights: Weights) -> bool:
    """Return True if the index of a pipeline's parts exists; it may be missing after an interrupted download."""
    return (weights.folder / INDEX).is_file()


def class_of(weights: Weights) -> str:
    """Return the name of a folder's pipeline class. Raise InputError if it is not a folder of a diffusers pipeline."""
    return str(_index(weights)["_class_name"])


def trained_side(folder: Path) -> int | None:
    """Return the canvas side in pixels of weights; None if plantain did not train them. Raise InputError if damaged."""
    path = folder / TRAINED
    if not path.is_file():
        return None
    try:
        side = int(json.loads(path.read_text(encoding="utf-8"))["side"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: does not contain the side that its weights were trained at") from error
    return side


def missing_part(weights: Weights) -> str:
    """Return the first missing file of a pipeline, e.g. after an interrupted download; "" if none is missing.

    Raises:
        InputError: it is not a folder of a diffusers pipeline.
    """
    for name in _parts(weights):
        part = weights.folder / name
        if not part.is_dir() or not any(part.iterdir()):
            return f"{name}/"
        if name.startswith("tokenizer") and not _here(part, _TOKENS):
            return f"{name}/tokenizer.json"
        if (part / "config.json").exists() and (missing := _missing_weights(part)):
            return f"{name}/{missing}"
    return ""


def _missing_weights(part: Path) -> str:
    """Return the first missing file of a part's weights; "" if one set of files is complete."""
    here = _here(part, _WEIGHT_FILES)
    sets = [
        sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        for index in sorted(part.glob("*.index*.json"), key=lambda path: (".bin." in path.name, path.name))
    ]
    sharded = {shard for shards in sets for shard in shards}
    if any(not _SHARD.search(name) and name not in sharded for name in here):
        return ""
    if any(here.issuperset(shards) for shards in sets):
        return ""
    return next((shard for shards in sets for shard in shards if shard not in here), "*.safetensors")


def _here(part: Path, kinds: Sequence[str]) -> set[str]:
    """Return names of files of some kinds; a broken link into the hub's cache does not count."""
    return {path.name for kind in kinds for path in files_like(part, kind) if path.exists()}


def variant_of(weights: Weights) -> str:
    """Return the variant to load: "fp16" if a part has only half-precision files, as in a hub's cache; else ""."""
    for name in _parts(weights):
        files = _here(weights.folder / name, _WEIGHT_FILES)
        if files and all(f".{VARIANT}." in file or f".{VARIANT}-" in file for file in files):
            return VARIANT
    return ""


def size_gb(weights: Weights) -> float:
    """Return the size of weights on disk in gigabytes, rounded to 0.1 GB; below 1 GB to 0.001 GB."""
    files = [weights.folder] if weights.folder.is_file() else files_like(weights.folder, "**/*")
    size = sum(path.stat().st_size for path in files if path.is_file()) / 1e9
    return round(size, 1 if size >= 1.0 else 3)


def hub_name(folder: Path) -> str:
    """Return the hub id of a folder in the hub's cache; "" for any other folder."""
    if folder.parent.name != "snapshots" or not folder.parents[1].name.startswith("models--"):
        return ""
    return folder.parents[1].name.removeprefix("models--").replace("--", "/", 1)


def folder_digest(folder: Path) -> str:
    """Return 12 hex digits of a hash over the names, sizes and contents of a folder's files (or of one file).

    Only the first and last megabyte of a file count. A snapshot in the hub's cache has the first 12 digits of its
    commit instead.
    """
    folder = folder.resolve()
    commit = folder.name if folder.parent.name == "snapshots" else ""
    if _COMMIT.fullmatch(commit):
        return commit[:12]
    files = [folder] if folder.is_file() else [path for path in files_like(folder, "**/*") if path.is_file()]
    digest = hashlib.sha256()
    for path in files:
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder)}\x1f{size}\x1f".encode())
        with path.open("rb") as file:
            digest.update(file.read(LARGE))
            if size > LARGE:
                file.seek(max(LARGE, size - LARGE))
                digest.update(file.read())
    return digest.hexdigest()[:12]


def _parts(weights: Weights) -> list[str]:
    """Return the folders of a pipeline's parts."""
    return [
        name
        for name, about in _index(weights).items()
        if isinstance(about, list) and len(about) == 2 and all(about)
    ]


def _index(weights: Weights) -> dict[str, object]:
    path = weights.folder / INDEX
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(
            f"{weights.folder}: has no {INDEX}: not a folder of a diffusers pipeline (save_pretrained writes one)"
        ) from None
    except ValueError as error:
        raise InputError(f"{path}: is not JSON: {error}") from error
    if not isinstance(index, dict) or not isinstance(index.get("_class_name"), str):
        raise InputError(f"{path}: names no pipeline class (_class_name)")
    return index


def _ref(cached: Path, revision: str) -> str:
    try:
        return (cached / "refs" / revision).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
