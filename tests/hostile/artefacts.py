"""Things that a stranger could send, made by code, each with the commands that read its kind."""

from __future__ import annotations

import os
import shutil
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
    """A place of a template, and what is there instead."""

    kind: str
    place: str
    how: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.place} is {self.how}"


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


def _gone(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)


WRITTEN: dict[str, bytes] = {
    "empty": b"",
    "zeros": b"\0" * 5000,
    "nested JSON": b'{"a":' + b"[" * 100_000,
    "a list": b"[1, 2]",
    "nested TOML": b"a = " + b"[" * 10_000 + b"]" * 10_000,
    "a number of 5000 digits": b"seed = " + b"9" * 5000,
    "cells that run": b"file,labels\nAMD/1.jpg,=cmd|calc\n=1+1,AMD\n",
    "a quote without end": b'file,labels\n"AMD/1.jpg,AMD\n' * 1000,
    "paths that lead out": b"file,labels\n../../etc/passwd,AMD\n/etc/passwd,AMD\n",
}
COMMANDS = {
    "run": (
        *("status {it}", "report {it}", "show {it}", "export {it} --to {new} --licence CC-BY-4.0"),
        *("run retry {it} --outcome refused", "run withdraw {it} --group patient-1"),
    ),
    "release": ("verify {it}", "import {it} --run {new}"),
    "benchmark": ("bench check {it}", "bench describe {it} --to {new}"),
    "catalogue": (
        *("run quarantine {it}/catalogue", "plan {it}/r.toml", "build {it}/r.toml --run {new}"),
        "run withdraw {it}/catalogue --image retina-0",
    ),
    "source": ("ingest folder {it} --modality fundus --licence open --skip-text --to {new}",),
    "dicom": ("ingest dicom {it} --modality brain_mri --skip-text --to {new}",),
    "study": ("review results {it}/study", "review export {it}/study --to {new}"),
    "pairs": ("import {it}/pairs.csv --run {new}",),
    "rubric": ("plan {it}/r.toml", "build {it}/r.toml --run {new}"),
}
"""The commands that read each kind."""

SPOILT = (
    ("run", "blobs/*/*", "a link to a file outside"),
    ("run", "journal.sqlite", "zeros"),
    ("release", "data/*/*.parquet", "a link to a folder outside"),
    ("release", "SHA256SUMS", "a pipe"),
    ("release", "trajectories/trajectories.jsonl", "nested JSON"),
    ("benchmark", "previous/1.png", "a link to a device without end"),
    ("benchmark", "benchmark.json", "nested JSON"),
    ("catalogue", "catalogue/catalogue.sqlite", "a folder"),
    ("catalogue", "r.toml", "nested TOML"),
    ("catalogue", "r.toml", "a number of 5000 digits"),
    ("catalogue", "r.toml", "an address that is none"),
    ("source", "AMD/1.jpg", "a link to a file outside"),
    ("source", "labels.csv", "cells that run"),
    ("source", "labels.csv", "a quote without end"),
    ("source", "labels.csv", "paths that lead out"),
    ("dicom", "a.dcm", "a pipe"),
    ("dicom", "a.dcm", "a header of too many pixels"),
    ("study", "study/study.json", "a list"),
    ("pairs", "pairs.csv", "empty"),
    ("rubric", "rubric.toml", "zeros"),
)
"""Kind, place and what is there instead: one representative of each kind of attack."""

ARTEFACTS = tuple(Artefact(*row) for row in SPOILT)


def spoil(artefact: Artefact, folder: Path, outside: Path) -> None:
    """Spoil the first path that the place finds in a copied template; `outside` is a file outside the folder."""
    found = sorted(folder.glob(artefact.place))
    path, how = found[0] if found else folder / artefact.place, artefact.how
    if how == "a header of too many pixels":
        dataset = dcmread(path)
        dataset.Rows = dataset.Columns = 65535
        dataset.save_as(path)
        return
    _gone(path)
    if how.startswith("a link"):
        targets = {"file": outside, "folder": outside.parent, "device": Path("/dev/zero")}
        path.symlink_to(targets[how.split()[4]])
    elif how == "a pipe":
        os.mkfifo(path)
    elif how == "a folder":
        path.mkdir()
    elif how == "an address that is none":
        more = '[providers.openai-compatible]\nbase_url = "http://127.0.0.1\\\\@evil.example"'
        path.write_text(
            RECIPE.format(data="", more=more).replace("offline/templates", "openai-compatible/m"),
            encoding="utf-8",
        )
    else:
        path.write_bytes(WRITTEN[how])
