"""`[loop] turns`: the source of a further turn, the end of a chain, its conversation in a release."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from audit.stored_run import RuleJudge, seen
from pipeline.quick import CallLog, Draws, judging, quick_catalogue, quick_method, quick_recipe
from plantain.audit.rejudge import RejudgeRequest, run_rejudge
from plantain.cli import main
from plantain.files.source_type import declared_synthetic
from plantain.journal import JournalReader
from plantain.journal.questions.accepted import accepted_edits, count_parts, turn_rows
from plantain.journal.questions.units import units
from plantain.journal.sending import sent_with_sources
from plantain.pipeline.run import run_build
from plantain.pixels.decode import decode
from plantain.pixels.encode import encode_jpeg
from plantain.records import Consent, InputError, Licence, TaskState
from plantain.records.images import parent_of
from plantain.review.study import open_study
from plantain.roles import EditedImage, EditRequest, EncodedImage
from plantain.runs.terms import Terms
from plantain.train.releases import StoredOriginals

RECIPE = """name = "turns"
data = {catalogue = "catalogue", findings = ["AMD", "Hypertension"], directions = ["add"], check_text = false}
loop = {turns = 2}"""


def build(
    catalogue: Path, run: Path, good: list[bool], findings: str, turns: int, drift: int = 0, far: int = 200
) -> str:
    """Build with one round a task; return tasks and accepted edits of each turn.

    Each edit draws a square for its finding, and makes one of `far` pixels brighter by `drift` grey levels.
    """

    def edited(request: EditRequest) -> EditedImage:
        pixels = decode(request.original.data).copy()
        top = {"AMD": 300, "Diabetes": 450, "Cataract": 600}[request.concept]
        pixels[top : top + 60, 300:360] //= 2
        square = pixels[400 : 400 + far, 600 : 600 + far]
        square[:] = np.minimum(square, 255 - drift) + drift
        return EditedImage(EncodedImage(encode_jpeg(pixels), "image/jpeg"), None, "local")

    data = {"consent": {"by": "the owner", "agreement": "DUA 1"}, "findings": findings.split()}
    recipe = quick_recipe(catalogue, data=data, limits={"concurrency": 1}, turns=turns)
    method = replace(quick_method(CallLog(), max_rounds=1), editor=Draws(edited), judges=(judging(*good),))
    asyncio.run(run_build(recipe, run, method=method))
    with JournalReader.open(run) as reader:
        return ", ".join(f"{row.tasks} {row.accepted}" for row in turn_rows(reader))


@pytest.mark.slow
def test_second_turn_edits_the_accepted_image_and_is_released_as_a_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    quick_catalogue(Path("catalogue"), images=1)
    Path("turns.toml").write_text(RECIPE)
    assert main(["build", "turns.toml", "--run", "run"]) == 0
    with JournalReader.open(Path("run")) as reader:
        first, second = turn_rows(reader)
        assert second.tasks == first.accepted > 0 and second.accepted > 0
        accepted = accepted_edits(reader)
        for image in filter(lambda image: image.parent, reader.images()):
            assert image.prepared_sha256 == accepted[image.parent].sha256
            assert reader.task(image.parent).task.finding in image.labels and image.synthetic
        blobs = {blob.sha256: reader.read_blob(blob.sha256) for blob in accepted.values()}
        assert all(declared_synthetic(blob) for blob in blobs.values())
    assert main(["report", "run"]) == main(["status", "run"]) == 0
    assert str(second) in capsys.readouterr().out and str(second) in Path("run/report.html").read_text()
    assert main(["export", "run", "--to", "out", "--layout", "parquet", "--licence", "CC-BY-4.0"]) == 0
    assert main(["verify", "out", "--against", "run", "--pixels"]) == 0
    lines = Path("out/trajectories/conversations.jsonl").read_text().splitlines()
    assert len(lines) == second.accepted
    for chain in map(json.loads, lines):
        assert chain["image_id"] == "retina-0" and all(turn["instruction"] for turn in chain["turns"])
        made = [accepted[turn["task_id"]].sha256 for turn in chain["turns"]]
        assert made == [turn["edited"] for turn in chain["turns"]] and len(made) == 2
        before = StoredOriginals(Path("out")).read(made[0])  # the later turn's image is in the release itself
        assert np.array_equal(before, decode(blobs[made[0]]))


def test_chain_ends_at_a_rejected_edit_and_is_changed_and_withdrawn_with_its_source(tmp_path: Path) -> None:
    now = {"licence": Licence.CREDENTIALED, "group": "patient:1", "consent": Consent("the owner", "DUA 2")}
    unknown = {"licence": Licence.UNKNOWN}
    catalogue, run = quick_catalogue(tmp_path / "catalogue", images=1, changes=unknown), tmp_path / "run"
    good = [True, True, False, True, False]  # first turn: yes, yes, no; second of two: yes, no; third: no
    assert build(catalogue, run, good, "AMD Diabetes Cataract", turns=3) == "3 2, 2 1, 1 0"
    shutil.rmtree(catalogue)
    quick_catalogue(catalogue, images=1, changes=now)
    assert build(catalogue, run, good, "AMD Diabetes Cataract", turns=3) == "3 2, 2 1, 1 0"
    with JournalReader.open(run) as reader:
        later = {one.id: (one.licence, one.group, one.consent) for one in reader.images() if one.parent}
        assert len(later) == 3 and set(later.values()) == {tuple(now.values())}
        sent = [(one.image, licence) for one, _, licence in sent_with_sources(reader)]
        assert {licence for _, licence in sent} == {"credentialed"} and later.keys() <= dict(sent).keys()
        second = reader.task(parent_of(max(later, key=lambda name: "+turn3" in name))).task.image_id
    assert main(["run", "withdraw", str(run), "--image", second]) == 0  # with the turn made from it
    assert build(catalogue, run, good, "AMD Diabetes Cataract", turns=3) == "3 2, 1 0"
    assert main(["run", "withdraw", str(run), "--image", "retina-0"]) == 0
    with JournalReader.open(run) as reader:
        assert not list(reader.tasks()) and not list(reader.images())
    assert not [file for file in (run / "blobs").rglob("*") if file.is_file()]


# 200 x 200 of 1024 x 1024 pixels are 3.8 %, 4.9 % as the comparison blurs them; 16 x 16 are 0.02 %
@pytest.mark.parametrize(("drift", "far", "share"), [(2, 200, "4.9 %"), (1, 16, "less than 0.1 %")])
def test_accumulated_drift_from_the_original_fails(
    one_image: Path, tmp_path: Path, drift: int, far: int, share: str
) -> None:
    assert build(one_image, tmp_path, [True], "AMD Diabetes", turns=2, drift=drift, far=far) == "2 2, 2 0"
    with JournalReader.open(tmp_path) as reader:
        verdicts = [one for row in reader.tasks(TaskState.FAILED) for one in reader.verdicts(row.id)]
    assert {one.verdict.judge for one in verdicts if one.decisive} == {"quick/judge + original check"}
    assert f"{share} of the pixels that no turn touched differ from the original" in str(verdicts)
    lenient = RejudgeRequest([RuleJudge("rule/yes", lambda request: seen(True))], decisive=True)
    assert asyncio.run(run_rejudge(tmp_path, lenient, Terms(()))).vetoed == 2
    with JournalReader.open(tmp_path) as reader:
        assert [(row.tasks, row.accepted) for row in turn_rows(reader)] == [(2, 2), (2, 0)]


def test_turns_of_an_image_are_one_cluster_and_their_sources_are_not_real_to_readers(tmp_path: Path) -> None:
    run, study, name = tmp_path / "run", tmp_path / "study", "a+Turn2-b+turn1-left+turnip"  # no turn in it
    catalogue = quick_catalogue(tmp_path / "catalogue", images=1, changes={"id": name})
    assert build(catalogue, run, [True], "AMD Diabetes", turns=2) == "2 2, 2 2"
    with JournalReader.open(run) as reader, units(reader):  # four tasks of one photograph of one patient
        assert reader.connection.execute("SELECT count(DISTINCT cluster) FROM unit").fetchone() == (1,)
        assert [part.tasks for part in count_parts(reader).values()] == [1, 1]  # of the first turn
    asked = ["--from", str(run), "--task", "accept,real-or-edited"]
    assert main(["review", "new", str(study), *asked]) == 0
    accept, real = open_study(study).blocks
    assert [item.truth for item in accept.items] == [""] * 4
    assert sorted(item.truth for item in real.items) == ["edited", "edited", "real", "real"]
    assert {case.cluster for case in open_study(study).cases} == {name}


def test_one_turn_equals_no_turns_and_the_number_is_frozen(one_image: Path, tmp_path: Path) -> None:
    none, one = (quick_recipe(one_image, **loop).frozen_part() for loop in ({}, {"turns": 1}))
    assert none == one and "turns" not in str(none)
    assert build(one_image, tmp_path, [True], "AMD Cataract", turns=1) == ""
    with pytest.raises(InputError, match=r"loop\.turns is now 2"):
        build(one_image, tmp_path, [True], "AMD Cataract", turns=2)
