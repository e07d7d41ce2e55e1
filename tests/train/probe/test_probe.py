from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from plantain.catalogue.store import Catalogue
from plantain.cli import main
from plantain.cli.train.probe import app as probe_app
from plantain.cli.train.probe_check import app as check_app
from plantain.findings import load_taxonomy
from plantain.models.probe.card import Area, ControlRate, needs, why_not
from plantain.models.probe.folder import CARD, WEIGHTS, Probe, logits_of, write_probe
from plantain.models.probe.provider import load
from plantain.pixels.encode import encode_png, encode_source
from plantain.records import Direction, InputError
from plantain.roles import EncodedImage, Judge, JudgeRequest
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA, majority
from plantain.train.probe.learning import ProbeSchedule, calibrate, fit
from plantain.train.probe.pictures import labelled_frames
from plantain.train.probe.training import train_probe

from .heads import catalogue_of, head, labelled, record

QUICK = ProbeSchedule(epochs=5, batch=16, width=16, shares=None)


def test_a_ring_is_learned_and_a_seed_repeats_itself(tmp_path: Path) -> None:
    pictures = labelled(140)
    card = train_probe(pictures, QUICK, 3, tmp_path / "probe")
    assert card.held_out["ring"].auc is not None and card.held_out["ring"].auc > 0.9
    assert card.patients == "known"
    assert sum(part["pictures"] for part in card.learned_from.values()) == 140
    parts = pictures.parts(3)
    again = fit(parts[0], QUICK, 3)
    stored = Probe.open(tmp_path / "probe")
    assert np.array_equal(logits_of(again, parts[2].frames), logits_of(stored.network, parts[2].frames))


def test_groups_stay_on_one_side() -> None:
    parts = labelled(200, per_group=5).parts(0)
    groups = [set(part.groups.tolist()) for part in parts]
    assert not groups[0] & groups[1] and not groups[0] & groups[2] and not groups[1] & groups[2]
    assert sum(map(len, parts)) == 200


def test_calibration_puts_an_even_chance_between_the_classes() -> None:
    pictures = labelled(120)
    network = fit(pictures, QUICK, 0)
    found = calibrate(network, pictures, 0)
    logits = logits_of(network, pictures.frames)[:, 0] / found.temperatures[0] - found.shifts[0]
    rings = pictures.labels[:, 0]
    assert logits[rings].mean() > 0 > logits[~rings].mean()
    assert found.margins[0] > 0


def test_a_card_says_what_it_lacks() -> None:
    good, right = Area(0.97, 0.95, 0.99, 100, 90), ControlRate(0.97, 0.95, 0.99, 100)
    areas = {"held out": {"a": good}} | {name: {"a": good} for name in needs()["exchanged"]}
    controls = {name: {"a": right} for name in needs()["control"]}
    assert why_not(["a"], areas["held out"], 0.02, controls, areas) == ()
    found = why_not(
        ["a"],
        {"a": replace(good, auc=0.92996)},
        0.2,
        controls | {"a case's inside in a healthy rim": {"a": replace(right, rate=0.08)}},
        areas | {"borders exchanged": {"a": replace(good, auc=None)}},
    )
    assert len(found) == 4
    assert found[0] == "a: AUC 0.92996 with held-out pictures, below 0.93"  # 0.930 would read like the bar
    assert found[-1] == "a: 0.080 right of 100 with a case's inside in a healthy rim, below 0.80"
    for impossible in (float("nan"), 1.7, float("inf")):
        assert why_not(["a"], {"a": replace(good, auc=impossible)}, 0.02, controls, areas)
        assert why_not(["a"], areas["held out"], impossible, controls, areas)
    nothing = why_not(["a"], {}, 0.02, {}, {})
    assert len(nothing) == len(areas) + len(controls)


