"""Things that a stranger could send, made by code, each with the commands that read its kind."""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from pydicom import dcmread
from pydicom.data import get_testdata_file

from bench.small_bench import small_bench
from pipeline.quick import quick_catalogue
from plantain import rubrics
from plantain.release.export import export_run
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions
from release.runs import make_run
from review.study_on_paper import small_study

MED_BANANA_FILE = Path(rubrics.__file__).with_name("med_banana.toml")
RECIPE = """name = "r"
[data]
catalogue = "catalogue"
{data}
[models]
writer = "offline/templates"
editor = "offline/procedural"
judge = "offline/instruments"
{more}
"""


@dataclass(frozen=True)
class Artefact:
    """One thing, and how it is read.

    Attributes:
        kind: which of the templates is spoilt.
        name: which place of it, and how.
        spoil: changes the copied template in a folder; is told the path of a file outside.
        commands: command lines in words; {it} is the artefact, {new} a folder that is free.
    """

    kind: str
    name: str
    spoil: Callable[[Path, Path], None]
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def make_templates(root: Path) -> Path:
    """A whole run, release, benchmark, catalogue and source, to be copied and spoilt."""
    make_run(root / "run", images=4)
    export_run(
        root / "run", root / "release", ExportOptions(LAYOUTS, shard_bytes=60_000, licences=("CC-BY-4.0",))
    )
    small_bench(root / "benchmark", 3)
    quick_catalogue(root / "catalogue" / "catalogue", 1)
    (root / "catalogue" / "r.toml").write_text(RECIPE.format(data="", more=""), encoding="utf-8")
    (root / "source" / "AMD").mkdir(parents=True)
    picture = next((root / "release").rglob("*.jpeg")).read_bytes()
    for number in range(2):
        (root / "source" / "AMD" / f"{number}.jpg").write_bytes(picture + b"\0" * number)
    (root / "dicom").mkdir()
    shutil.copy(str(get_testdata_file("MR_small.dcm", download=False)), root / "dicom" / "a.dcm")
    _make_later(root)
    return root


def _make_later(root: Path) -> None:
    """Reader studies, published pairs and rubrics."""
    small_study(root / "study" / "study")
    (root / "pairs").mkdir()
    rows = []
    for number in range(3):
        for what in ("a", "b"):
            pixels = np.full((128, 128, 3), 40 * number + (what == "b"), np.uint8)
            cv2.imwrite(str(root / "pairs" / f"{what}{number}.png"), pixels)
        names = ("id", "original", "edited", "instruction", "finding", "modality", "direction")
        told = (str(number), f"a{number}.png", f"b{number}.png", "Add drusen.", "AMD", "fundus", "add")
        rows.append(dict(zip(names, told, strict=True)))
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    (root / "pairs" / "pairs.csv").write_text("\n".join(lines), encoding="utf-8")
    shutil.copytree(root / "catalogue", root / "rubric")
    shutil.copy(MED_BANANA_FILE, root / "rubric" / "rubric.toml")
    text = RECIPE.format(data="", more="").replace("[data]", 'rubric = "rubric.toml"\n[data]', 1)
    (root / "rubric" / "r.toml").write_text(text, encoding="utf-8")


# --- ways to spoil ------------------------------------------------------------------------------------------------


