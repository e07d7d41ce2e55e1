"""What a study feeds, the benchmark's ranks; ratings of others that come in; and what a study is made from."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np

from bench.scored_run import make_all
from fakes.commands import json_of, printed, refused
from plantain.bench.generate.runfile import BenchRun
from plantain.cli.bench.rank import study_ratings
from plantain.review.ratings import Ratings
from plantain.review.study import IMAGES, ORIGINAL, ReaderTask, open_study
from report.run_on_paper import LICENCES
from review.study_on_paper import MODELS, new_from, read_all, small_study


def test_ranks_of_each_dimension_become_its_own_ratings(tmp_path: Path):
    """The first model is ranked 1, 2 and 3 for EA, CP and VQ (MedEBench, table 3: a column for each)."""
    study = small_study(tmp_path / "s", ReaderTask.RANK, cases=3)
    shift = {block.id: number for number, block in enumerate(study.blocks)}
    read_all(
        study,
        2,
        lambda _, block, item, slots: {
            "ranks": [(MODELS.index(slot) + shift[block.id]) % 3 + 1 for slot in slots]
        },
    )
    found = study_ratings(study.folder, [case.source for case in study.cases], list(MODELS))
    assert found.raters == ("R01", "R02") and found.models == MODELS
    first = {name: set(table[..., 0].ravel()) for name, table in found.values.items()}
    assert first == {"EA": {-1.0}, "CP": {-2.0}, "VQ": {-3.0}}


def test_ratings_of_others_come_in_once(tmp_path: Path):
    study = small_study(tmp_path / "s", ReaderTask.RATE, cases=2)
    names = [name for name, _ in study.blocks[0].criteria]
    rows = [",".join(["source", "model", *names])]
    rows += [",".join([case.source, MODELS[0], *"7777"]) for case in study.cases[:2]]
    (tmp_path / "ana.csv").write_text("\n".join(rows))
    for _ in range(2):
        assert json_of("review", "import", study.folder, tmp_path / "ana.csv") == {"imported": {"ana": 2}}
    ratings = Ratings.open(study)
    assert len(ratings.history()) == 2 and ratings.readers()[0].role == "imported"
    for before, after in [("7,7,7,7", "7,7,11,7"), (MODELS[0], "zebra"), ("7,7,7,7", "7,7,7,x")]:
        (tmp_path / "ben.csv").write_text("\n".join(rows).replace(before, after))
        assert "ben.csv: line 2" in refused("review", "import", study.folder, tmp_path / "ben.csv")
    assert len(ratings.history()) == 2
    ratings.close()


def test_a_study_is_made_from_a_release(own_run: Path, tmp_path: Path):
    """What a release carries is what its run had: the same tasks, instructions and pixels."""
    printed("export", own_run, "--to", tmp_path / "out", "--layout", "med-banana", *LICENCES)
    found = [
        new_from(tmp_path / f"s{number}", source, "--task", "accept")
        for number, source in enumerate((own_run, tmp_path / "out"))
    ]
    by_source = [{case.source: case for case in study.cases} for study in found]
    assert set(by_source[1]) <= set(by_source[0]) and len(by_source[1]) >= 4
    for source, case in by_source[1].items():
        other = by_source[0][source]
        assert (case.instruction, case.finding, case.size) == (other.instruction, other.finding, other.size)
        edited = [next(f for model, f in one.images.items() if model != ORIGINAL) for one in (case, other)]
        both = [cv2.imread(str(s.folder / IMAGES / f)) for s, f in zip(reversed(found), edited, strict=True)]
        assert np.array_equal(*both)


def test_a_study_is_made_from_a_benchmarks_run(tmp_path: Path):
    """Every sample with the first scored output of each arm; the pixels are those of the run's blobs."""
    made = make_all(tmp_path, organs=("Skin",), per_organ=3)
    said = json_of("review", "new", tmp_path / "s", "--from", made.run, "--task", "pair,rate")
    study = open_study(tmp_path / "s")
    assert (
        said["cases"] == 3 and len(study.models) >= 2 and {case.stratum for case in study.cases} == {"Skin"}
    )
    with BenchRun.open(made.run) as opened:
        assert set(study.models) <= set(opened.arms)
        arm = study.models[0]
        outputs = {output.sample_id: output for output in opened.scored(arm) if output.edited}
        for case in study.cases:
            if arm in case.images:
                ours = cv2.imread(str(study.folder / IMAGES / case.images[arm]))
                theirs = cv2.imdecode(np.frombuffer(opened.read(outputs[case.source]), np.uint8), 1)
                assert np.array_equal(ours, theirs)
