"""Freezing, orders, ratings and withdrawals: the same again by seed, balanced, durable, and nothing twice."""

from __future__ import annotations

import io
import itertools
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fakes.commands import printed
from plantain.cli import main
from plantain.files.source_type import declared_synthetic
from plantain.journal.connect import RunLock
from plantain.records import InputError
from plantain.review import withdrawing
from plantain.review.blinding import served, stored_images
from plantain.review.freezing import StudySettings, new_study
from plantain.review.ratings import Ratings
from plantain.review.study import IMAGES, STUDY, ReaderTask, Study, open_study
from plantain.review.web.desk import reader_order, slot_order
from plantain.review.withdrawing import withdraw_from_study
from plantain.rubrics import MED_BANANA
from review.study_on_paper import MODELS, drawn, material, read_all, small_study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return small_study(tmp_path_factory.mktemp("studies") / "all")


def test_the_same_seed_freezes_the_same_study(study, tmp_path: Path):
    again = small_study(tmp_path / "again")
    assert again.digest == study.digest and again.secret != study.secret
    assert open_study(again.folder).blocks == study.blocks
    assert {block.task for block in study.blocks} == set(ReaderTask)


def test_rank_asks_once_for_each_dimension_of_the_paper(study):
    """MedEBench 3.5 and figure 10: annotators rank all outputs of a sample along EA, CP and VQ."""
    ranks = [block for block in study.blocks if block.task is ReaderTask.RANK]
    assert [block.dimension for block in ranks] == ["EA", "CP", "VQ"]
    assert len({block.title for block in ranks}) == 3 and all(len(block.criteria) == 1 for block in ranks)
    assert all(set(item.shown) == set(MODELS) for block in ranks for item in block.items)


def test_a_changed_study_is_refused(study, tmp_path: Path):
    made = small_study(tmp_path / "s", ReaderTask.ACCEPT)
    path = made.folder / STUDY
    path.write_text(path.read_text().replace("Add a small", "Add a large"))
    with pytest.raises(InputError, match="was changed since it was frozen"):
        open_study(made.folder)
    with pytest.raises(InputError, match="already exists"):
        small_study(tmp_path / "s", ReaderTask.ACCEPT)
    assert not list(tmp_path.glob("*.unfinished"))


def test_served_images_of_a_case_differ_in_pixels_only(study):
    """On disk edits carry the mark of synthetic images; served files have one length and no metadata."""
    for case in study.cases:
        stored = {model: (study.folder / IMAGES / name).read_bytes() for model, name in case.images.items()}
        assert {model for model, data in stored.items() if declared_synthetic(data)} == set(MODELS)
        files = [served(data, case.served_bytes) for data in stored.values()]
        assert {len(data) for data in files} == {case.served_bytes}
        for data in files:
            image = Image.open(io.BytesIO(data))
            image.load()  # an independent decoder reads the padded stream
            assert image.info == {} and image.size == case.size
    pixels = drawn(1, 2)
    files, length = stored_images([pixels, drawn(1, 0)], (64, 64), [True, False])
    assert (np.asarray(Image.open(io.BytesIO(served(files[0], length))).convert("RGB")) == pixels).all()


def test_orders_are_uniform_over_readers_and_never_show_a_case_twice_in_a_row(study):
    block = next(block for block in study.blocks if block.task is ReaderTask.PAIR)
    places, lefts, twice = Counter(), Counter(), 0
    for reader in range(1000):
        order = reader_order(study, block, reader)
        places[order.index(block.items[0])] += 1
        lefts[slot_order(study, block.items[0], reader)[0]] += 1
        twice += sum(a.case == b.case for a, b in itertools.pairwise(order))
    # 12 items over 4 cases; chi-squared with 11 degrees of freedom is above 31.3 once in a thousand
    expected = 1000 / len(order)
    assert sum((places[n] - expected) ** 2 / expected for n in range(len(order))) < 31.3
    assert set(lefts.values()) == {500}  # two readers in a row see a pair mirrored
    assert twice <= 0.01 * 1000 * len(order)
    ranked = next(block for block in study.blocks if block.task is ReaderTask.RANK).items[0]
    thirds = Counter(slot_order(study, ranked, reader)[2] for reader in range(999))
    assert set(thirds.values()) == {333}
    assert reader_order(study, block, 7) == reader_order(study, block, 7)