def _gone(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


def _link(path: Path, target: str | Path) -> None:
    _gone(path)
    path.symlink_to(target)


def _bytes(path: Path, data: bytes) -> None:
    _gone(path)
    path.write_bytes(data)


def _pipe(path: Path) -> None:
    _gone(path)
    os.mkfifo(path)


def _folder(path: Path) -> None:
    _gone(path)
    path.mkdir()


PLANTED: dict[str, Callable[[Path, Path], None]] = {
    "a link to a file outside": lambda path, out: _link(path, out),
    "a link to a folder outside": lambda path, out: _link(path, out.parent),
    "a link to the device that never ends": lambda path, out: _link(path, "/dev/zero"),
    "a pipe": lambda path, out: _pipe(path),
    "a folder": lambda path, out: _folder(path),
}
WRITTEN: dict[str, bytes] = {
    "nothing": b"",
    "zeros": b"\0" * 5000,
    "nested JSON": b'{"a":' + b"[" * 100_000,
    "a list": b"[1, 2]",
}

RUN = (
    *("status {it}", "report {it}", "show {it}", "export {it} --to {new} --licence CC-BY-4.0"),
    *("retry {it} --outcome refused", "withdraw {it} --group patient-1"),
)
RELEASE = ("verify {it}", "import {it} --run {new}")
BENCHMARK = ("bench check {it}", "bench describe {it} --to {new}")
CATALOGUE = ("quarantine {it}/catalogue", "plan {it}/r.toml", "withdraw {it}/catalogue --image retina-0")
INGEST = ("ingest folder {it} --modality fundus --licence open --skip-text --to {new}",)
DICOM = ("ingest dicom {it} --modality brain_mri --skip-text --to {new}",)
STUDY = ("review results {it}/study", "review export {it}/study --to {new}")
PAIRS = ("import {it}/pairs.csv --layout pairs --run {new}",)
RUBRIC = ("plan {it}/r.toml", "build {it}/r.toml --run {new}")

PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run": (("journal.sqlite", "journal.sqlite-wal", "lock", "report.html", "blobs", "blobs/*/*"), RUN),
    "release": (
        (
            *("SHA256SUMS", "run.json", "manifest.parquet", "trajectories/trajectories.jsonl"),
            *("data/*/*.parquet", "wds/*.tar", "*-edit", "*-edit/all_conversations.json", "extra"),
        ),
        RELEASE,
    ),
    "benchmark": (("benchmark.json", "previous/1.png", "previous", "extra"), BENCHMARK),
    "catalogue": (
        ("catalogue/catalogue.sqlite", "catalogue/images", "catalogue/rejected.csv", "r.toml"),
        CATALOGUE,
    ),
    "source": (("AMD/1.jpg", "AMD", "labels.csv", "labels.xlsx"), INGEST),
    "dicom": (("a.dcm", "labels.csv"), DICOM),
    "study": (("study/study.json", "study/ratings.sqlite", "study/pictures"), STUDY),
    "pairs": (("pairs.csv", "a0.png"), PAIRS),
    "rubric": (("rubric.toml",), RUBRIC),
}
"""Files of each kind that are spoiled, and the commands that read the kind."""

NAMED = frozenset({"pairs.csv", "rubric.toml", "r.toml"})
"""Files that the user, or the user's recipe, names: a link there is the user's own, and is followed."""

BROKEN_TEXT = (
    *("journal.sqlite", "lock", "SHA256SUMS", "run.json", "manifest.parquet", "benchmark.json", "pairs.csv"),
    *("trajectories/trajectories.jsonl", "*-edit/all_conversations.json", "catalogue/catalogue.sqlite"),
    *("study/study.json", "study/ratings.sqlite", "rubric.toml"),
)
TOML: dict[str, str] = {
    "nested arrays": "a = " + "[" * 10_000 + "]" * 10_000,
    "a long number": "seed = " + "9" * 5000,
    "a name of a megabyte": f'name = "{"x" * 1_000_000}"',
    "other letters": 'name = "\u202e\x7f"',
}
ADDRESSES = ("http://[::1", "http://127.0.0.1\\\\@evil.example", "file:///etc/passwd", "http://a:99999999")
TABLES: dict[str, bytes] = {
    "cells that run": b"file,labels\nAMD/1.jpg,=cmd|calc\n=1+1,AMD\n",
    "a line without end": b"file,labels\n" + b"x" * 5_000_000,
    "a quote without end": b'file,labels\n"AMD/1.jpg,AMD\n' * 1000,
    "no UTF-8": b"file,labels\n\xff\xfe,AMD\n",
    "paths that lead out": b"file,labels\n../../etc/passwd,AMD\n/etc/passwd,AMD\n",
}
HEADERS: dict[str, dict[str, object]] = {
    "an endless slope": {"RescaleSlope": "inf", "RescaleIntercept": "0"},
    "a window of nothing": {"WindowCenter": "inf", "WindowWidth": "nan"},
    "too many pixels": {"Rows": 65535, "Columns": 65535},
    "many frames": {"NumberOfFrames": "999999999"},
    "odd bits": {"BitsStored": 1, "HighBit": 99},
}


def artefacts() -> Iterator[Artefact]:
    """All of them, in a fixed order: each place in one way, by turns."""
    ways, texts = list(PLANTED.items()), list(WRITTEN.items())
    places = [(kind, place, commands) for kind, (own, commands) in PLACES.items() for place in own]
    for number, (kind, place, commands) in enumerate(places):
        how, plant = ways[number % len(ways)]
        if place in NAMED and how.startswith("a link to a f"):
            how, plant = "a pipe", PLANTED["a pipe"]
        yield Artefact(kind, f"{place} is {how}", functools.partial(_at, place, plant), commands)
        if place in BROKEN_TEXT:
            how, data = texts[number % len(texts)]
            put = functools.partial(_written, data)
            yield Artefact(kind, f"{place} is {how}", functools.partial(_at, place, put), commands)
    for how, text in TOML.items():
        spoil = functools.partial(_at, "r.toml", functools.partial(_written, text.encode()))
        yield Artefact("catalogue", f"a recipe of {how}", spoil, ("build {it}/r.toml --run {new}",))
        yield Artefact("catalogue", f"findings of {how}", spoil, ("findings --findings {it}/r.toml",))
    for address in ADDRESSES:
        more = f'[providers.openai-compatible]\nbase_url = "{address}"'
        text = RECIPE.format(data="", more=more).replace("offline/templates", "openai-compatible/m")
        spoil = functools.partial(_at, "r.toml", functools.partial(_written, text.encode()))
        yield Artefact("catalogue", f"an address {address}", spoil, ("plan {it}/r.toml",))
    for how, data in TABLES.items():
        spoil = functools.partial(_at, "labels.csv", functools.partial(_written, data))
        yield Artefact("source", f"a table of {how}", spoil, INGEST)
    for how, header in HEADERS.items():
        yield Artefact("dicom", f"a header of {how}", functools.partial(_header, header), DICOM)


def _at(place: str, how: Callable[[Path, Path], None], folder: Path, outside: Path) -> None:
    """Spoils the first path that a pattern finds, or the one that it names."""
    found = sorted(folder.glob(place)) if "*" in place else []
    how(found[0] if found else folder / place.replace("*", "x"), outside)


def _written(data: bytes, path: Path, outside: Path) -> None:
    _bytes(path, data)


def _header(header: dict[str, object], folder: Path, outside: Path) -> None:
    dataset = dcmread(folder / "a.dcm")
    for name, value in header.items():
        setattr(dataset, name, value)
    dataset.save_as(folder / "a.dcm")
