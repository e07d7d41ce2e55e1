"""No id of a credentialed source, and nothing of a header, in any byte that leaves: releases, pages, benchmarks.

A small MIMIC-CXR folder as it is published, with planted headers and one DICOM file, goes through ingest, build, every
export layout, the report and a benchmark made of the build; then every file is unpacked and searched.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image
from pydicom import dcmread
from pydicom.data import get_testdata_file

from pipeline.quick import CallLog, quick_method, quick_recipe
from plantain.bench.benchmark.from_build import benchmark_from_build
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pipeline.run import run_build
from plantain.records import TaskState
from plantain.release.export import export_run
from plantain.release.layouts.contract import LAYOUTS
from plantain.release.naming import CROSSWALK
from plantain.release.plan import ExportOptions
from plantain.report.page import write_report, write_story
from plantain.runs.settings_file import ConsentGiven
from release.runs import every_byte
from sources.published import jpeg
from sources.test_mimic_cxr import Tree

SECRETS = ("ROE^JANE", "MRN7731455", "1950-01-01", "Dr. Planted", "ST ELSEWHERE")
"""Planted in EXIF, XMP, ICC, a JPEG comment and DICOM tags."""

FINDINGS = ("Pleural Effusion", "Consolidation", "Lung Lesion")


@dataclass(frozen=True)
class Made:
    """The made files, and every id that must stay inside."""

    root: Path
    ids: frozenset[str]

    @property
    def run(self) -> Path:
        return self.root / "run"


def with_headers(data: bytes) -> bytes:
    """Return a JPEG that names its patient in every place where a header can."""
    image = Image.open(io.BytesIO(data))
    exif = Image.Exif()
    exif[0x010E], exif[0x013B] = SECRETS[0], SECRETS[3]
    out = io.BytesIO()
    comment, xmp, icc = (word.encode() for word in (SECRETS[1], SECRETS[2], SECRETS[4]))
    image.save(out, "JPEG", quality=95, exif=exif, comment=comment, xmp=xmp, icc_profile=icc)
    assert all(word.encode() in out.getvalue() for word in SECRETS)
    return out.getvalue()


def dicom() -> bytes:
    """Return the radiograph of pydicom-data with a patient in its header."""
    path = get_testdata_file("RG1_UNCR.dcm", download=False)
    if path is None:
        pytest.skip("pydicom-data is not installed")
    dataset = dcmread(str(path))
    dataset.PatientName, dataset.PatientID, dataset.PatientBirthDate = SECRETS[0], SECRETS[1], "19500101"
    dataset.ReferringPhysicianName, dataset.InstitutionName = SECRETS[3], SECRETS[4]
    dataset.add_new(0x00091001, "LO", SECRETS[2])
    out = io.BytesIO()
    dataset.save_as(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("private")
    tree = Tree(root / "mimic-cxr-jpg")
    ids: set[str] = set()
    plan = ((10000032, 50000001, "PA"), (10000032, 50000002, "AP"), (10000048, 50000003, "PA,AP"))
    for number, (subject, study, views) in enumerate(plan):
        data = with_headers(jpeg("chest_xray", number))
        names = tree.study(subject, study, {"No Finding": "1.0"}, views, data=data if views == "PA" else None)
        ids |= {str(subject), str(study), *names}
    ids |= {
        "10000051",
        "50000004",
        *tree.study(10000051, 50000004, {"No Finding": "1.0"}, ending=".dcm", data=dicom()),
    }
    tree.write()
    ids |= {hashlib.sha256(path.read_bytes()).hexdigest() for path in (tree.root / "files").rglob("*.*")}
    # The parts of dicom ids too: eight hexadecimal digits of one are enough to find it.
    ids |= {part for name in ids if name.count("-") == 4 for part in name.split("-")}
    assert main(["ingest", "mimic-cxr", str(tree.root), "--to", str(root / "catalogue"), "--skip-text"]) == 0
    recipe = quick_recipe(root / "catalogue", findings=FINDINGS)
    consent = ConsentGiven(by="the owner", agreement="a letter")
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"consent": consent})})
    asyncio.run(run_build(recipe, root / "run", method=quick_method(CallLog(None), max_rounds=2)))
    with JournalReader.open(root / "run") as reader:
        assert reader.counts()[TaskState.SUCCESS] > 2
    return Made(root, frozenset(ids))


def leaks(path: Path, words: frozenset[str] | tuple[str, ...]) -> list[tuple[str, str]]:
    """Return where any of these words appears in or below a path, in names or bytes, in any case."""
    found = []
    wanted = {word: word.lower().encode() for word in words}
    for name, data in every_byte(path):
        low = data.lower() + name.lower().encode()
        found += [(name, word) for word, plain in wanted.items() if plain in low]
    return found


def test_the_run_and_the_crosswalk_contain_the_ids(made: Made) -> None:
    """The search itself finds them: in the run, and in the crosswalk that stays with it."""
    assert leaks(made.run / "journal.sqlite", made.ids)
    export_run(made.run, made.root / "searched", ExportOptions(("parquet",), redistribution_approved="DUA 1"))
    assert leaks(made.run / CROSSWALK, made.ids)
    assert leaks(made.root / "mimic-cxr-jpg", SECRETS)


def test_no_layout_contains_an_id(made: Made) -> None:
    out = made.root / "release"
    export_run(made.run, out, ExportOptions(LAYOUTS, redistribution_approved="DUA 1"))
    assert len([path for path in out.rglob("*") if path.is_file()]) > 10
    assert leaks(out, made.ids) == []
    assert main(["verify", str(out), "--against", str(made.run)]) == 0


def test_no_id_is_on_a_page_meant_for_sharing(made: Made) -> None:
    pages = made.root / "pages"
    pages.mkdir()
    write_report(made.run, pages / "report.html")
    with JournalReader.open(made.run) as reader:
        for row in reader.tasks():
            write_story(reader, row, pages / f"{row.id[:8]}.html")
    assert len(list(pages.iterdir())) > 4
    assert leaks(pages, made.ids) == []
    assert "withheld" in (pages / "report.html").read_text(encoding="utf-8")


def test_no_id_is_in_a_benchmark_made_of_the_build(made: Made) -> None:
    conversion = benchmark_from_build(made.run, made.root / "benchmark")
    assert conversion.real + conversion.synthetic > 4
    assert leaks(made.root / "benchmark", made.ids) == []
    written = json.loads((made.root / "benchmark" / "benchmark.json").read_bytes())
    # One patient stays one cluster.
    with JournalReader.open(made.run) as reader:
        groups = {row.id[:12]: reader.image(row.task.image_id).group for row in reader.tasks()}
    clusters: dict[str, set[str | None]] = {}
    for sample in written["samples"]:
        clusters.setdefault(sample["cluster"], set()).add(groups[sample["id"].partition("-")[0]])
    assert all(len(of) == 1 for of in clusters.values())
    assert len(clusters) == len({group for of in clusters.values() for group in of})


@pytest.mark.parametrize("command", ["status", "report --json", "export"])
def test_no_id_is_printed(command: str, made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--to", str(made.root / "refused")] if command == "export" else []
    main([*command.split(), *more, str(made.run)])
    shown = capsys.readouterr()
    assert [word for word in made.ids if word in shown.out + shown.err] == []


def test_no_header_is_kept_anywhere(made: Made) -> None:
    """Catalogue with its database, run with all blobs, releases, pages and the benchmark."""
    for name in ("catalogue", "run", "searched", "release", "pages", "benchmark"):
        if (made.root / name).exists():
            assert leaks(made.root / name, (*SECRETS, "19500101")) == [], name
    with sqlite3.connect(made.root / "catalogue" / "catalogue.sqlite") as database:
        assert database.execute("SELECT count(*) FROM image").fetchone()[0] >= 4
