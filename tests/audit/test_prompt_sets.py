"""Two sets of prompts on the same stored attempts at a loopback provider: flips, agreement, cost, no repeated call."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stored_run import stored_run

from fakes.gemini_format import gemini_route, prompt_text, text_answer
from fakes.server import KEY, FakeProvider
from plantain.cli import main
from plantain.models.hosted.prompts import BUILT_IN, PromptLibrary

SETTINGS = """
[limits]
concurrency = 3
{limits}
[providers.gemini]
base_url = "{url}"
[providers.gemini.prices.m]
input_per_m = 1.0
output_per_m = 4.0
"""
ATTEMPTS = 12
"""Three images, two findings, two rounds."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored_run(tmp_path_factory.mktemp("compared") / "run")


@pytest.fixture
def run(stored: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stored, tmp_path / "run")


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


def settings(folder: Path, url: str, limits: str = "") -> Path:
    path = folder / "settings.toml"
    path.write_text(SETTINGS.format(url=url, limits=limits))
    return path


def rejudge(capsys: pytest.CaptureFixture[str], *args: object, code: int = 0) -> dict[str, Any]:
    assert main(["judge", "rejudge", *map(str, args), "--judge", "gemini/m", "--json"]) == code
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


def sets(*names: object) -> list[object]:
    return [word for name in names for word in ("--prompts", name)]


