from __future__ import annotations

import json
from pathlib import Path

import pytest

from plantain.privacy.licences import decide_parts, licence_files
from plantain.records import InputError
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from release.runs import Licence, make_run


def source(licence: str) -> dict[str, dict[str, str | int]]:
    return {"somewhere": {"licence": licence, "version": "2.1", "images": 3}}


@pytest.mark.parametrize(
    ("licence", "spdx", "duty"),
    [
        ("open", "CC-BY-4.0", ""),
        ("attribution", "CC-BY-4.0", "credit the source"),
        ("unknown", "LicenseRef-Source-Unknown", "find out"),
        ("credentialed", "LicenseRef-Source-Agreement", "only under: DUA 7"),
    ],
)
def test_images_have_the_licence_that_their_source_allows(licence: str, spdx: str, duty: str) -> None:
    images, records = decide_parts(source(licence), "DUA 7")
    assert images.licence.spdx == spdx and images.duty.startswith(duty) and bool(images.duty) == bool(duty)
    assert records.part == "records" and records.licence.spdx == "ODC-By-1.0"


def test_each_source_is_decided_by_itself() -> None:
    sources = {
        "a": {"licence": "open", "images": 1},
        "b": {"licence": "unknown", "images": 2},
        "c": {"licence": "credentialed", "images": 3},
    }
    parts = decide_parts(sources, "agreement 12")
    assert [part.agreement for part in parts] == ["", "", "agreement 12", ""]
    files = licence_files(parts)
    assert "agreement 12" in files["LICENSES/LicenseRef-Source-Agreement.txt"].decode()
    told = json.loads(files["LICENSES/parts.json"])
    assert [part["licence"] for part in told] == [part.licence.spdx for part in parts]
    assert {part["file"] for part in told} == files.keys() - {"LICENSES/parts.json"}


def test_release_of_a_credentialed_source_names_its_agreement_everywhere(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", images=3, licence=Licence.CREDENTIALED)
    out = tmp_path / "out"
    with pytest.raises(InputError, match="--redistribution-approved"):
        export_run(run, out, ExportOptions(("med-banana",)))
    export_run(
        run,
        tmp_path / "approved",
        ExportOptions(("parquet",), redistribution_approved="PhysioNet 4711"),
    )
    out = tmp_path / "approved"
    assert "license: other" in (out / "README.md").read_text()
    for name in ("README.md", "DATASHEET.md", "LICENSES/parts.json"):
        assert "PhysioNet 4711" in (out / name).read_text(), name
    assert verify_release(out, against=run).problems == ()
