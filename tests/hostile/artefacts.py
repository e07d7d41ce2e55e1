"""Things that a stranger could send, made by code, each with the commands that read its kind."""

from __future__ import annotations

import functools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from pydicom import dcmread
from pydicom.data import get_testdata_file

from bench.scored_run import make_all
from bench.small_bench import small_bench
from pipeline.quick import quick_catalogue
from plantain import rubrics
from plantain.bench.submission.packing import pack_run
from plantain.release.export import export_run
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.plan import ExportOptions
from release.runs import make_run
from review.study_on_paper import small_study
from train.probe.heads import catalogue_of, labelled

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


def make_probe(root: Path) -> None:
    """A probe and a catalogue that it is measured on; apart, since it is trained."""
    from plantain.train.probe.learning import ProbeSchedule
    from plantain.train.probe.training import train_probe

    (root / "probe").mkdir()
    train_probe(
        labelled(60), ProbeSchedule(epochs=1, batch=16, width=8, shares=None), 0, root / "probe" / "probe"
    )
    catalogue_of(root / "probe" / "catalogue", 12)


def _make_later(root: Path) -> None:
    """What the later rooms read: submissions, reader studies, published pairs, bills, rubrics."""
    make_all(root / "submission", organs=("Eyes",), per_organ=6)
    pack_run(root / "submission" / "run", root / "submission" / "bundle")
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
    (root / "pairs" / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    make_run(root / "bill" / "run", images=2)
    (root / "bill" / "bill.csv").write_text("id,cost\nx,1\n", encoding="utf-8")
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
    "a link to a file that is not there yet": lambda path, out: _link(path, out.parent / "new"),
    "a link to the device that never ends": lambda path, out: _link(path, "/dev/zero"),
    "a link to itself": lambda path, out: _link(path, path.name),
    "a pipe": lambda path, out: _pipe(path),
    "a folder": lambda path, out: _folder(path),
}
WRITTEN: dict[str, bytes] = {
    "nothing": b"",
    "zeros": b"\0" * 5000,
    "nested JSON": b'{"a":' + b"[" * 100_000,
    "a long number": b'{"version": ' + b"9" * 5000 + b', "facts": ' + b"9" * 5000 + b"}",
    "a list": b"[1, 2]",
    "null": b"null",
}

RUN = ("status {it}", "report {it}", "show {it}", "export {it} --to {new} --licence CC-BY-4.0")
RUN_WRITES = ("retry {it} --outcome refused", "withdraw {it} --group patient-1")
RELEASE = ("verify {it}", "import {it} --run {new}")
BENCHMARK = ("bench check {it}", "bench describe {it} --to {new}")
CATALOGUE = ("quarantine {it}/catalogue", "plan {it}/r.toml", "withdraw {it}/catalogue --image retina-0")
INGEST = ("ingest folder {it} --modality fundus --licence open --skip-text --out {new}",)
DICOM = ("ingest dicom {it} --modality brain_mri --skip-text --out {new}",)

SUBMISSION = (
    "bench submit-check {it}/bundle --bench {it}/bench",
    "bench rescore {it}/bundle --bench {it}/bench",
    "bench site {it}/bundle --bench {it}/bench --to {new}",
    "bench table {it}/run",
    "bench score {it}/run --judge none --metrics psnr --bench {it}/bench",
    "bench pack {it}/run --to {new}",
)
STUDY = (
    "review results {it}/study",
    "review export {it}/study --to {new}",
    "review plan --effect 0.1 --pilot {it}/study",
)
PROBE = (
    "train probe-check {it}/probe {it}/catalogue",
    "audit --judge probe/{it}/probe --pairs 1 --kinds identical",
)
PAIRS = (
    "import {it}/pairs.csv --layout pairs --run {new}",
    "import {it}/pairs.jsonl --layout pairs --run {new}",
)
BILL = ("reconcile {it}/run {it}/bill.csv --provider gemini",)
RUBRIC = ("plan {it}/r.toml", "build {it}/r.toml --run {new}")

PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "run": (
        (
            "journal.sqlite",
            "journal.sqlite-wal",
            "journal.sqlite-shm",
            "lock",
            "report.html",
            ".report.html.part",
            "report.html.part",
            "report.json",
            "blobs",
            "blobs/*",
            "blobs/*/*",
            "provenance.jsonl",
        ),
        RUN + RUN_WRITES,
    ),
    "release": (
        (
            "SHA256SUMS",
            "run.json",
            "manifest.parquet",
            "trajectories/trajectories.jsonl",
            "data/*/*.parquet",
            "wds/*.tar",
            "*-edit/*/*.jpeg",
            "*-edit",
            "*-edit/all_conversations.json",
            "provenance.jsonl",
            "extra",
        ),
        RELEASE,
    ),
    "benchmark": (
        ("benchmark.json", "previous/1.png", "changed/1.png", "previous_mask/1.png", "previous", "extra"),
        BENCHMARK,
    ),
    "catalogue": (
        (
            "catalogue/catalogue.sqlite",
            "catalogue/catalogue.sqlite-wal",
            "catalogue/images",
            "catalogue/images/*",
            "catalogue/rejected.csv",
            "catalogue/near_duplicates.csv",
            "r.toml",
        ),
        CATALOGUE,
    ),
    "source": (("AMD/1.jpg", "AMD", "labels.csv", "labels.xlsx"), INGEST),
    "dicom": (("a.dcm", "b.dcm", "labels.csv"), DICOM),
    "submission": (
        (
            "bundle/bundle.json",
            "bundle/outputs.jsonl",
            "bundle/scores.jsonl",
            "bundle/SHA256SUMS",
            "bundle/outputs",
            "bundle/outputs/*",
            "bundle/extra",
            "run/journal.sqlite",
            "run/blobs/*/*",
        ),
        SUBMISSION,
    ),
    "study": (("study/study.json", "study/ratings.sqlite", "study/pictures", "study/pictures/*"), STUDY),
    "probe": (("probe/probe.json", "probe/*.safetensors", "probe/extra"), PROBE),
    "pairs": (("pairs.csv", "pairs.jsonl", "a0.png", "b0.png"), PAIRS),
    "bill": (("bill.csv",), BILL),
    "rubric": (("rubric.toml",), RUBRIC),
}
NAMED = frozenset({"pairs.csv", "pairs.jsonl", "bill.csv", "rubric.toml"})
"""Files that the user, or the user's recipe, names: a link there is the user's own, and is followed."""