def test_answers_are_kept_once_and_the_newest_counts(study, tmp_path: Path):
    made = small_study(tmp_path / "s", ReaderTask.PAIR)
    ratings = Ratings.open(made)
    reader, token = ratings.invite()
    item = made.blocks[0].items[0]
    save = lambda key, value: ratings.save(reader.code, item.id, key, "b1", list(item.shown), 0, value, 5)  # noqa: E731
    first = save("key-1", {"better": "left"})
    assert save("key-1", {"better": "left"}) == first
    second = save("key-2", {"better": "tie"})
    assert second > first
    assert [answer.value for answer in ratings.current()] == [{"better": "tie"}]
    ratings.close_block(reader.code, "b1")
    assert save("key-2", {"better": "tie"}) == second  # sent again after the block was closed: known
    with pytest.raises(InputError, match="closed"):
        save("key-3", {"better": "right"})
    assert token.encode() not in (made.folder / "ratings.sqlite").read_bytes()
    assert MODELS[0].encode() in (made.folder / "ratings.sqlite-wal").read_bytes()  # slots are kept
    ratings.close()


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ({"cases": 9}, r"--cases 9: there are 5$"),
        ({"tasks": (ReaderTask.PAIR,)}, "--task pair: needs cases with outputs of two models"),
        ({"tasks": (ReaderTask.DESCRIBE_OK,)}, "description"),
    ],
)
def test_more_than_the_material_allows_is_refused(tmp_path: Path, wanted: dict, line: str):
    poor = [replace(one, description="") for one in material(5, MODELS[:1])]
    asked = {"name": "x", "seed": 0, "tasks": (ReaderTask.ACCEPT,), "rubric": MED_BANANA} | wanted
    with pytest.raises(InputError, match=line):
        new_study(tmp_path / "s", poor, ["p"], StudySettings(**asked))
    assert not list(tmp_path.iterdir())


GONE = "patient3"


def answered(folder: Path) -> Study:
    """A study of eight cases, with one answer to each item, a page and an export."""
    study = small_study(folder, cases=8, models=MODELS[:2])
    read_all(study, 1, lambda _, block, item, slots: {"cannot": f"about {item.case}"})
    (folder / "results.html").write_text(GONE)
    (folder / "export").mkdir()
    (folder / "export" / "answers.csv").write_text(GONE)
    return study


def test_a_withdrawn_patient_is_in_no_file_and_other_answers_stay(tmp_path: Path) -> None:
    before = answered(tmp_path / "s")
    (case,) = (one for one in before.cases if one.cluster == GONE)
    withdraw_from_study(tmp_path / "s", {GONE})
    after = open_study(tmp_path / "s")
    assert after.cases == tuple(one for one in before.cases if one.id != case.id)
    words = (GONE, case.source, case.image, f"about {case.id}")
    files = [path for path in (tmp_path / "s").rglob("*") if path.is_file()]
    assert not [path for path in files for word in words if word.encode() in path.read_bytes()]
    assert not [path for path in files if path.name.startswith(f"{case.id}-")]
    with closing(Ratings.open(after)) as ratings:
        assert {one.item for one in ratings.current()} == set(after.by_item)


def test_a_killed_withdrawal_is_completed_by_repeating_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(tmp_path / "s")

    def killed(study: Study) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(withdrawing, "write_document", killed)
        withdraw_from_study(tmp_path / "s", {GONE})
    withdraw_from_study(tmp_path / "s", {GONE})
    Ratings.open(open_study(tmp_path / "s")).close()
    withdraw_from_study(tmp_path / "s", {GONE})  # nothing is left of it


def test_withdrawal_from_a_study_by_name_is_refused_while_it_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answered(tmp_path / "s")
    asked = ["run", "withdraw", str(tmp_path / "s"), "--group", GONE]
    lock = RunLock(tmp_path / "s")
    assert main(asked) == 1
    assert "is being served" in capsys.readouterr().out
    lock.release()
    assert "removed 1 case with the answers about them" in printed(*asked)
    assert main([*asked[:-1], "patient4711"]) == 2
