"""Pages and files of a run of credentialed images, and its reaction to a damaged image."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pages.publishing import write_page
from plantain.pipeline.run import run_build
from plantain.records import Consent, Licence, TaskState


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    own = {"licence": Licence.CREDENTIALED, "consent": Consent("the owner", "letter of today")}
    quick_catalogue(root / "catalogue", 2, code=bytes(32), changes=own)
    recipe = quick_recipe(root / "catalogue", findings=("AMD", "Cataract"))
    asyncio.run(run_build(recipe, root / "run", method=quick_method(CallLog(None), max_rounds=2)))
    return root


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def test_every_page_with_credentialed_images_asks_not_to_be_passed_on(run: Path) -> None:
    """The line is the report's, which README and the agreement of PhysioNet (credentialed access) ask for."""
    with JournalReader.open(run) as reader:
        task = next(reader.tasks()).id
        dataset = next(reader.images()).dataset
    shown = run.parent / "task.html"
    assert main(["show", str(run), task, "--to", str(shown)]) == 0
    assert main(["judge", "rejudge", str(run), "--judge", "offline/instruments"]) == 0
    assert main(["report", str(run)]) == 0
    for page in (shown, run / "rejudged.html", run / "report.html"):
        text = page.read_text()
        assert text.count("Do not pass this page on:") == 1
        assert re.search(rf"credentialed or unknown \([^)]*{dataset}", text)


def test_a_page_with_images_is_refused_without_their_sources(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="name their sources"):
        write_page(tmp_path / "new.html", '<main><img src="data:image/jpeg;base64,AAAA"></main>')
    assert not (tmp_path / "new.html").exists()


def test_every_edit_and_derived_file_is_marked_synthetic(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pillow reads the packet (PNG 11.3.3.4); the term is IPTC's. Ways back begin at an edit, ways there end at one."""
    bench, out = tmp_path / "bench", tmp_path / "out"
    assert main(["bench", "from-build", str(run), "--to", str(bench)]) == 0
    command = ["bench", "generate", str(bench), "--run", str(tmp_path / "bench-run"), "--to", str(out)]
    assert main(command) == 0

    def marked_synthetic(path: Path) -> bool:
        with Image.open(path) as image:
            return "digitalsourcetype/compositeSynthetic" in image.info.get("xmp", b"").decode()

    rows = json.loads((bench / "benchmark.json").read_bytes())["samples"]
    back = {row["id"] for row in rows if row["image"]["synthetic"]}
    assert 0 < len(back) < len(rows)
    for row in rows:
        sample = row["id"]
        assert marked_synthetic(bench / row["previous"]) == (sample in back)
        assert marked_synthetic(bench / row["changed"]) == (sample not in back)
        assert marked_synthetic(out / "ground-truth" / f"{sample}_0.png") == (sample not in back)
        for baseline in ("copy-input", "resize-only", "jpeg-75"):
            assert marked_synthetic(out / baseline / f"{sample}_0.png") == (sample in back)
    capsys.readouterr()
    shutil.copytree(out / "copy-input", tmp_path / "received" / "AMD")
    again = ["ingest", "folder", str(tmp_path / "received"), "--to", str(tmp_path / "again"), "--json"]
    assert main([*again, "--modality", "fundus", "--skip-text"]) == 0
    with Catalogue.open(tmp_path / "again") as catalogue:
        assert sum(image.synthetic for image in catalogue.images()) == len(back)


@pytest.mark.parametrize("command", ["generate", "from-build"])
def test_nothing_is_written_through_a_planted_link(
    run: Path, tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bench, out, home = tmp_path / "bench", tmp_path / "out", tmp_path / "home"
    home.mkdir()
    (bench if command == "from-build" else out).mkdir()
    make = ["bench", "from-build", str(run), "--to", str(bench)]
    if command == "from-build":
        (bench / "previous").symlink_to(home)
        assert main(make) == 2
    else:
        assert main(make) == 0
        (out / "copy-input").symlink_to(home)
        generate = ["bench", "generate", str(bench), "--run", str(tmp_path / "bench-run")]
        assert main([*generate, "--to", str(out)]) == 2
    assert "a link that leads out" in capsys.readouterr().err
    assert list(home.iterdir()) == []


def spoil(run: Path, damage: str) -> tuple[str, int]:
    """Damage the edit of one successful task's last round; return the task and the round."""
    with JournalReader.open(run) as reader:
        row = next(reader.tasks(TaskState.SUCCESS))
        attempt = reader.attempts(row.id, row.generation)[-1]
        path = reader.blob_path(attempt.edited or "")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    if damage != "missing":
        path.write_bytes(data)
    return row.id, attempt.round


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_one_damaged_image_is_named_and_skipped(
    run: Path, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task, number = spoil(run, damage)
    place = f"task {task}, round {number}: its edited image"
    release, bench, study = (tmp_path / name for name in ("release", "bench", "study"))
    layouts = ["--layout", "parquet,med-banana,webdataset,trajectory,preference"]
    layouts += ["--redistribution-approved", "DUA 1"]
    for command, page in (
        (["export", str(run), "--to", str(release), *layouts], release / "README.md"),
        (["report", str(run)], run / "report.html"),
        (["review", "new", str(study), "--from", str(run), "--task", "accept"], study / "study.json"),
        (["bench", "from-build", str(run), "--to", str(bench)], bench / "benchmark.json"),
    ):
        assert main(command) == 1
        assert place in capsys.readouterr().err
        assert place in page.read_text()
    assert json.loads((release / "run.json").read_bytes())["facts"]["damaged"] == [place]
    assert main(["verify", str(release)]) == 0
    assert main(["bench", "check", str(bench)]) == 0
