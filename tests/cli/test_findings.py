from __future__ import annotations

from pathlib import Path

import pytest

from fakes.commands import json_of, printed, refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ("Pneumothorax", "meningioma", "Hypertension", "notumor", "Pleural Other")),
        (["pleural_effusion"], ("restores", "Pleural Effusion")),
    ],
)
def test_findings_are_named_in_the_table_and_shown_in_full(
    arguments: list[str], words: tuple[str, ...]
) -> None:
    out = " ".join(printed("findings", *arguments).split())
    assert all(word in out for word in words)


def test_findings_json_is_the_whole_record() -> None:
    rows = json_of("findings", "--modality", "brain_mri")
    assert [row["name"] for row in rows] == ["notumor", "glioma", "meningioma", "pituitary"]
    assert rows[1]["differentials"][0]["name"] == "metastasis"


def test_findings_normal_is_shown_for_every_modality() -> None:
    assert [row["name"] for row in json_of("findings", "normal")] == ["No Finding", "notumor", "normal"]


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
def test_findings_bad_input_is_one_line(arguments: list[str], line: str) -> None:
    assert line in refused(*arguments)


def test_findings_shows_own_finding(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(
        'modality = "fundus"\n[[finding]]\nname = "Nevus"\ntitle = "choroidal nevus"\nanatomy = "choroid"\n'
        'source = "own [1]"\nsigns = ["flat slate-grey spot"]\nrestores = ["even choroid"]\n'
    )
    assert "own [1]" in printed("findings", "Nevus", "--findings", path)
