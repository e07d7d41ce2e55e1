from __future__ import annotations

from pathlib import Path

import mlcroissant as mlc
import pyarrow.parquet as pq
import pytest

from plantain.release.export import export_run
from plantain.release.plan import ExportOptions

RECOMMENDED = {
    '[Metadata(a-small-run)] Property "https://schema.org/datePublished" is recommended, but does not exist.'
}
"""The one thing that only whoever publishes a release can know."""

pytestmark = pytest.mark.usefixtures("no_network")


def load(out: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> mlc.Dataset:
    monkeypatch.chdir(out)
    dataset = mlc.Dataset(out / "croissant.json")
    assert dataset.metadata.ctx.issues.errors == set()
    assert dataset.metadata.ctx.issues.warnings == RECOMMENDED
    assert "not standard" not in caplog.text
    return dataset


def test_croissant_is_valid_and_loads_every_record(
    release: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = load(release, caplog, monkeypatch)
    tables = [record_set.uuid for record_set in dataset.metadata.record_sets]
    assert {"success", "failed", "trajectories", "preference", "tasks"} <= set(tables)
    for table in tables:
        if table == "tasks":
            expected = len((release / "trajectories/trajectories.jsonl").read_bytes().splitlines())
        else:
            expected = sum(pq.read_metadata(p).num_rows for p in (release / "data" / table).glob("*.parquet"))
        assert sum(1 for _ in dataset.records(table)) == expected > 0, table


def test_croissant_of_a_release_without_tables(
    small_run: Path,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    export_run(small_run, out, ExportOptions(("med-banana",), licences=("CC-BY-4.0",)))
    dataset = load(out, caplog, monkeypatch)
    assert [record_set.uuid for record_set in dataset.metadata.record_sets] == ["tasks"]
    assert sum(1 for _ in dataset.records("tasks")) > 0
