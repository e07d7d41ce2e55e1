"""Publishing a release: its judges and their quality, the Hub's metadata, a DOI."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from plantain.cli import main
from plantain.journal import JournalReader
from plantain.journal.cards import keep_card
from plantain.records import Gate, InputError, JudgeCard, TaskState
from plantain.release.export import export_run
from plantain.release.importing.importing import import_release
from plantain.release.layouts.columns import columns_of
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from plantain.rubrics import MEDEBENCH, frozen
from release.runs import make_run, rows, tree, verdict

CARD = JudgeCard("panel", "0f", "med-banana", Gate(False, True, ("blob accepted in 50 %",)))
OPTIONS = ExportOptions(("parquet",), shard_bytes=60_000, licences=("CC-BY-4.0",))
AGAIN = replace(OPTIONS, licences=())
"""An imported run keeps the licences it came under."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of which one of two judges has a card, and its release."""
    root = tmp_path_factory.mktemp("judged")
    keep_card(make_run(root / "run", images=4), CARD)
    export_run(root / "run", root / "out", OPTIONS)
    return root


def test_every_verdict_of_every_judge_is_a_row(judged: Path) -> None:
    verdict_rows = rows(judged / "out", "verdicts")
    with JournalReader.open(judged / "run") as reader:
        wanted = Counter(
            (
                v.task_id,
                v.generation,
                v.round,
                v.verdict.judge,
                v.decisive,
                v.verdict.qualified,
                realism.passed,
            )
            for task in reader.tasks()
            if task.state is not TaskState.PENDING
            for v in reader.verdicts(task.id)
            for realism in [v.verdict.observations.criteria["realism"]]
        )
    names = ("task_id", "attempt_generation", "round", "judge", "decisive", "qualified", "realism")
    assert Counter(tuple(row[name] for name in names) for row in verdict_rows) == wanted
    assert {row["judge"] for row in verdict_rows} == {"panel", "offline/instruments"}


def test_the_card_of_a_release_has_a_line_on_each_judge(judged: Path) -> None:
    text = (judged / "out" / "README.md").read_text()
    assert "- panel: may rank (blob accepted in 50 %)" in text
    assert "- offline/instruments: no card; its accuracy has not been measured" in text


def test_import_restores_cards_and_a_new_card_makes_another_release(judged: Path, tmp_path: Path) -> None:
    assert verify_release(judged / "out", against=judged / "run").problems == ()
    import_release(judged / "out", tmp_path / "imported")
    export_run(tmp_path / "imported", tmp_path / "again", AGAIN)
    assert tree(tmp_path / "again") == tree(judged / "out")
    keep_card(tmp_path / "imported", replace(CARD, gate=Gate(True, True, ())))
    export_run(tmp_path / "imported", tmp_path / "more", AGAIN)
    assert tree(tmp_path / "more") != tree(tmp_path / "again")


def test_columns_are_those_of_the_run_s_rubric() -> None:
    """MedEBench judges three criteria from 0 to 10 and requests no facts: no column of Med-Banana's is left over."""
    columns = columns_of({"rubric": frozen(MEDEBENCH)})
    names = [criterion.name for criterion in MEDEBENCH.criteria]
    for table in ("success", "verdicts", "train"):
        found = set(columns.table(table).names)
        assert {*names, *(f"{name}_value" for name in names)} <= found
        assert not {"realism", "fidelity_preservation", "has_disease"} & found
    assert set(columns.verdict_cells(verdict(True, 1))) == set(columns.verdict)


def test_a_doi_is_named_by_the_card_the_citation_and_croissant(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    asked = ["--licence", "CC-BY-4.0", "--doi", "https://doi.org/10.5281/zenodo.1234567", "--json"]
    assert main(["export", str(judged / "run"), "--to", str(out), "--layout", "parquet", *asked]) == 0
    assert verify_release(out).problems == ()
    assert yaml.safe_load((out / "CITATION.cff").read_text())["doi"] == "10.5281/zenodo.1234567"
    croissant = json.loads((out / "croissant.json").read_bytes())
    assert croissant["identifier"] == "https://doi.org/10.5281/zenodo.1234567"
    assert "(https://doi.org/10.5281/zenodo.1234567)" in (out / "README.md").read_text()
    with pytest.raises(InputError, match=r"--doi zenodo.12: a DOI starts with 10\."):
        ExportOptions(("parquet",), doi="zenodo.12")


def test_the_hub_reads_the_metadata_of_the_card(judged: Path) -> None:
    """By huggingface_hub's and datasets' own parsers, and by the licence and size names of the Hub's documentation."""
    from datasets.utils.metadata import MetadataConfigs
    from huggingface_hub import DatasetCard

    data = DatasetCard.load(judged / "out" / "README.md", ignore_metadata_errors=False).data
    configs = MetadataConfigs.from_dataset_card_data(data)
    assert {"success", "failed", "trajectories", "preference", "verdicts", "originals"} <= set(configs)
    assert data.size_categories == ["n<1K"]
    assert data.language == ["en"]
    assert data.license == "other" and data.license_name
    assert (judged / "out" / data.license_link).is_file()