def test_two_sets_are_asked_once_with_the_same_draw_and_their_cost(
    run: Path, mine: Path, server: FakeProvider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = (run, *sets("ours", mine), "--settings", settings(tmp_path, server.url))
    settings(tmp_path, server.url, limits="max_calls = 5")
    stopped = rejudge(capsys, *options, code=3)
    assert stopped["judges"][1]["judged"] < ATTEMPTS
    settings(tmp_path, server.url)
    data = rejudge(capsys, *options)
    posted = [call for call in server.calls if call.method == "POST"]
    assert len(posted) == len({call.body for call in posted}) == 2 * ATTEMPTS  # recorded answers were reused
    assert Counter("Look twice." in prompt_text(call) for call in posted) == {True: ATTEMPTS, False: ATTEMPTS}
    seeds = Counter(call.fields["generationConfig"]["seed"] for call in posted)
    assert set(seeds.values()) == {2}  # both sets are asked with the same draw
    assert [one["judge"] for one in data["judges"]] == ["gemini/m", "gemini/m, prompts mine"]
    assert {one["judged"] for one in data["judges"]} == {ATTEMPTS} and len(data["rows"]) == 2 * ATTEMPTS

    flip = next(
        flip
        for flip in data["flips"]
        if (flip["first"], flip["second"]) == ("gemini/m", "gemini/m, prompts mine")
        and flip["criterion"] == "qualified"
    )
    # The fake judge passes everything or fails realism, by its prompt. `test_flips` counts by hand.
    assert flip["n"] == ATTEMPTS and 0 < len(flip["examples"]) == flip["first_only"] + flip["second_only"]
    # 1,200 tokens read at $1, 150 written and 40 thought at $4 a million (fakes.gemini_format), 12 calls each.
    assert [one["cost_usd"] for one in data["judges"]] == [pytest.approx(0.02352)] * 2
    assert [one["calls"] for one in data["judges"]] == [ATTEMPTS] * 2

    page = Path(data["page"]).read_text()
    assert str(mine) not in page and "gemini/m, prompts mine" in page  # shared pages contain no paths
    before = len(server.calls)
    assert rejudge(capsys, *options) == data and len(server.calls) == before
    plan = rejudge(capsys, *options, "--repeat", 2, "--dry-run")
    assert plan["calls"] == {"gemini/m": 4 * ATTEMPTS}  # two sets, two times
    rejudge(capsys, run, *sets("published"), *options[5:], "--sample", 4)
    assert len(server.calls) == before + 4  # only new samples
    assert "Be thoughtful and balanced" in prompt_text(server.calls[-1])


def test_published_form_is_a_second_judge_on_the_page(
    run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The JSON of Med-Banana-50K, section 4.2, as printed there; its judge is called again with --repeat.
    printed = {"has_disease": True, "structure_reasonable": True, "looks_realistic": True, "qualified": True}
    answer_text = json.dumps(printed | {"reason": "The edit successfully adds it."})

    def route(call: Any) -> Any:
        answer = gemini_route(call)
        return text_answer(answer_text) if "structure_reasonable" in prompt_text(call) else answer

    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with FakeProvider([route]) as server:
        given = ("--settings", settings(tmp_path, server.url))
        rejudge(capsys, run, *given)
        data = rejudge(capsys, run, *given, "--rubric", "med-banana-published", "--repeat", 2, "--sample", 4)
        assert len(server.calls) == ATTEMPTS + 2 * 4
    name = "gemini/m, rubric med-banana-published"
    assert [(one["judge"], one["qualified"]) for one in data["judges"]] == [
        (name, 4),
        (f"{name}, repeat 2", 4),
    ]
    assert "gemini/m" in [one["judge"] for one in data["others"]] and len(data["rows"]) == 2 * 4
    assert data["consistency"][0]["identical"]["rate"] == 1.0
    criteria = {f["criterion"] for f in data["flips"] if {f["first"], f["second"]} == {name, "gemini/m"}}
    assert {"qualified", "realism", "structural_plausibility", "instruction_compliance"} == criteria
    page = Path(data["page"]).read_text()
    assert "Consistency study" in page and name in page and 'scope="row">gemini/m</th>' in page
    assert main(["judge", "rejudge", str(run), "--judge", "gemini/m", "--rubric", "medbanana"]) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (sets("ours", "ours"), "in the same words"),
        (["--judge", "offline/instruments", *sets("published")], "offline/instruments reads no prompts"),
        (sets("ours", "{broken}"), "judge_add.md.j2: 'verdict' is undefined"),
        ([*sets("ours", "published"), "--decisive"], "name one judge"),
    ],
)
def test_prompt_sets_that_cannot_be_compared_give_one_line(
    args: list[str],
    message: str,
    run: Path,
    server: FakeProvider,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [str(run), "--judge", "gemini/m", "--settings", str(settings(tmp_path, server.url))]
    (broken := tmp_path / "broken").mkdir()
    (broken / "judge_add.md.j2").write_text("{{ verdict }}")
    words = [arg.format(broken=broken) for arg in args]
    for extra in ((), ("--dry-run",)):
        assert main(["judge", "rejudge", *given, *words, *extra]) == 2
        line = capsys.readouterr().err
        assert message in line and line.count("\n") == 1
    assert not server.calls


def test_dry_run_needs_no_key_and_names_the_missing_one(
    run: Path, mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    options = ("--settings", settings(tmp_path, "https://gemini.example/"), "--dry-run")
    plan = rejudge(capsys, run, *sets("ours", mine), *options, "--sample", 500)
    assert plan["attempts"] == ATTEMPTS and "GEMINI_API_KEY" in plan["remarks"][0]
    assert main(["judge", "rejudge", str(run), "--dry-run"]) == 2
    assert "names no judge; choose one with --judge" in capsys.readouterr().err


def test_prompts_are_written_as_files_that_can_replace_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "templates"
    assert main(["judge", "prompts", "--to", str(folder)]) == 0
    written = PromptLibrary(folder)
    assert written.label("judge_add") == PromptLibrary().label("judge_add")
    assert main(["judge", "prompts", "--to", str(folder)]) == 2
    assert "exists" in capsys.readouterr().err


def test_judge_without_settings_is_called_at_the_endpoint_of_the_run(
    run: Path, server: FakeProvider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two more attempts are two more calls, at the loopback server; a stranger's run sends no key elsewhere."""
    rejudge(capsys, run, "--sample", 2, "--settings", settings(tmp_path, server.url))
    assert len(server.calls) == 2
    rejudge(capsys, run, "--sample", 4)
    assert len(server.calls) == 4
    with contextlib.closing(sqlite3.connect(run / "journal.sqlite")) as database, database:
        elsewhere = "UPDATE meta SET value = replace(value, ?, 'https://example.org') WHERE key = 'providers'"
        assert database.execute(elsewhere, (server.url,)).rowcount == 1
    assert main(["judge", "rejudge", str(run), "--judge", "gemini/m"]) == 2
    assert "called gemini/m at https://example.org; say with --settings" in capsys.readouterr().err
    assert len(server.calls) == 4
