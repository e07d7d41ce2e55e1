"""What a study feeds: the benchmark's ranks, its regions; and ratings of others that come in."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from bench.scored_run import make_all
from bench.small_bench import small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.runfile import BenchRun
from plantain.cli import main
from plantain.cli.bench.studies import study_ratings
from plantain.findings.taxonomy import load_taxonomy
from plantain.pixels.encode import encode_mask, encode_png
from plantain.records import (
    Direction,
    Geometry,
    InputError,
    Licence,
    Observations,
    OutcomeKind,
    SourceImage,
    task_id,
)
from plantain.review.freezing import StudySettings, new_study
from plantain.review.orders import slot_order
from plantain.review.people import PeopleJudge
from plantain.review.ratings import Ratings
from plantain.review.study import IMAGES, ORIGINAL, ReaderTask, open_study
from plantain.review.web.desk import Desk
from plantain.roles import EncodedImage, JudgeRequest, Reply
from plantain.rubrics import MED_BANANA
from report.run_on_paper import build_run
from review.study_on_paper import MODELS, drawn, mask_of, material, small_study


def test_ranks_of_each_dimension_become_its_own_ratings(tmp_path: Path):
    """The first model is ranked 1, 2 and 3 for EA, CP and VQ (MedEBench, table 3: a column for each)."""
    study = small_study(tmp_path / "s", ReaderTask.RANK, cases=3)
    ratings = Ratings.open(study)
    for _ in range(2):
        reader, _ = ratings.invite()
        for number, block in enumerate(study.blocks):
            for item in block.items:
                slots = slot_order(study, item, reader.number)
                value = {"ranks": [(MODELS.index(slot) + number) % 3 + 1 for slot in slots]}
                ratings.save(reader.code, item.id, "k" * 8, block.id, slots, 0, value, 1)
    ratings.close()
    found = study_ratings(study.folder, [case.source for case in study.cases], list(MODELS))
    assert found.raters == ("R01", "R02") and found.models == MODELS
    first = {name: set(table[..., 0].ravel()) for name, table in found.values.items()}
    assert first == {"EA": {-1.0}, "CP": {-2.0}, "VQ": {-3.0}}


def test_readers_regions_go_into_the_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    benchmark = small_bench(tmp_path / "bench", 2, size=(96, 64))
    assert (
        main(
            [
                "review",
                "new",
                str(tmp_path / "s"),
                "--from",
                str(tmp_path / "bench"),
                "--task",
                "choose-roi",
                "--json",
            ]
        )
        == 0
    )
    study = open_study(tmp_path / "s")
    ratings = Ratings.open(study)
    for _ in range(3):
        reader, _ = ratings.invite()
        for item in study.blocks[0].items:
            ratings.save(
                reader.code, item.id, "k" * 8, "b1", [], 0, {"proposal": None, "mask": mask_of((96, 64))}, 1
            )
    ratings.close()
    capsys.readouterr()
    assert main(["bench", "prepare", str(tmp_path / "bench"), "--study", str(tmp_path / "s"), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["chosen"]) == {sample.id for sample in benchmark.samples}
    sample = Benchmark.load(tmp_path / "bench").samples[0]
    plane = cv2.imread(str(tmp_path / "bench" / str(sample.roi)), cv2.IMREAD_GRAYSCALE)
    assert plane.shape == (64, 96) and (np.argwhere(plane).min(axis=0) == (5, 7)).all()
    assert "STAPLE of 3" in " ".join(sample.notes)
    assert main(["bench", "prepare", "--study", str(tmp_path / "s")]) == 2


def test_regions_of_a_film_are_its_own_pixels(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Lines of one pixel on a film of 2,048, which no shrinking leaves: stored, exported and chosen as they were."""
    small_bench(tmp_path / "bench", 1, size=(2048, 1536))
    words = ["review", "new", str(tmp_path / "s"), "--from", str(tmp_path / "bench"), "--task", "choose-roi"]
    assert main(words) == 0
    study = open_study(tmp_path / "s")
    ratings = Ratings.open(study)
    desk = Desk(study, ratings, ratings.invite()[0])
    region = np.zeros((1536, 2048), bool)
    region[101, 33:1999] = region[7:1501, 1025] = True
    case = desk.case("b1", 0)
    assert case["size"] == [2048, 1536]
    mask = base64.b64encode(encode_mask(region)).decode()
    desk.answer(case["item"], "k" * 8, {"proposal": None, "mask": mask}, 1)
    ratings.close()
    assert main(["review", "export", str(tmp_path / "s"), "--to", str(tmp_path / "out")]) == 0
    assert main(["bench", "prepare", str(tmp_path / "bench"), "--study", str(tmp_path / "s")]) == 0
    roi = Benchmark.load(tmp_path / "bench").samples[0].roi
    for path in (next((tmp_path / "out" / "regions").iterdir()), tmp_path / "bench" / str(roi)):
        assert np.array_equal(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) > 0, region)
    huge = replace(
        material(1, ())[0], ground_truth=None, images={ORIGINAL: lambda: np.zeros((8, 4097, 3), np.uint8)}
    )
    with pytest.raises(InputError, match="4097 x 8 pixels; images to draw on have at most 4096 a side"):
        new_study(
            tmp_path / "huge", [huge], ["x"], StudySettings("w", 0, (ReaderTask.CHOOSE_ROI,), MED_BANANA)
        )
    capsys.readouterr()


