"""The files that MedEBench published, in the nestings of its repository, through `bench rank` and `bench table`.

Expected correlations are counted by hand from the paper's formula (1), and by scipy where there are ties.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from plantain.bench.leaderboard.humans import read_ratings
from plantain.bench.leaderboard.measures import measure, paper_name
from plantain.bench.leaderboard.published import published_scores
from plantain.bench.score.score import chosen
from plantain.cli import main
from plantain.records import InputError

pytestmark = pytest.mark.usefixtures("no_figures")

JUDGED = ("editing_accuracy", "contextual_preservation", "visual_quality")
SCORES = {
    "Gemini": {"38": (9, 5, 8), "53": (7, 5, 8), "64": (9, 5, 7)},
    "ICEdit": {"38": (6, 5, 8), "53": (8, 5, 6), "64": (6, 5, 7)},
    "SeedX": {"38": (3, 5, 4), "53": (2, 5, 3), "64": (3, 5, 7)},
    "IP2P": {"38": (1, 5, 2), "53": (1, 5, 1), "64": (-1, 5, 7)},
}
"""Model -> sample -> EA, CP, VQ; CP is constant, VQ has ties, one EA failed."""

RANKS = {"Teeth": {"38": (1, 2, 3, 4), "53": (1, 2, 3, 4)}, "Skin": {"64": (1, 2, 3, 3)}}
"""Organ -> sample -> ranks of the four models, the same in every dimension."""


def by_model() -> dict[str, object]:
    return {
        model: {
            sample: {f"gpt4o_{name}_detailed": value for name, value in zip(JUDGED, values, strict=True)}
            for sample, values in rows.items()
        }
        for model, rows in SCORES.items()
    }


def by_sample() -> dict[str, object]:
    turned: dict[str, dict[str, object]] = {}
    for model, rows in by_model().items():
        for sample, row in dict(rows).items():  # type: ignore[call-overload]
            turned.setdefault(sample, {})[model] = row
    return dict(turned)


def ranks(last: int = 4, spelt: Callable[[str], str] = str) -> dict[str, object]:
    return {
        organ: {
            sample: {name: dict(zip(map(spelt, SCORES), (*values[:3], min(values[3], last)), strict=True)) for name in
                     ("accuracy", "context", "quality")}
            for sample, values in rows.items()
        }
        for organ, rows in RANKS.items()
    }  # fmt: skip


def write(path: Path, document: object) -> str:
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def asked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["bench", *arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    return found if isinstance(found, dict) else {"rows": found}


@pytest.mark.parametrize("nesting", [by_model, by_sample])
@pytest.mark.parametrize("order", [1, -1])
def test_published_ranks_and_scores_are_read_by_content(
    nesting: object, order: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = write(tmp_path / "a.json", nesting())  # type: ignore[operator]
    # Table 2 has gemini_2_flash, the website Gemini 2 Flash; a null is not rated.
    more = {"Eyes": {"38": {"accuracy": {"seedx": None}}}}
    people = write(tmp_path / "b.json", ranks(spelt=str.lower) | more)
    found = asked(capsys, "rank", *[scores, people][::order])
    rows = {(row["metric"], row["dimension"]): row for row in found["rows"]}  # type: ignore[attr-defined]
    # Sample 38: rho 1; 53: the first two change places, d = 1, 1: 1 - 6 * 2 / 60 = 0.8; 64: three models, rho 1.
    assert rows["EA", "EA"]["spearman"] == pytest.approx((1 + 0.8 + 1) / 3)
    # A constant judge orders nothing; VQ ties two models of sample 38, and all of 64.
    assert rows["CP judge", "CP"]["spearman"] is None
    tied = spearmanr([8, 8, 4, 2], [-1, -2, -3, -4])[0]
    assert rows["VQ", "VQ"]["spearman"] == pytest.approx((tied + 1) / 2)
    # Formula (1) over the two ways to break the tie: d = 0, or d = 1, 1: the mean of 1 and 0.8 is 0.9.
    assert rows["VQ", "VQ"]["formula_1"] == pytest.approx((0.9 + 1) / 2)
    organs = {row["organ"]: row for row in found["organs"] if row["metric"] == row["dimension"] == "EA"}  # type: ignore[attr-defined]
    assert organs["Teeth"]["spearman"] == pytest.approx(0.9)
    assert organs["Skin"]["spearman"] == pytest.approx(1.0)
    assert "may be inflated" in str(found["remarks"])


def test_two_annotators_agree_by_spearman(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = write(tmp_path / "gpt.json", by_model())
    first, second = write(tmp_path / "one.json", ranks()), write(tmp_path / "two.json", ranks(last=3))
    found = asked(capsys, "rank", scores, "--ratings", first, "--ratings", second)
    agreed = found["agreement"][0]["spearman"][0]  # type: ignore[index]
    assert agreed["raters"] == ["one", "two"]
    tied = spearmanr([1, 2, 3, 4], [1, 2, 3, 3])[0]
    assert agreed["spearman"] == pytest.approx((2 * tied + 1) / 3)


def test_table_has_the_organs_of_the_published_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, people = write(tmp_path / "x.json", by_model()), write(tmp_path / "y.json", ranks())
    rows = asked(capsys, "table", scores, people)["rows"]
    cells = {(r["model"], r["organ"], r["metric"]): r for r in rows}  # type: ignore[attr-defined]
    assert cells["Gemini", "Teeth", "EA"]["mean"] == pytest.approx(0.8)
    assert cells["Gemini", "overall", "CP judge"]["mean"] == pytest.approx(0.5)
    assert cells["IP2P", "Skin", "EA"]["mean"] is None
    assert cells["ICEdit", "overall", "EA rank"]["mean"] == pytest.approx(2.0)
    assert main(["bench", "table", scores, people, "--paper"]) == 0
    assert "\nTable 3: rank correlation with raters, mean over images\n" in capsys.readouterr().out
    assert main(["bench", "table", people]) == 0
    printed = capsys.readouterr().out
    assert "y.json" in printed and "If these ranks are MedEBench's" in printed and "no judge" not in printed
    assert main(["bench", "table", scores, people, "--to", str(tmp_path / "out")]) == 0
    assert "next:" not in capsys.readouterr().out  # `view` takes no JSON file
    assert "may be inflated" in (tmp_path / "out" / "leaderboard.html").read_text(encoding="utf-8")


def test_another_file_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = ranks() | {"Eyes": {"7": {"accuracy": {"Gemini": "first"}}}}
    files = write(tmp_path / "a.json", by_model()), write(tmp_path / "b.json", broken)
    assert main(["bench", "rank", *files]) == 2
    expected = "Eyes, 7, accuracy, Gemini: expected numbers by sample, model and metric, not 'first'"
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("models", "complaint"),
    [(["diffusers/icedit"], "run has none"), (["outputs/ICedit", "outputs/IC_Edit"], "IC_Edit or ICedit")],
)
def test_ranks_belong_to_one_imported_model(models: list[str], complaint: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=complaint):
        read_ratings([Path(write(tmp_path / "people.json", ranks()))], ["38"], models)


def test_tables_use_the_papers_names_and_metrics_accept_them(tmp_path: Path) -> None:
    assert chosen(["Masked-SSIM", "MaskedSSIM "]) == {"cp_reference"}  # masked_ssim is ours
    with pytest.raises(InputError, match="Accuracy_D is a judge's score"):
        chosen(["psnr", "Accuracy_D"])
    assert chosen(["Masked SSIM", "CP (strict)", "ISim", "talign_d", "PSNR", "clip_dalign"]) == {
        *("cp_reference", "masked_ssim", "clip_isim", "clip_talign_d", "psnr", "clip_dalign")
    }
    stored = ("cp_reference", "masked_ssim", "clip_talign", "clip_talign_d", "clip_dalign_d", "vq@gpt/D")
    measures = [measure(name, "gpt/D") for name in stored]
    names = ["CP", "CP (strict)", "TAlign_P", "TAlign_D", "DAlign_D", "VQ"]
    assert [one.name for one in measures] == names
    assert [paper_name(measures[0]), paper_name(measures[-1])] == ["Masked SSIM", "Quality_D"]


@pytest.mark.parametrize("nesting", [by_model, by_sample])
def test_ids_with_letters_are_read_in_both_nestings(nesting, tmp_path: Path) -> None:
    """The samples of the ranks distinguish ids from models: "t38" of Gemini has EA 9 in either file."""
    files = [tmp_path / "scores.json", tmp_path / "ranks.json"]
    for file, document in zip(files, (nesting(), ranks()), strict=True):
        text = json.dumps(document)
        for sample in ("38", "53", "64"):
            text = text.replace(f'"{sample}"', f'"t{sample}"')
        file.write_text(text)
    found = published_scores(*files)
    assert {sample.id for sample in found.samples} == {"t38", "t53", "t64"}
    assert {arm.label for arm in found.arms} == set(SCORES)
