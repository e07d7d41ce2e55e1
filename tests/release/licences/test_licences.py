from __future__ import annotations

import json

import pytest

from plantain.privacy.licences import decide_parts, licence_files


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