def _request(
    before: np.ndarray, after: np.ndarray, direction: Direction, finding: str = "glioma"
) -> JudgeRequest:
    files = [EncodedImage(encode_png(pixels), "image/png") for pixels in (before, after)]
    asked = next(f for f in load_taxonomy().findings if f.name == finding)
    return JudgeRequest(record(0, False), *files, "Add it.", asked, direction, MED_BANANA, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A probe of the ring with figures that pass: what the card measures is not what these tests are about."""
    home = tmp_path_factory.mktemp("probe")
    pictures = replace(labelled(140), findings=("glioma",))
    card = train_probe(pictures, QUICK, 0, home)
    good, right = Area(0.97, 0.95, 0.99, 100, 90), ControlRate(0.97, 0.95, 0.99, 100)
    passing = replace(
        card,
        held_out={"glioma": good},
        ece=0.02,
        controls={name: {"glioma": right} for name in needs()["control"]},
        areas_under={name: {"glioma": good} for name in needs()["exchanged"]},
        why_not=(),
    )
    write_probe(home, Probe.open(home).network, passing)
    return home


def test_the_judge_sees_a_ring_come_and_go(folder: Path) -> None:
    judge = load(f"probe/{folder}", "judge", ProviderOptions())
    assert isinstance(judge, Judge)
    right = {Direction.ADD: 0, Direction.REMOVE: 0}
    for seed in range(1000, 1010):
        plain, ringed = head(seed, ring=False), head(seed, ring=True)
        for direction, pair in ((Direction.ADD, (plain, ringed)), (Direction.REMOVE, (ringed, plain))):
            seen = asyncio.run(judge.judge(_request(*pair, direction))).value
            assert seen is not None
            right[direction] += bool(seen.criteria["instruction_compliance"].passed)
            assert seen.criteria["realism"].passed is None
    assert min(right.values()) >= 8
    same = asyncio.run(judge.judge(_request(plain, plain, Direction.ADD))).value
    assert same is not None and same.criteria["instruction_compliance"].passed is False


def test_the_judge_has_no_vote_on_what_it_was_not_trained_for(folder: Path) -> None:
    judge = load(f"probe/{folder}", "judge", ProviderOptions())
    assert isinstance(judge, Judge)
    seen = asyncio.run(
        judge.judge(_request(head(1, True), head(2, False), Direction.ADD, "meningioma"))
    ).value
    assert seen is not None and all(result.passed is None for result in seen.criteria.values())
    other = replace(
        seen, criteria={name: replace(result, passed=True) for name, result in seen.criteria.items()}
    )
    together = majority([("instruments", other), ("probe", seen)], MED_BANANA, Direction.ADD)
    assert all(result.passed for result in together.criteria.values())


def test_a_probe_without_a_passing_card_of_its_own_judges_nothing(folder: Path, tmp_path: Path) -> None:
    stored = Probe.open(folder)
    assert stored.why_not == ()
    poor = replace(stored.card, held_out={"glioma": replace(stored.card.held_out["glioma"], auc=0.70)})
    write_probe(tmp_path / "bad", stored.network, poor)
    with pytest.raises(InputError, match=r"does not pass, so it judges nothing: glioma: AUC 0\.70"):
        load(f"probe/{tmp_path / 'bad'}", "judge", ProviderOptions())
    with pytest.raises(InputError, match="no probe here"):
        load(f"probe/{tmp_path}", "judge", ProviderOptions())
    with pytest.raises(InputError, match="can be a judge, not a writer"):
        load(f"probe/{folder}", "writer", ProviderOptions())
    shutil.copy(folder / CARD, tmp_path / "bad" / CARD)
    assert Probe.open(tmp_path / "bad").why_not == ()  # the same weights: it is their card
    other = fit(replace(labelled(40), findings=("glioma",)), QUICK, 9)
    write_probe(tmp_path / "other", other, stored.card)
    shutil.copy(folder / CARD, tmp_path / "other" / CARD)
    told = json.loads((folder / CARD).read_text())
    edited = {
        "figures": told | {"ece": 0.01},
        "temperatures": told | {"temperatures": [0.01]},
        "findings": told | {"findings": ["glioma", "meningioma"]},
        "unsealed": {name: value for name, value in told.items() if name != "seal"},
        "controls left out": told | {"controls": {}},
    }
    for name, card in edited.items():
        shutil.copytree(folder, tmp_path / name)
        (tmp_path / name / CARD).write_text(json.dumps(card))
    for name in ("other", *edited):
        with pytest.raises(InputError, match=r"judges nothing: its card (was changed|has no seal)"):
            load(f"probe/{tmp_path / name}", "judge", ProviderOptions())
    (tmp_path / "bad" / CARD).write_text('{"findings": 3}')
    with pytest.raises(InputError, match="not the card of a probe"):
        Probe.open(tmp_path / "bad")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"synthetic": True}, "all 60 pictures are drawn or edited"),
        ({"group": "one patient"}, "1 independent picture with glioma"),
    ],
)
def test_edits_alone_and_too_few_patients_are_refused(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    folder = catalogue_of(tmp_path / "catalogue", 60, **changes)
    with pytest.raises(InputError, match=said):
        labelled_frames(folder, ["glioma"], least=20)


def test_a_finding_that_nobody_has_is_named_with_the_nearest(tmp_path: Path) -> None:
    folder = catalogue_of(tmp_path / "catalogue", 4)
    with pytest.raises(InputError, match="did you mean 'glioma'"):
        labelled_frames(folder, ["gliom"], least=1)


def test_commands_train_and_check(tmp_path: Path) -> None:
    folder, out = catalogue_of(tmp_path / "catalogue", 90), tmp_path / "probe"
    wish = [str(folder), "--findings", "glioma", "--out", str(out), "--epochs", "1", "--width", "16"]
    trained = CliRunner().invoke(probe_app, [*wish, "--least", "20", "--json"])
    assert trained.exit_code == 0, trained.output
    card = json.loads(trained.stdout)
    assert card["passes"] is False and card["why_not"]
    assert "does not pass" in (out / "probe.html").read_text()
    checked = CliRunner().invoke(check_app, [str(out), str(folder), "--json"])
    told = json.loads(checked.stdout)
    assert set(told["findings"]["glioma"]) == {"auc", "low", "high", "n"}
    assert told["learned_from_these"] is True
    refused = CliRunner().invoke(probe_app, [*wish, "--json"])
    assert refused.exit_code != 0


def test_what_is_wrong_with_a_probe_or_its_pictures_is_one_line(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = catalogue_of(tmp_path / "heads", 6)
    one = tmp_path / "one class"
    with Catalogue.create(one) as catalogue:
        for seed in range(4):
            catalogue.add(record(seed, True), encode_source(head(seed, True)))
    lost = catalogue_of(tmp_path / "lost", 6)
    with Catalogue.open(lost) as catalogue:
        gone = next(iter(catalogue.images())).prepared_sha256
    next(lost.rglob(f"*{gone[4:]}*")).unlink()
    broken = {}
    for name in ("cut card", "cut weights", "no weights"):
        broken[name] = tmp_path / "Sonde ä→ß" / name
        shutil.copytree(folder, broken[name])
    (broken["cut card"] / CARD).write_bytes((folder / CARD).read_bytes()[:200])
    (broken["cut weights"] / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes()[:1000])
    (broken["no weights"] / WEIGHTS).unlink()
    (tmp_path / "empty").mkdir()
    cases = {
        ("probe-check", str(folder), str(tmp_path / "empty")): "no catalogue there",
        ("probe-check", str(tmp_path / "empty"), str(heads)): "no probe here",
        ("probe-check", str(folder), str(lost)): gone[:8],
        ("probe-check", str(broken["cut card"]), str(heads)): "not the card of a probe",
        ("probe-check", str(broken["cut weights"]), str(heads)): "not the weights of this probe",
        ("probe-check", str(broken["no weights"]), str(heads)): WEIGHTS,
        ("probe", str(one), "--findings", "glioma", "--out", str(tmp_path / "out")): "independent pictures",
        ("probe", str(heads), "--findings", "gliöma→", "--out", str(tmp_path / "out")): "no picture of",
        ("separability", str(tmp_path / "empty")): "neither a run",
        ("utility", str(tmp_path / "empty"), "--real", str(heads), "--findings", "glioma"): "independent",
    }
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    for arguments, words in cases.items():
        assert main(["train", *arguments]) == 2, arguments
        said = capsys.readouterr()
        assert words in said.err and said.err.count("\n") == 1 and not said.out, (arguments, said.err)
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    assert not (tmp_path / "out").exists()
