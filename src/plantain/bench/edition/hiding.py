"""Keeping truths back: a public part that anybody can be measured on, and a private one that its holder scores with.

Originals and prompts stay public. The truths and regions of the hidden samples are promised by salted hashes, so that
who gets them one day can check that they are the ones that were hidden.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import os
import secrets
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.native_format import OWN
from plantain.bench.benchmark.overlap import truths_shown
from plantain.bench.benchmark.samples import Sample
from plantain.bench.edition.verifying import salted
from plantain.bench.edition.versions import EDITION, Edition
from plantain.files.opening import read_regular
from plantain.files.writing import create, replace_file
from plantain.records import InputError
from plantain.records.counts import counted

HIDDEN = "truth and region are hidden: their holder scores"
_KEY_BYTES = 32
_MOST_KEY_BYTES = 1024
"""Size of a key's file, above which it is none."""
Watch = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class HiddenParts:
    """What was made: how many samples were hidden, of how many, and from how many sources."""

    public: Benchmark
    private: Benchmark
    hidden: int
    samples: int
    clusters: int


def hide(
    bench: Benchmark,
    fraction: float,
    key: bytes,
    public: Path,
    private: Path,
    *,
    places: Sequence[Path] = (),
    watch: Watch = lambda done, total: None,
) -> HiddenParts:
    """Splits a benchmark.

    Args:
        bench: in our own format.
        fraction: of the samples with a truth that are hidden, above 0 and below 1; whole sources, drawn by the key.
        key: salts the hashes and draws the sources; whoever has it can check the private part.
        public, private: new folders.
        places: where the truths must not be shown: releases, catalogues, runs, benchmarks, folders.
        watch: told how many places were looked through, and of how many.

    Raises:
        InputError: a bad fraction or folder, too few sources, or truths that are public already.
    """
    if not 0 < fraction < 1:
        raise InputError(f"--fraction {fraction:g}: above 0 and below 1")
    if not (bench.root / OWN).is_file():
        raise InputError(f"{bench.root}: only a benchmark in plantain's own format can be hidden")
    for out in (public, private):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"{out}: exists and is not an empty folder; give a new one")
    _refuse_nested(bench.root, public, private)
    chosen = _drawn(bench, fraction, key)
    _refuse_public(bench, chosen, places, watch)
    ids = {sample.id for sample in chosen}
    shown = _write(
        bench, bench.samples, public, lambda row: _without_truth(row, bench, key) if row["id"] in ids else row
    )
    held = _write(bench, chosen, private, lambda row: row, {"public_digest": shown.digest}, " (private part)")
    return HiddenParts(shown, held, len(chosen), len(bench.samples), len({s.cluster for s in chosen}))


