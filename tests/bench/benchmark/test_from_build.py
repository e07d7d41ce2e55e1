"""A build turned into a benchmark: edits with a real image after, exact regions, licence and group."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from bench.scored_run import baselines, make_run, plain_scores
from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.benchmark.checking import check_benchmark
from plantain.bench.benchmark.from_build import REAL, SYNTHETIC, benchmark_from_build
from plantain.bench.leaderboard.page import write_leaderboard
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.pipeline.run import run_build
from plantain.pixels.decode import decode, decode_mask
from plantain.pixels.encode import XMP_PACKET
from plantain.records import Direction, InputError, TaskState


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run: three cropped fundus photographs, edited and judged by quick models, some tasks failing."""
    folder = tmp_path_factory.mktemp("build")
    recipe = quick_recipe(quick_catalogue(folder / "catalogue", 2), findings=("AMD", "Cataract"))
    asyncio.run(run_build(recipe, folder / "run", method=quick_method(CallLog(None))))
    return folder / "run"


@pytest.fixture(scope="module")
def bench(build: Path, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    out = tmp_path_factory.mktemp("bench") / "b"
    benchmark_from_build(build, out)
    return Benchmark.load(out)


def test_every_success_gives_samples_in_both_directions(build: Path, bench: Benchmark) -> None:
    with JournalReader.open(build) as reader:
        rows = list(reader.tasks(TaskState.SUCCESS))
        assert rows
        assert len(bench) == 2 * len(rows)
        for row in rows:
            image = reader.image(row.task.image_id)
            attempt = next(a for a in reader.attempts(row.id, row.generation) if a.round == row.round)
            assert attempt.edited and attempt.mask
            original, edited = (
                decode(reader.read_blob(sha)) for sha in (image.prepared_sha256, attempt.edited)
            )
            forward = row.task.direction
            back = Direction.REMOVE if forward is Direction.ADD else Direction.ADD
            there = bench.sample(f"{row.id[:12]}-{forward}")
            home = bench.sample(f"{row.id[:12]}-{back}")
            assert np.array_equal(bench.previous(home), edited)
            assert np.array_equal(bench.changed(home), original), "the way back ends at the real image"
            assert np.array_equal(bench.previous(there), original)
            assert np.array_equal(bench.changed(there), edited)
            for sample in (there, home):
                assert np.array_equal(bench.roi(sample), decode_mask(reader.read_blob(attempt.mask)))
                assert sample.image.licence is image.licence
                assert sample.image.group == image.group
                assert sample.finding == row.task.finding
                assert sample.aligned is True
            assert there.cluster == home.cluster
            assert (there.direction, home.direction) == (forward, back)
            assert (there.notes[0], home.notes[0]) == (SYNTHETIC, REAL)
            assert (there.synthetic_truth, home.synthetic_truth) == (True, False)
            assert (there.image.synthetic, home.image.synthetic) == (False, True)
            assert there.prompt == attempt.instruction
            verb = "Remove the" if back is Direction.REMOVE else "Add"
            assert home.prompt.startswith(verb)
            assert home.rephrased and home.rephrased != home.prompt
            assert home.detailed.startswith("Colour fundus photograph: ")
            assert home.key_concept


def test_edits_of_one_image_share_a_cluster(build: Path, bench: Benchmark) -> None:
    """A patient's images, and a real image with its synthetic findings: intervals resample them together."""
    with JournalReader.open(build) as reader:
        images = {image.id: image for image in reader.images()}
        rows = {row.id[:12]: images[row.task.image_id] for row in reader.tasks()}
    clusters: dict[str, set[str]] = {}
    for sample in bench.samples:
        image = rows[sample.id.partition("-")[0]]
        base = f"{image.dataset}/{image.group or image.id.partition('+')[0]}"
        clusters.setdefault(base, set()).add(sample.cluster)
    assert all(len(found) == 1 for found in clusters.values()), clusters
    assert len({name for found in clusters.values() for name in found}) == len(clusters)


def test_only_real_ground_truth_on_request(build: Path, tmp_path: Path) -> None:
    made = benchmark_from_build(build, tmp_path / "b", real_only=True)
    bench = Benchmark.load(tmp_path / "b")
    assert (made.synthetic, made.real) == (0, len(bench))
    assert all(sample.notes[0] == REAL for sample in bench.samples)


def test_the_same_build_makes_the_same_bytes(build: Path, bench: Benchmark, tmp_path: Path) -> None:
    """The benchmark also passes the check."""
    assert check_benchmark(bench.root).errors == ()
    benchmark_from_build(build, tmp_path / "b")
    again = {
        p.relative_to(tmp_path / "b"): p.read_bytes() for p in (tmp_path / "b").rglob("*") if p.is_file()
    }
    assert again == {p.relative_to(bench.root): p.read_bytes() for p in bench.root.rglob("*") if p.is_file()}


def test_command_prints_the_sample_counts(
    build: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "from-build", str(build), "--to", str(tmp_path / "b"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["real"] == printed["synthetic"] == printed["successes"]
    assert printed["regions"] == 2 * printed["successes"]
    half = len(Benchmark.load(tmp_path / "b")) // 2
    assert main(["bench", "describe", str(tmp_path / "b"), "--clip", "nobody/weights"]) == 0
    assert f"{half} with a real image after, {half} with a synthetic one" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["bench", "from-build", str(build), "--to", str(tmp_path / "b")]) == 2
    assert "exists and is not an empty folder" in capsys.readouterr().err
    assert main(["bench", "from-build", str(tmp_path), "--to", str(tmp_path / "c")]) == 2
    assert not (tmp_path / "c").exists()


def test_edited_original_is_never_called_real(build: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(build, tmp_path / "run"))
    with sqlite3.connect(run / "journal.sqlite") as connection:
        changed = connection.execute(
            "UPDATE image SET record = replace(record, '\"synthetic\":false', '\"synthetic\":true')"
        )
        assert changed.rowcount > 0
    made = benchmark_from_build(run, tmp_path / "b")
    assert (made.real, made.synthetic) == (0, made.successes)
    bench = Benchmark.load(tmp_path / "b")
    assert all(sample.image.synthetic and sample.notes[0] == SYNTHETIC for sample in bench.samples)
    assert all("itself an edit" in sample.notes[2] for sample in bench.samples)
    with pytest.raises(InputError, match="nothing in it can become a sample"):
        benchmark_from_build(run, tmp_path / "c", real_only=True)


@pytest.mark.usefixtures("no_figures")
def test_leaderboard_marks_synthetic_true_images(build: Path, tmp_path: Path) -> None:
    """In its warning, its table and its gallery; a synthetic image is marked, whichever arm shows it."""
    benchmark_from_build(build, tmp_path / "b")
    bench = Benchmark.load(tmp_path / "b")
    shown = [arm for arm in baselines() if arm.label in ("copy-input", "ground-truth")]
    run = make_run(tmp_path / "run", bench, shown, plain_scores)
    text = write_leaderboard([run], tmp_path / "out").read_text(encoding="utf-8")
    half = len(bench) // 2
    assert f"so are {half} of {2 * half} true images" in " ".join(text.split())
    assert f"the image after, {half} of {2 * half} synthetic: the ceiling" in text
    marked = [
        (caption, XMP_PACKET in base64.b64decode(data))
        for data, caption in re.findall(
            r'data:image/jpeg;base64,([^"]+)".*?<figcaption>([^<]+)<', text, flags=re.DOTALL
        )
    ]
    for caption in ("Before", "Truth"):
        assert [one for one in marked if one[0].startswith(caption)].count((caption, False)) == half
        assert marked.count((f"{caption} (synthetic)", True)) == half
    # A copy of a synthetic image is synthetic: as many copies as images before.
    assert marked.count(("copy-input", True)) == marked.count(("copy-input", False)) == half
    assert not any(caption == "ground-truth" for caption, _ in marked), "it is the truth, shown once"
