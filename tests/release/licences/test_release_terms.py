"""Licences that an owner names appear wherever the release states licences, and survive an import."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cffconvert.cli.create_citation import create_citation
from ruamel.yaml import YAML

from fakes.commands import json_of, plantain, refused
from plantain.privacy.licences import KNOWN, decide_parts, licence_files
from plantain.records import InputError, Licence
from plantain.release.cards import citation
from plantain.release.export import export_run
from plantain.release.importing.importing import import_release
from plantain.release.licensing import named_terms
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from release.facts import facts
from release.runs import tree

CLASSES = {
    "mine": Licence.OPEN,
    "theirs": Licence.ATTRIBUTION,
    "odd": Licence.UNKNOWN,
    "closed": Licence.CREDENTIALED,
}
MINE = "folder of mine"
"""The dataset of every third image of the runs made here; the others are of ODIR-5K."""


def test_a_plain_licence_applies_only_to_sources_that_leave_the_choice() -> None:
    assert named_terms(["CC-BY-NC-4.0"], CLASSES) == dict.fromkeys(("mine", "theirs"), KNOWN["CC-BY-NC-4.0"])


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("CC-BY-SA-4", "did you mean CC-BY-SA-4.0"),
        ("nothing like it", "it takes an SPDX id"),
        ("nowhere=CC0", "it takes an SPDX id"),
        ("closed=CC0-1.0", "of class credentialed"),
    ],
)
def test_an_unusable_licence_is_refused_in_one_line(given: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as error:
        named_terms([given], CLASSES)
    assert "\n" not in str(error.value) and "--licence" in str(error.value)


def test_a_licence_of_your_own_appears_in_every_file_and_survives_an_import(
    little_run: Path, tmp_path: Path
) -> None:
    licences = ("CC-BY-NC-SA-4.0", f"{MINE}=https://lab.example/terms?of=images")
    out = tmp_path / "out"
    export_run(little_run, out, ExportOptions(("parquet",), licences=licences))
    kept = {part["dataset"]: part for part in json.loads((out / "LICENSES" / "parts.json").read_text())}
    assert kept["ODIR-5K"]["licence"] == "CC-BY-NC-SA-4.0"
    assert (
        kept[MINE]["licence"].startswith("LicenseRef-lab-example-terms-") and kept[MINE]["decided"] == "owner"
    )
    assert "https://lab.example/terms?of=images\n" in (out / kept[MINE]["file"]).read_text()
    for name in ("README.md", "croissant.json"):
        text = (out / name).read_text()
        assert "lab.example/terms" in text or kept[MINE]["licence"] in text, name
        assert "CC-BY-NC-SA-4.0" in text or "by-nc-sa/4.0" in text, name
    assert "license: other" in (out / "README.md").read_text()
    assert verify_release(out, against=little_run).problems == ()

    import_release(out, tmp_path / "imported")
    export_run(tmp_path / "imported", tmp_path / "again", ExportOptions(("parquet",)))
    assert tree(tmp_path / "again") == tree(out)
    with pytest.raises(InputError, match="keep the licence they came under"):
        export_run(tmp_path / "imported", tmp_path / "no", ExportOptions(("parquet",), licences=("CC0-1.0",)))
    assert not (tmp_path / "no").exists()


def test_export_refuses_edits_without_a_named_licence(little_run: Path, tmp_path: Path) -> None:
    command = ["export", little_run, "--layout", "trajectory", "--to"]
    complaint = refused(*command, tmp_path / "out")
    assert "the licence of the edits of ODIR-5K, folder of mine is missing: pass --licence" in complaint
    assert "--licence 'folder of mine=TERMS'" in complaint and not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="the licence of the edits of ODIR-5K, folder of mine is missing"):
        export_run(little_run, tmp_path / "out", ExportOptions(("trajectory",)))
    assert not (tmp_path / "out").exists()
    assert "edits of folder of mine is missing" in refused(
        *command, tmp_path / "half", "--licence", "ODIR-5K=CC0-1.0"
    )
    licences = json_of(*command, tmp_path / "own", "--licence", "CC0-1.0")["licences"]
    assert {"part": f"images of {MINE}", "licence": "CC0-1.0", "decided": "owner"} in licences
    # A source that is not in the run is a remark; its terms are checked all the same.
    given = ("--licence", "CC0-1.0", "--licence", "brain-tumor-mri=CC-BY-4.0")
    done = plantain(*command, tmp_path / "more", *given)
    remark = "licence brain-tumor-mri=CC-BY-4.0: not used, the run has no such source"
    assert done.returncode == 0 and remark in done.stdout
    for licence, why in (("brain-tumor-mri=CC-BYE", "CC-BY"), ("CC0", "did you mean CC0-1.0")):
        assert why in refused(*command, tmp_path / "no", "--licence", licence)


def test_the_licence_of_each_source_is_decided_separately() -> None:
    sources = {name: {"licence": allowed.value, "images": 1} for name, allowed in CLASSES.items()}
    sources["scikit-image"] = {"licence": "open", "images": 1}
    parts = decide_parts(sources, "DUA 7", {"theirs": KNOWN["MIT"]})
    agreement, unknown = "LicenseRef-Source-Agreement", "LicenseRef-Source-Unknown"
    assert {part.dataset: (part.licence.spdx, part.decided, part.agreement, part.duty) for part in parts} == {
        "mine": ("CC-BY-4.0", "default", "", ""),
        "theirs": ("MIT", "owner", "", "credit the source as its owner asks"),
        "odd": (unknown, "source", "", "find out the source's terms first"),
        "closed": (agreement, "source", "DUA 7", "only under: DUA 7"),
        "scikit-image": ("CC0-1.0", "source", "", ""),
        "": ("ODC-By-1.0", "default", "", ""),
    }
    files = licence_files(parts)
    assert "DUA 7" in files[f"LICENSES/{agreement}.txt"].decode()
    listed = json.loads(files["LICENSES/parts.json"])
    assert {part["file"] for part in listed} == files.keys() - {"LICENSES/parts.json"}


def validate(path: Path) -> None:
    create_citation(str(path), None).validate()


@pytest.mark.parametrize("name", ["plain", 'quo"ted: {', "- x\n- y", "ünïcode 你好"])
def test_citation_is_valid_with_any_name(name: str, tmp_path: Path) -> None:
    sources = {
        name: {"licence": "open", "version": "v: 1", "images": 4},
        "more": {"licence": "unknown", "images": 1},
    }
    path = tmp_path / "CITATION.cff"
    path.write_text(
        citation(replace(facts(), name=name), decide_parts(sources, ""), sources), encoding="utf-8"
    )
    validate(path)
    cited = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    assert cited["title"].startswith(name) and cited["type"] == "dataset"
    assert {reference["title"] for reference in cited["references"]} >= {name, "more"}
