"""Two sets of prompts on the same stored attempts over a loopback provider: flips, agreement, cost, no call twice."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stored_run import stored_run

from fakes.gemini_format import gemini_route, pictures_sent, prompt_text
from fakes.server import KEY, FakeProvider
from plantain.audit.rejudging.wordings import wording_of
from plantain.cli import main
from plantain.metrics.statistics.agreement import cohen_kappa
from plantain.models.hosted.prompts.library import BUILT_IN
from plantain.records import InputError

SETTINGS = """
[limits]
concurrency = 3
{limits}
[providers.gemini]
base_url = "{url}"
form = "{form}"
[providers.gemini.prices.m]
input_per_m = 1.0
output_per_m = 4.0
"""
ATTEMPTS = 12
"""Three images, two findings, two rounds."""


@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored_run(tmp_path_factory.mktemp("compared") / "run")


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words") / "mine"
    folder.mkdir()
    ours = (BUILT_IN / "judge_add.md.j2").read_text()
    (folder / "judge_add.md.j2").write_text(f"{ours}\nLook twice.\n")
    return folder


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeProvider]:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with FakeProvider([gemini_route]) as provider:
        yield provider


def settings(folder: Path, url: str, form: str = "plain", limits: str = "") -> Path:
    path = folder / "settings.toml"
    path.write_text(SETTINGS.format(url=url, form=form, limits=limits))
    return path


def compare(capsys: pytest.CaptureFixture[str], *args: object, code: int = 0) -> dict[str, Any]:
    assert main(["prompts", "compare", *map(str, args), "--judge", "gemini/m", "--json"]) == code
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_flips_agreement_and_cost_are_those_of_the_answers(
    on: Path, mine: Path, server: FakeProvider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "words"
    options = ("--on", on, "--run", run, "--settings", settings(tmp_path, server.url))
    stopped = compare(
        capsys, "shipped", mine, *options[:-1], settings(tmp_path, server.url, limits="max_calls = 5"), code=3
    )
    assert stopped["judged_by_both"] < ATTEMPTS and "max_calls" in stopped["stopped"]
    settings(tmp_path, server.url)
    told = compare(capsys, "shipped", mine, *options)
    posted = [call for call in server.calls if call.method == "POST"]
    assert (
        len(posted) == len({call.body for call in posted}) == 2 * ATTEMPTS
    )  # what was answered was not asked again
    assert Counter("Look twice." in prompt_text(call) for call in posted) == {True: ATTEMPTS, False: ATTEMPTS}
    seeds = Counter(call.fields["generationConfig"]["seed"] for call in posted)
    assert set(seeds.values()) == {2}  # both wordings are asked with the same draw
    assert (told["sampled"], told["judged_by_both"], told["stopped"]) == (ATTEMPTS, ATTEMPTS, None)

    # The fake judge passes everything or fails realism, by its prompt: recounted from what it said.
    verdicts: dict[tuple[bytes, ...], dict[bool, bool]] = {}
    for call in posted:
        answer = gemini_route(call)
        assert answer is not None
        parts = json.loads(answer.body)["candidates"][0]["content"]["parts"]
        key = (*pictures_sent(call), prompt_text(call).partition("Finding: ")[2][:12].encode())
        verdicts.setdefault(key, {})["Look twice." in prompt_text(call)] = json.loads(parts[-1]["text"])[
            "realism"
        ]["passed"]
    pairs = [(said[False], said[True]) for said in verdicts.values()]
    assert len(pairs) == ATTEMPTS
    flips = sum(a != b for a, b in pairs)
    assert 0 < flips == len(told["flips"])
    qualified = told["qualified"]
    assert (qualified["a"], qualified["b"]) == (sum(a for a, _ in pairs), sum(b for _, b in pairs))
    assert qualified["to_yes"] + qualified["to_no"] == flips
    kappa = cohen_kappa(*zip(*pairs, strict=True), categories=(False, True))
    assert qualified["kappa"] == pytest.approx(kappa.value)
    assert qualified["same"] == pytest.approx(1 - flips / ATTEMPTS)
    assert told["criteria"]["fidelity_preservation"]["to_no"] == 0
    # 1,200 tokens read at $1, 150 written and 40 thought at $4 a million (fakes.gemini_format), 12 calls each.
    assert told["cost_usd"] == {"a": pytest.approx(0.02352), "b": pytest.approx(0.02352)}
    assert told["calls"] == {"a": ATTEMPTS, "b": ATTEMPTS}
    assert {flip["recorded"] for flip in told["flips"]} == {False}  # no stored attempt had qualified

    page = Path(told["report"]).read_text()
    assert page.count("<article ") == flips and page.count("<img src=") == 2 * flips
    assert page.count("<figcaption>edit, synthetic</figcaption>") == flips
    assert str(mine) not in page and "<h1>shipped and mine</h1>" in page  # a page that is shown says no path
    assert json.loads((run / "prompts.json").read_text())["flips"] == told["flips"]
    before = len(server.calls)
    assert compare(capsys, "shipped", mine, *options) == told and len(server.calls) == before


def test_blind_judges_are_compared_with_two_calls_each_and_the_same_order(
    on: Path, server: FakeProvider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "blind"
    folder.mkdir()
    (folder / "blind.md.j2").write_text(
        (BUILT_IN / "blind.md.j2").read_text().replace("Be strict:", "Be very strict:")
    )
    options = ("--on", on, "--sample", 2, "--settings", settings(tmp_path, server.url, "blind"))
    plan = compare(capsys, "shipped", folder, *options, "--plan")
    assert [(row["step"], row["calls"]) for row in plan["calls_by"]] == [("look", 4), ("judge", 4)]
    # By hand: 4 x (3,500 + 4 x 1,400) + 4 x (3,800 + 4 x 1,250) tokens at $1 a million.
    assert plan["cost_usd"]["expected"] == pytest.approx((4 * 9_100 + 4 * 8_800) / 1e6)
    assert not server.calls
    told = compare(capsys, "shipped", folder, *options, "--run", tmp_path / "words")
    assert told["calls"] == {"a": 4, "b": 4} and told["judged_by_both"] == 2
    orders = Counter(tuple(pictures_sent(call)) for call in server.calls if call.method == "POST")
    assert set(orders.values()) == {4}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("shipped", "shipped"), "in the same words"),
        (("shiped", "shipped"), "did you mean 'shipped'?"),
        (("shipped", "nowhere"), "no such folder"),
        (("shipped", "{broken}"), "judge_add.md.j2: 'verdict' is undefined"),
        (("shipped", "{empty}"), "in the same words: they differ in no prompt that it reads"),
        (("shipped", "{mine}", "--run", "{on}"), "a folder other than --on"),
        (("shipped", "{mine}", "--on", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    args: tuple[str, ...],
    said: str,
    on: Path,
    mine: Path,
    server: FakeProvider,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["--on", str(on), "--run", str(tmp_path / "w"), "--settings", str(settings(tmp_path, server.url))]
    broken, empty = tmp_path / "broken", tmp_path / "empty"
    broken.mkdir()
    empty.mkdir()
    (broken / "judge_add.md.j2").write_text("{{ verdict }}")
    told = [arg.format(on=on, mine=mine, broken=broken, empty=empty) for arg in args]
    for extra in ((), ("--plan",)) if "--run" not in args else ((),):  # a plan is refused as what it plans
        assert main(["prompts", "compare", *given, *told, "--judge", "gemini/m", *extra]) == 2
        line = capsys.readouterr().err
        assert said in line and line.count("\n") == 1
    assert not server.calls and not (tmp_path / "w" / "journal.sqlite").exists()


def test_a_stopped_comparison_names_the_command_that_goes_on(
    on: Path, mine: Path, server: FakeProvider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopping = settings(tmp_path, server.url, limits="max_calls = 2")
    given = ["prompts", "compare", "shipped", str(mine), "--on", str(on), "--run", str(tmp_path / "w")]
    given += ["--sample", "2", "--judge", "gemini/m", "--settings", str(stopping)]
    assert main(given) == 3
    assert f"resume with: plantain {shlex.join(given)}\n" in capsys.readouterr().err
    settings(tmp_path, server.url)
    assert main(given) == 0 and len(server.calls) == 4


def test_a_plan_needs_no_key_and_says_so(
    on: Path, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    options = ("--on", on, "--sample", 500, "--settings", settings(tmp_path, "https://gemini.example/"))
    plan = compare(capsys, "shipped", mine, *options, "--plan")
    assert plan["attempts"] == ATTEMPTS and "GEMINI_API_KEY" in plan["remarks"][0]


def test_without_a_run_of_its_own_nothing_is_asked(
    on: Path, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prompts", "compare", "shipped", str(mine), "--on", str(on), "--judge", "gemini/m"]) == 2
    assert "--run" in capsys.readouterr().err
    assert main(["prompts", "compare", "shipped", str(mine), "--on", str(on)]) == 2
    assert "names no judge; choose one with --judge" in capsys.readouterr().err
    with pytest.raises(InputError):
        wording_of("edition-9")