def read_key(path: Path, *published: Path) -> bytes:
    """The key in a file, made where there is none: 32 random bytes, in digits that only its owner may read.

    Raises:
        InputError: it is no such file, or lies in one of the `published` folders, or it could be handed on with it.
    """
    for folder in published:
        if path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"--key {path}: keep the key out of {folder}, or it could be handed on with it")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with create(path, 0o600) as file:
            file.write(secrets.token_hex(_KEY_BYTES).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    kept = read_regular(path, f"--key {path}", _MOST_KEY_BYTES)
    try:
        key = bytes.fromhex(kept.decode("ascii").strip())
    except ValueError as error:
        raise InputError(f"--key {path}: expected {2 * _KEY_BYTES} hexadecimal digits") from error
    if len(key) != _KEY_BYTES:
        raise InputError(f"--key {path}: expected {2 * _KEY_BYTES} hexadecimal digits")
    return key


def _refuse_nested(*folders: Path) -> None:
    """A private part within a public one would be published with it."""
    for one, other in itertools.permutations(folders, 2):
        if one.resolve().is_relative_to(other.resolve()):
            raise InputError(f"{one}: lies in {other}; the benchmark and its two parts take a folder each")


def _drawn(bench: Benchmark, fraction: float, key: bytes) -> list[Sample]:
    """Whole sources in the order of their keyed hashes, until the fraction is reached."""
    clusters: dict[str, list[Sample]] = defaultdict(list)
    for sample in bench.samples:
        clusters[sample.cluster].append(sample)
    able = {name: own for name, own in clusters.items() if any(s.changed or s.roi for s in own)}
    order = sorted(able, key=lambda name: hmac.new(key, f"draw\x1f{name}".encode(), hashlib.sha256).digest())
    wanted = fraction * sum(len(own) for own in able.values())
    chosen: list[Sample] = []
    for name in order:
        if len(chosen) >= wanted:
            break
        chosen += able[name]
    if not chosen or len(chosen) == sum(len(own) for own in able.values()):
        raise InputError(
            f"{bench.root}: {counted(len(able), 'source')} with a truth; too few to hide {100 * fraction:g} % "
            f"and show the rest"
        )
    place = {sample.id: i for i, sample in enumerate(bench.samples)}
    return sorted(chosen, key=lambda sample: place[sample.id])


def _refuse_public(bench: Benchmark, chosen: Sequence[Sample], places: Iterable[Path], watch: Watch) -> None:
    """Raises InputError where a truth that is to be hidden stays to be seen, here or elsewhere."""
    ids = {sample.id for sample in chosen}
    here: dict[str, str] = {}
    for sample in bench.samples:
        here.setdefault(_pixels(bench.previous(sample)), f"the image before of sample {sample.id}")
        if sample.changed is not None and sample.id not in ids:
            here.setdefault(_pixels(bench.changed(sample)), f"the image after of sample {sample.id}")
    found = [
        (sample.id, here[digest])
        for sample in chosen
        if sample.changed is not None and (digest := _pixels(bench.changed(sample))) in here
    ]
    if found:
        raise InputError(
            f"{bench.root}: the truths of {len(found)} of {len(chosen)} drawn samples stay public "
            f"(sample {found[0][0]}: is {found[0][1]}); hide a benchmark whose pairs go one way only"
        )
    everywhere = list(places)
    for done, place in enumerate(everywhere):
        watch(done, len(everywhere))
        seen = truths_shown(bench, chosen, place)
        if seen:
            first, other = next(iter(seen.items()))
            raise InputError(
                f"{place}: shows the truths of {len(seen)} of {len(chosen)} drawn samples already "
                f"(sample {first}: {other}); what is public cannot be hidden"
            )


def _pixels(pixels: object) -> str:
    return hashlib.sha256(memoryview(pixels).tobytes()).hexdigest()  # type: ignore[arg-type]


def _without_truth(row: Mapping[str, object], bench: Benchmark, key: bytes) -> dict[str, object]:
    """A sample's row with promises in place of truth and region."""
    name = str(row["id"])
    hashes = dict(zip(("changed", "roi"), bench.hashes[name][1:], strict=True))
    known = row.get("sha256")
    notes = row.get("notes")
    return {
        **{k: v for k, v in row.items() if k not in ("changed", "roi")},
        "sha256": {k: v for k, v in known.items() if k == "previous"} if isinstance(known, dict) else {},
        "notes": [*(notes if isinstance(notes, list) else []), HIDDEN],
        "hidden": {what: salted(key, name, what, digest) for what, digest in hashes.items() if digest},
    }


def _write(
    bench: Benchmark,
    samples: Sequence[Sample],
    out: Path,
    change: Callable[[Mapping[str, object]], Mapping[str, object]],
    facts: Mapping[str, object] | None = None,
    name: str = "",
) -> Benchmark:
    """A benchmark of these samples with their rows changed; a version that the whole has is theirs too."""
    data = orjson.loads((bench.root / OWN).read_bytes())
    ids = {sample.id for sample in samples}
    data["samples"] = [dict(change(row)) for row in data["samples"] if row["id"] in ids]
    data["name"] = f"{bench.name}{name}"
    data |= dict(facts or {})
    for row in data["samples"]:
        for what in ("previous", "changed", "roi"):
            if row.get(what):
                target = out / row[what]
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(bench.root / row[what], target)
    out.mkdir(parents=True, exist_ok=True)
    edition = data.pop(EDITION, None)
    replace_file(out / OWN, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    if isinstance(edition, dict):
        digest = Benchmark.load(out).digest
        written = Edition(
            bench.named[0], digest, "A part of it is hidden." if not name else "The hidden part."
        )
        row = {"version": written.version, "digest": written.digest, "note": written.note}
        data = {EDITION: {"version": written.version, "digest": digest, "changes": [row]}, **data}
        replace_file(out / OWN, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")
    return Benchmark.load(out)
