from __future__ import annotations

import json
from pathlib import Path

import pytest

from plantain.cli import main
from plantain.cli.findings import how_23_is_reached
from plantain.findings import load_taxonomy


def test_findings_table_names_everything_and_explains_23(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for word in ("Pneumothorax", "meningioma", "Hypertension", "notumor", "Pleural Other"):
        assert word in out
    assert "= 23" in out


def test_how_23_is_reached_counts_the_data() -> None:
    said = how_23_is_reached(load_taxonomy())
    assert "(11 + 1 No Finding) + (3 + 1 notumor) + (6 + 1 normal) = 23" in said


def test_findings_json_is_the_whole_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "--modality", "brain_mri", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == ["notumor", "glioma", "meningioma", "pituitary"]
    assert rows[1]["differentials"][0]["name"] == "metastasis"


def test_findings_shows_one_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "pleural_effusion"]) == 0
    out = capsys.readouterr().out
    assert "removal restores" in out
    assert "Pleural Effusion" in out


def test_findings_normal_is_shown_for_every_modality(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["findings", "normal", "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == ["No Finding", "notumor", "normal"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["findings", "--modality", "fundos"], "did you mean 'fundus'"),
        (["findings", "glioms", "--modality", "brain_mri"], "did you mean 'glioma'"),
        (["findings", "Support Devices"], "unknown finding 'Support Devices'"),
        (
            ["findings", "Pleural Efusion"],
            "unknown finding 'Pleural Efusion'; did you mean 'Pleural Effusion'?",
        ),
        (["findings", "--findings", "absent.toml"], "absent.toml: cannot be read"),
    ],
)
def test_findings_bad_input_is_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert line in err
    assert err.count("\n") == 1


def test_findings_shows_own_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'modality = "fundus"\n[[finding]]\nname = "Nevus"\ntitle = "choroidal nevus"\nanatomy = "choroid"\n'
        'source = "own [1]"\nsigns = ["flat slate-grey spot"]\nrestores = ["even choroid"]\n'
    )
    assert main(["findings", "Nevus", "--findings", str(path)]) == 0
    assert "own [1]" in capsys.readouterr().out