@pytest.mark.parametrize("readers", [2, 3])
def test_regions_that_do_not_meet_hold_no_other_sample_back(
    tmp_path: Path, readers: int, capsys: pytest.CaptureFixture[str]
):
    benchmark = small_bench(tmp_path / "bench", 2, size=(96, 64))
    words = ["review", "new", str(tmp_path / "s"), "--from", str(tmp_path / "bench"), "--task", "choose-roi"]
    assert main(words) == 0
    study = open_study(tmp_path / "s")
    apart, together = sorted(sample.id for sample in benchmark.samples)
    ratings = Ratings.open(study)
    for number in range(readers):
        reader, _ = ratings.invite()
        for item in study.blocks[0].items:
            region = np.zeros((64, 96), bool)
            left = 30 * number if study.by_case[item.case].source == apart else 30
            region[10:20, left : left + 10] = True
            mask = base64.b64encode(encode_mask(region)).decode()
            ratings.save(reader.code, item.id, "k" * 8, "b1", [], 0, {"proposal": None, "mask": mask}, 1)
    ratings.close()
    before = {sample.id: sample.roi for sample in benchmark.samples}
    capsys.readouterr()
    assert main(["bench", "prepare", str(tmp_path / "bench"), "--study", str(tmp_path / "s"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said["chosen"]) == {together} and set(said["undecided"]) == {apart}
    after = {sample.id: sample for sample in Benchmark.load(tmp_path / "bench").samples}
    assert after[apart].roi == before[apart] and "region: chosen" in " ".join(after[together].notes)


def test_ratings_of_others_come_in_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    study = small_study(tmp_path / "s", ReaderTask.RATE, cases=2)
    names = [name for name, _ in study.blocks[0].criteria]
    rows = [",".join(["source", "model", *names])]
    rows += [",".join([case.source, MODELS[0], *"7777"]) for case in study.cases[:2]]
    (tmp_path / "ana.csv").write_text("\n".join(rows))
    for _ in range(2):
        assert main(["review", "import", str(study.folder), str(tmp_path / "ana.csv"), "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"imported": {"ana": 2}}
    ratings = Ratings.open(study)
    assert len(ratings.history()) == 2 and ratings.readers()[0].role == "imported"
    for before, after in [("7,7,7,7", "7,7,11,7"), (MODELS[0], "zebra"), ("7,7,7,7", "7,7,7,x")]:
        (tmp_path / "ben.csv").write_text("\n".join(rows).replace(before, after))
        assert main(["review", "import", str(study.folder), str(tmp_path / "ben.csv")]) == 2
        err = capsys.readouterr().err
        assert "ben.csv: line 2" in err and err.count("\n") == 1
    assert len(ratings.history()) == 2
    ratings.close()


def test_ratings_that_are_mended_and_mended_back_count_as_they_stand_last(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    study = small_study(tmp_path / "s", ReaderTask.RATE, cases=1)
    head = ",".join(["reader", "source", "model", *(name for name, _ in study.blocks[0].criteria)])
    ratings = Ratings.open(study)
    ratings.invite()
    table = tmp_path / "all.csv"

    def came(*rows: str) -> int:
        table.write_text("\n".join([head, *rows]))
        return main(["review", "import", str(study.folder), str(table)])

    one = f"ana,{study.cases[0].source},{MODELS[0]}"
    for score in (7, 5, 7, 7):
        assert came(f"{one},{score},1,1,1") == 0
    first = [next(iter(answer.value["scores"].values())) for answer in ratings.history()]
    assert first == [7, 5, 7]  # the same again is nothing new
    capsys.readouterr()
    assert came(f"{one},1,1,1,1", f"{one},2,2,2,2") == 2
    assert "line 3: reader 'ana' rates" in capsys.readouterr().err
    assert came(f"{one},1,1,1,1", one.replace("ana", "R01") + ",2,2,2,2") == 2  # nothing of it is stored
    assert "R01" in capsys.readouterr().err and len(ratings.history()) == 3
    for code in ("a\x1b[2J", '"x\ny"', "z" * 65):  # such a code would stand in terminals and tables
        assert came(one.replace("ana", code) + ",1,1,1,1") == 2
        assert "printable" in (err := capsys.readouterr().err) and "\x1b" not in err and err.count("\n") == 1
    assert came(one.replace("ana", "R03") + ",1,1,1,1") == 0  # a code that invitations would come to
    more = [ratings.invite()[0] for _ in range(2)]
    # who came from a file takes no place in the balance of orders and groups
    assert [(reader.code, reader.number) for reader in more] == [("R02", 1), ("R04", 2)]
    head += ",realism"
    assert came(f"{one},1,1,1,1,9") == 2 and "column 'realism'" in capsys.readouterr().err
    assert len(ratings.history()) == 4
    ratings.close()


def test_people_judge_the_pictures_that_they_saw_and_no_others(tmp_path: Path):
    """Two of three readers accept: the majority passes; other pixels of the same task are not applicable."""
    source = SourceImage(
        "i",
        "d",
        "chest_xray",
        ("No Finding",),
        Licence.OPEN,
        "a" * 64,
        "b" * 64,
        Geometry(64, 64, "pad", 0, 0, 64, 64),
    )
    name = task_id(source.source_sha256, 0, "Pneumothorax", Direction.ADD)
    one = material(1, MODELS[:1])[0]
    made = new_study(
        tmp_path / "people",
        [replace(one, source=name)],
        ["run"],
        StudySettings("p", 0, (ReaderTask.ACCEPT,), MED_BANANA),
    )
    ratings = Ratings.open(made)
    block = made.blocks[0]
    for number in range(3):
        reader, _ = ratings.invite()
        value = {"criteria": {key: number < 2 for key, _ in block.criteria}, "codes": []}
        ratings.save(reader.code, block.items[0].id, "k" * 8, "b1", [MODELS[0]], 0, value, 1)
    ratings.close()
    judge = PeopleJudge(made.folder)
    assert judge.name == "people/people"

    def asked(model: int) -> Reply[Observations]:
        pictures = [EncodedImage(encode_png(drawn(0, m)), "image/png") for m in (0, model)]
        finding = load_taxonomy().get("chest_xray", "Pneumothorax")
        return asyncio.run(
            judge.judge(
                JudgeRequest(source, *pictures, "Add it.", finding, Direction.ADD, MED_BANANA, 1, task=name)
            )
        )

    told = asked(1).value
    assert told is not None and all(found.passed for found in told.criteria.values())
    assert told.criteria["realism"].confidence == pytest.approx(2 / 3)
    assert asked(2).outcome.kind is OutcomeKind.NOT_APPLICABLE


def test_a_study_is_made_from_a_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """What a release carries is what its run had: the same tasks, instructions and pixels."""
    run = build_run(tmp_path / "run")
    words = ["export", str(run), "--to", str(tmp_path / "out"), "--layout", "med-banana", "--json"]
    assert main([*words, "--licence", "matplotlib=CC0-1.0", "--licence", "pydicom-data=CC0-1.0"]) == 0
    capsys.readouterr()
    found = []
    for number, source in enumerate((run, tmp_path / "out")):
        made = tmp_path / f"s{number}"
        assert main(["review", "new", str(made), "--from", str(source), "--task", "accept", "--json"]) == 0
        found.append(open_study(made))
    by_source = [{case.source: case for case in study.cases} for study in found]
    assert set(by_source[1]) <= set(by_source[0]) and len(by_source[1]) >= 4
    for source, case in by_source[1].items():
        other = by_source[0][source]
        assert (case.instruction, case.finding, case.size) == (other.instruction, other.finding, other.size)
        edited = [next(f for model, f in one.images.items() if model != ORIGINAL) for one in (case, other)]
        both = [cv2.imread(str(s.folder / IMAGES / f)) for s, f in zip(reversed(found), edited, strict=True)]
        assert np.array_equal(*both)


def test_a_study_is_made_from_a_benchmarks_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Every sample with the first scored output of each arm; the pixels are those of the run's blobs."""
    made = make_all(tmp_path, organs=("Skin",), per_organ=3)
    words = ["review", "new", str(tmp_path / "s"), "--from", str(made.run), "--task", "pair,rate", "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
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