LATER = frozenset({"submission", "study", "probe", "pairs", "bill", "rubric"})
BROKEN_TEXT = frozenset(
    {"benchmark.json", "run.json", "trajectories/trajectories.jsonl", "provenance.jsonl"}
) | {
    "*-edit/all_conversations.json",
    "SHA256SUMS",
    "catalogue/catalogue.sqlite",
    "journal.sqlite",
    "lock",
    "manifest.parquet",
    "bundle/bundle.json",
    "bundle/outputs.jsonl",
    "bundle/scores.jsonl",
    "study/study.json",
    "study/ratings.sqlite",
    "probe/probe.json",
    "probe/*.safetensors",
    *NAMED,
}

TOML: dict[str, str] = {
    "nested arrays": "a = " + "[" * 10_000 + "]" * 10_000,
    "nested tables": "a = " + "{b = " * 10_000 + "1" + "}" * 10_000,
    "a long number": "seed = " + "9" * 5000,
    "a long number in hex": "seed = 0x" + "f" * 5000,
    "dots": ".".join(["a"] * 10_000) + " = 1",
    "a thousand sections": "".join(f"[a{n}]\n" for n in range(1000)),
    "a name of a megabyte": f'name = "{"x" * 1_000_000}"',
    "nothing": "",
    "other letters": 'name = "\u202e\x7f"',
}
ADDRESSES = (
    *("http://[::1].evil.example", "http://[::1", "http://127.0.0.1\\\\@evil.example", "file:///etc/passwd"),
    *("http://a:b@c", "http://" + "[" * 3000, "http://a:99999999", "gopher://x", "", "//x"),
)
TABLES: dict[str, bytes] = {
    "cells that run": b"file,labels\nAMD/1.jpg,=cmd|calc\n=1+1,AMD\n",
    "a long cell": b'file,labels\n"' + b"x" * 300_000 + b'",AMD\n',
    "a line without end": b"file,labels\n" + b"x" * 5_000_000,
    "many columns": b",".join(b"c%d" % n for n in range(9000)) + b"\n",
    "a quote without end": b'file,labels\n"AMD/1.jpg,AMD\n' * 1000,
    "zeros": b"\0" * 100_000,
    "no UTF-8": b"file,labels\n\xff\xfe,AMD\n",
    "paths that lead out": b"file,labels\n../../etc/passwd,AMD\n/etc/passwd,AMD\n",
    "many rows": b"file,labels\n" + b"".join(b"AMD/x%d.jpg,AMD\n" % n for n in range(20_000)),
    "a bomb": b"PK\x03\x04" + b"\0" * 1000,
}
HEADERS: dict[str, dict[str, object]] = {
    "an endless slope": {"RescaleSlope": "inf", "RescaleIntercept": "0"},
    "a slope of nothing": {"RescaleSlope": "nan", "RescaleIntercept": "0"},
    "a window of nothing": {"WindowCenter": "inf", "WindowWidth": "nan"},
    "a window far away": {"WindowCenter": "1e30", "WindowWidth": "1"},
    "too many pixels": {"Rows": 65535, "Columns": 65535},
    "no pixels": {"Rows": 0, "Columns": 0},
    "many frames": {"NumberOfFrames": "999999999"},
    "odd bits": {"BitsStored": 1, "HighBit": 99},
    "a long name": {"PatientName": "x" * 60_000, "SeriesDescription": "\x1b[31m" * 1000},
    "a name that runs": {"PatientID": "=cmd|calc"},
}


def artefacts() -> Iterator[Artefact]:
    """All of them, in a fixed order."""
    for kind, (places, commands) in PLACES.items():
        for place in places:
            for how, plant in PLANTED.items():
                if place in NAMED and how.startswith("a link to a f"):
                    continue
                yield Artefact(kind, f"{place} is {how}", functools.partial(_at, place, plant), commands)
            for how, data in WRITTEN.items() if place in BROKEN_TEXT else ():
                put = functools.partial(_written, data)
                yield Artefact(kind, f"{place} is {how}", functools.partial(_at, place, put), commands)
    for how, text in TOML.items():
        spoil = functools.partial(_at, "r.toml", functools.partial(_written, text.encode()))
        yield Artefact(
            "catalogue", f"a recipe of {how}", spoil, ("plan {it}/r.toml", "build {it}/r.toml --run {new}")
        )
        yield Artefact("catalogue", f"findings of {how}", spoil, ("findings --findings {it}/r.toml",))
    for address in ADDRESSES:
        more = f'[providers.openai-compatible]\nbase_url = "{address}"'
        text = RECIPE.format(data="", more=more).replace("offline/templates", "openai-compatible/m")
        spoil = functools.partial(_at, "r.toml", functools.partial(_written, text.encode()))
        yield Artefact("catalogue", f"an address {address[:30]}", spoil, ("plan {it}/r.toml",))
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
