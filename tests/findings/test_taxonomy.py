from __future__ import annotations

from pathlib import Path

import pytest

from plantain.findings import PLACES, SIDES, load_taxonomy
from plantain.records import Finding, InputError

TAXONOMY = load_taxonomy()
MIMIC_COLUMNS = (
    "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum", "Fracture", "Lung Lesion",
    "Lung Opacity", "No Finding", "Pleural Effusion", "Pleural Other", "Pneumonia", "Pneumothorax",
)  # fmt: skip
"""The label columns of MIMIC-CXR-JPG in their order, without Support Devices, which is not a finding."""

OWN = """
modality = "chest_xray"
[[finding]]
name = "Hiatal Hernia"
title = "hiatal hernia"
anatomy = "behind the heart"
source = "own"
zones = ["retrocardiac"]
signs = ["round shadow with an air-fluid level behind the heart"]
restores = ["clear space behind the heart"]
[finding.visibility]
views = ["frontal"]
"""


def own(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_built_in_findings_make_the_papers_23() -> None:
    # 11 + 1, 3 + 1, 6 + 1: Med-Banana-50K 2.1 states 12, 4 and 7
    classes = {m: len(TAXONOMY.targets(m)) + 1 for m in TAXONOMY.modalities}
    assert classes == {"chest_xray": 12, "brain_mri": 4, "fundus": 7}
    assert sum(classes.values()) == 23
    assert [TAXONOMY.normal(m).name for m in TAXONOMY.modalities] == ["No Finding", "notumor", "normal"]


def test_every_mimic_column_has_its_finding() -> None:
    labels = {finding.labels["mimic-cxr"]: finding.name for finding in TAXONOMY.of("chest_xray")}
    assert tuple(sorted(labels)) == tuple(sorted(MIMIC_COLUMNS))
    assert all(label == name for label, name in labels.items())


def test_odir_letters_are_complete() -> None:
    assert {f.labels["odir-5k"] for f in TAXONOMY.of("fundus")} == set("NDGCAHM")


@pytest.mark.parametrize("finding", [f for f in TAXONOMY.findings if not f.normal], ids=lambda f: f.name)
def test_built_in_finding_fills_every_field(finding: Finding) -> None:
    assert finding.signs
    assert finding.secondary_signs or finding.name == "Lung Opacity"  # an umbrella term has none of its own
    assert finding.restores
    assert finding.differentials
    assert finding.limits
    assert finding.labels
    assert finding.synonyms
    assert set(finding.sides) <= set(SIDES)
    assert set(finding.zones) <= set(PLACES)
    assert finding.optional == (finding.name == "Pleural Other")


@pytest.mark.parametrize(
    ("modality", "text", "name"),
    [
        ("chest_xray", "Enlarged_Cardiomediastinum", "Enlarged Cardiomediastinum"),
        ("chest_xray", "pleural-effusion", "Pleural Effusion"),
        ("chest_xray", "NORMAL", "No Finding"),
        ("chest_xray", "Airspace Opacity", "Lung Opacity"),
        ("brain_mri", "no_tumor", "notumor"),
        ("brain_mri", "pituitary_tumor", "pituitary"),
        ("fundus", "D", "Diabetes"),
        ("fundus", "Diabetic Retinopathy", "Diabetes"),
        ("fundus", "a", "AMD"),
    ],
)
def test_match_label_reads_the_spellings_of_sources(modality: str, text: str, name: str) -> None:
    match = TAXONOMY.match_label(modality, text)
    assert match is not None
    assert match.name == name


@pytest.mark.parametrize("text", ["tumour", "", "___", "Support Devices"])
def test_match_label_returns_none_for_shared_or_unknown_words(text: str) -> None:
    assert TAXONOMY.match_label("brain_mri", text) is None


def test_get_suggests_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"'pneumothorx'.*did you mean 'Pneumothorax'"):
        TAXONOMY.get("chest_xray", "pneumothorx")
    with pytest.raises(InputError, match=r"modality 'chest': unknown; did you mean 'chest_xray'"):
        TAXONOMY.of("chest")


def test_own_finding_joins_a_known_modality(tmp_path: Path) -> None:
    taxonomy = load_taxonomy([own(tmp_path, OWN)])
    assert taxonomy.get("chest_xray", "Hiatal Hernia").zones == ("retrocardiac",)
    assert len(taxonomy.findings) == len(TAXONOMY.findings) + 1
    assert len(load_taxonomy().findings) == len(TAXONOMY.findings)  # a user's file leaves no trace


def test_own_modality_needs_a_normal_class(tmp_path: Path) -> None:
    text = OWN.replace("chest_xray", "knee_xray")
    with pytest.raises(InputError, match=r"own\.toml: normal: knee_xray needs exactly one"):
        load_taxonomy([own(tmp_path, text)])
    normal = '[[finding]]\nname = "normal"\nnormal = true\ntitle = "normal knee"\nanatomy = "knee"\nsource = "own"\n'
    taxonomy = load_taxonomy([own(tmp_path, text + normal)])
    assert taxonomy.normal("knee_xray").name == "normal"
    assert taxonomy.titles["knee_xray"] == "knee_xray"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("Hiatal Hernia", "pleural effusion"), "already defined for chest_xray"),
        (("anatomy =", "anatomi ="), "anatomi: unknown key; did you mean 'anatomy'"),
        (('title = "hiatal hernia"', ""), "title: is missing"),
        (('zones = ["retrocardiac"]', 'zones = "retrocardiac"'), "zones: "),
        (('source = "own"', 'source = "own"\nsides = ["lefft"]'), "sides: 'lefft'; did you mean 'left'"),
        (('source = "own"', 'source = "own"\nimplies = ["Lung Opacities"]'), "implies: 'Lung Opacities'"),
        (
            ('source = "own"', 'source = "own"\ndraw = [{ shape = "mas", level = [3], size = [1, 2] }]'),
            "draw: shape: 'mas'; did you mean 'mass'",
        ),
        (
            ('source = "own"', 'source = "own"\ndraw = [{ shape = "mass", levels = [3], size = [1, 2] }]'),
            "draw.0.levels: unknown key; did you mean 'level'",
        ),
        (
            ('source = "own"', 'source = "own"\nzone_visibility = { apical = {} }'),
            "zone_visibility: 'apical'",
        ),
        (('source = "own"', 'source = "own"\nsynonyms = ["hernia", "-"]'), "synonyms: '-' holds no letters"),
        (("Hiatal Hernia", "../climb"), "name: letters, digits"),
        (('signs = ["round', 'signs = []\n# ["round'), "signs and restores"),
        (('modality = "chest_xray"', ""), "modality: a name in lower case"),
        (("[[finding]]", "[[finding]"), "is not valid TOML"),
    ],
)
def test_a_faulty_own_file_is_refused_in_one_line(
    tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    assert change[0] in OWN
    path = own(tmp_path, OWN.replace(*change))
    with pytest.raises(InputError) as fault:
        load_taxonomy([path])
    assert str(path) in str(fault.value)
    assert complaint in str(fault.value)
    assert "\n" not in str(fault.value)


def test_own_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_taxonomy([tmp_path / "none.toml"])
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="is not valid TOML"):
        load_taxonomy([tmp_path / "latin.toml"])
