"""What has no run and travels all the same: files that are ingested, pairs that become a benchmark."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fakes.medebench_tree import picture, write_png
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.engines.cluster import RayEngine
from plantain.engines.contract import EngineSection, engine_thread
from plantain.pixels.encode import encode_jpeg
from plantain.records import InputError
from sources.published import jpeg, put

ON_RAY = """
[engine]
kind = "ray"
address = "local"
workers = 1
"""


@pytest.fixture
def on_ray(tmp_path: Path) -> list[str]:
    settings = tmp_path / "settings.toml"
    settings.write_text(ON_RAY, encoding="utf-8")
    return ["--settings", str(settings)]


def files(folder: Path) -> dict[str, bytes]:
    """All that lies there but for databases, in which moments stand."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".sqlite" not in path.name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_a_catalogue_is_the_same_bytes_as_one_that_was_prepared_here(
    cluster: None, on_ray: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        put(tmp_path / "scans/normal" / f"{number}.jpg", jpeg("chest_xray", number))
    put(tmp_path / "scans/normal/broken.jpg", b"x")
    put(tmp_path / "scans/normal/small.jpg", encode_jpeg(np.zeros((20, 20, 3), np.uint8)))
    for name, engine in (("here", []), ("there", on_ray)):
        if engine:
            monkeypatch.setattr("plantain.catalogue.ingest.prepare_file", None)  # in this process
        command = ["ingest", "folder", str(tmp_path / "scans"), "--modality", "chest_xray", *engine]
        assert main([*command, "--licence", "open", "--skip-text", "--to", str(tmp_path / name)]) == 0
    assert files(tmp_path / "there") == files(tmp_path / "here")
    assert "small.jpg,,,20x20 pixels" in (tmp_path / "there/rejected.csv").read_text()
    with Catalogue.open(tmp_path / "here") as here, Catalogue.open(tmp_path / "there") as there:
        assert len(there) == 4 and there.digest() == here.digest()


def test_a_benchmark_is_the_same_bytes_as_one_that_was_prepared_here(
    cluster: None, on_ray: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = tmp_path / "raw"
    rows = ["id,organ,task,prompt,licence"]
    for name, left in (("a", 60), ("b", 90)):
        before = picture("chelsea", left=left, top=40, size=(200, 160))
        after = before.copy()
        after[60:90, 80:110] = np.uint8(20)
        write_png(raw / "before" / f"{name}.png", before)
        write_png(raw / "after" / f"{name}.png", after)
        rows.append(f"{name},skin,Add a mole.,Add a mole.,open")
    (raw / "pairs.csv").write_text("\n".join(rows), encoding="utf-8")
    for name, engine in (("here", []), ("there", on_ray)):
        if engine:
            monkeypatch.setattr("plantain.bench.prepare.preparing.prepare_pair", None)  # in this process
        out = str(tmp_path / name / "bench")
        assert main(["bench", "prepare", str(raw), "--to", out, "--keep", "text", *engine]) == 0
    assert files(tmp_path / "there") == files(tmp_path / "here")


def test_a_lost_worker_is_replaced_until_the_work_itself_must_be_the_reason(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plantain.engines.contract.LOST_IN_A_ROW", 2)
    log = tmp_path / "log"
    once = f"import os; there = os.path.exists({str(log)!r}); open({str(log)!r}, 'a'); there or os._exit(1)"
    always = f"import os; open({str(log)!r}, 'a').write('x'); os._exit(1)"
    with engine_thread(RayEngine(EngineSection(kind="ray", address="local", workers=1))) as engine:
        assert engine.run("ingest", exec, once) is None
        assert engine.run("ingest", os.path.getsize, str(log)) == 0
        with pytest.raises(InputError, match="2 workers in a row were lost"):
            engine.run("ingest", exec, always)
    assert log.read_text() == "xx"


def test_files_are_not_rejected_for_a_cluster_that_has_no_worker_left(
    cluster: None,
    on_ray: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put(tmp_path / "scans/normal/0.jpg", jpeg("chest_xray", 0))
    monkeypatch.setattr("plantain.engines.contract.LOST_IN_A_ROW", 1)
    monkeypatch.setattr(
        "plantain.catalogue.ingest._Workshop._decode",
        lambda self, *_: self._engine.run("ingest", os._exit, 1),
    )
    command = ["ingest", "folder", str(tmp_path / "scans"), "--modality", "chest_xray", *on_ray]
    assert main([*command, "--licence", "open", "--skip-text", "--to", str(tmp_path / "out")]) == 2
    assert "1 workers in a row were lost" in capsys.readouterr().err
    assert not (tmp_path / "out" / "rejected.csv").exists()
