from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import mlcroissant as mlc
import pyarrow.parquet as pq
import pytest

from plantain.journal import JournalReader
from plantain.journal.questions.tables import table1, table2
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_source
from plantain.privacy.licences import decide_parts
from plantain.release.cards import card, cell, gather
from plantain.release.export import export_run
from plantain.release.importing.importing import import_release
from plantain.release.plan import ExportOptions
from plantain.release.proof.verify import verify_release
from plantain.rubrics import MED_BANANA
from release.facts import facts
from release.runs import edited_image

RECOMMENDED = {
    '[Metadata(a-small-run)] Property "https://schema.org/datePublished" is recommended, but does not exist.'
}
"""The only fact that a publisher must add to a release."""

pytestmark = pytest.mark.usefixtures("no_network")


@pytest.mark.slow
def test_loading_snippet_of_the_card_runs_offline(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))

    def run_snippet(out: Path, text: str) -> list[str]:
        """Return the lines that the Python of a card prints in the release's folder."""
        code = re.search(r"```python\n(.*?)```", text, re.DOTALL)
        assert code is not None
        monkeypatch.chdir(out)
        capsys.readouterr()
        exec(code[1], {})
        return capsys.readouterr().out.splitlines()

    text = (release / "README.md").read_text(encoding="utf-8")
    # The default table, and by the lines that comments give the one to train on, and the failures.
    splits = dict(re.findall(r'load_dataset\(.*?, "(\w+)", split="(\w+)"\)', text))
    assert list(splits) == ["success", "train", "failed"]
    rows = {
        name: re.search(rf"\| `{name}`(?: \(default\))? \| {split} \| (\d+) \|", text)
        for name, split in splits.items()
    }
    assert rows["success"] is not None and "(default)" in rows["success"][0] and rows["failed"] is not None
    with_failures = text.replace("# edits that the judge rejected:", "failures =").replace(
        "```\n\nRun it", "\nprint(len(failures), set(failures['qualified']))\n```\n\nRun it"
    )
    printed = run_snippet(release, with_failures)
    assert printed[0].split()[0] == rows["success"][1]
    assert printed[-1].split(maxsplit=1)[0] == rows["failed"][1] and "True" not in printed[-1]


def test_card_prints_tables_1_and_2_of_the_run(release: Path, reader: JournalReader) -> None:
    text = (release / "README.md").read_text(encoding="utf-8")
    numbers = table1(reader)
    for row in numbers.rows:
        counts = f"| {row.success} | {row.failed} | {row.undecided} | {row.not_applicable} | {row.stopped} |"
        assert f"| {cell(row.modality)} | {row.direction} |" in text and counts in text
    judged = table2(reader, {c.name: c.weight for c in MED_BANANA.criteria})
    for criterion in judged.criteria:
        assert criterion.overall.value is not None
        assert f"{100 * criterion.overall.value:.1f} %" in text


def test_names_from_data_cannot_become_markup(little_run: Path) -> None:
    evil = "x | y\n# [click](javascript:alert) <script>"
    assert cell(evil) == r"x \| y \# \[click\](javascript:alert) \<script\>"
    sources = {evil: {"licence": "open", "images": 1, "version": "<b>"}}
    with JournalReader.open(little_run) as reader:
        numbers = gather(reader)
    parts = decide_parts(sources, "")
    named_badly = replace(facts(), name=evil, method={evil: evil})
    text = card(named_badly, (), numbers, parts, {"success": 1}, ExportOptions(("med-banana",)))
    body = text.partition("---\n\n")[2]
    assert r"\[click\]" in body
    assert re.search(r"(?<!\\)(\[click|<script|<b>|\| y)", body) is None


def test_the_card_of_a_published_tree_invents_nothing(tmp_path: Path) -> None:
    """A tree as Med-Banana publishes it: no mark in the images, no rounds, no verdicts, no models."""
    folder = tmp_path / "tree" / "Fundus-edit" / "AMD"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}_left-AMD-edit.jpeg").write_bytes(encode_source(decode(edited_image(number))))
    import_release(tmp_path / "tree", tmp_path / "run")
    export_run(tmp_path / "run", tmp_path / "out", ExportOptions(("med-banana",)))
    sheet = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "| 100.0 % | 43.9 to 100.0 | not defined |" in sheet  # Wilson of 3 in 3: 3 / (3 + 1.96^2) = 0.4385
    assert (
        "verdict not published (3)" in sheet
        and "Policy, number of rounds and rubric were not recorded" in sheet
    )
    assert "LicenseRef-Source-Unknown" in sheet
    assert verify_release(tmp_path / "out", pixels=True).problems == ()


def test_croissant_is_valid_and_loads_every_record(
    release: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(release)
    dataset = mlc.Dataset(release / "croissant.json")
    assert dataset.metadata.ctx.issues.errors == set()
    assert dataset.metadata.ctx.issues.warnings == RECOMMENDED
    assert "not standard" not in caplog.text
    tables = [record_set.uuid for record_set in dataset.metadata.record_sets]
    assert {"success", "failed", "trajectories", "preference"} <= set(tables)
    for table in tables:
        expected = sum(pq.read_metadata(p).num_rows for p in (release / "data" / table).glob("*.parquet"))
        assert sum(1 for _ in dataset.records(table)) == expected > 0, table
