"""All commands that call models send no image without consent, and record the images that they send.

The provider under test is Gemini's, under a name that is not loopback; other roles are filled by models on loopback.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.prepare.test_preparing_hosted import route as describing_route
from bench.small_bench import Brightener, small_bench
from fakes import gemini_format
from fakes.away import ELSEWHERE, NAME, RecordedConnections, look_hosted
from fakes.caller import set_keys
from fakes.gemini_format import gemini_route
from fakes.medebench_tree import sample_image, spot, write_png
from fakes.openai_format import openai_route
from fakes.server import FakeProvider
from pipeline.quick import quick_catalogue
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.cli import main
from plantain.cli.train import editors as measuring
from plantain.journal import JournalReader
from plantain.journal.sending import sent_with_sources
from plantain.offline.workers import close_workers
from plantain.privacy import permission
from plantain.records import InputError, Licence
from plantain.runs.setup import RunSetup
from plantain.runs.terms import load_terms

MODEL = "gemini/gemini-3.8-flash"
EDITOR = "gemini/gemini-3.1-flash-image"


@dataclass(frozen=True)
class Made:
    """A command ready to be given, and the folder of the run that it calls models in."""

    arguments: list[str]
    run: Path


@dataclass(frozen=True)
class Place:
    """The folder, addresses and licence of one case."""

    folder: Path
    hosted: str
    loopback: str
    licence: Licence

    def settings(self, limits: str) -> str:
        path = self.folder / "settings.toml"
        sections = [f"[limits]\n{limits}", f'[providers.gemini]\nbase_url = "{self.hosted}"']
        path.write_text("\n".join(sections))
        return str(path)


def build(role: str) -> Callable[[Place, str], Made]:
    def make(place: Place, limits: str) -> Made:
        catalogue = place.folder / "catalogue"
        if not catalogue.exists():
            quick_catalogue(catalogue, changes={"licence": place.licence})
        models = {"writer": "openai-compatible/w", "editor": "openai/e", "judge": "openai-compatible/j"}
        models[role] = EDITOR if role == "editor" else MODEL
        text = [
            'name = "setup"',
            f'[data]\ncatalogue = "{catalogue}"\nfindings = ["AMD"]\ndirections = ["add"]\ncheck_text = false',
            "[models]\n" + "\n".join(f'{name} = "{model}"' for name, model in models.items()),
            "[loop]\nmax_rounds = 2",
            f"[limits]\n{limits}",
            f'[providers.gemini]\nbase_url = "{place.hosted}"',
            f'[providers.openai]\nbase_url = "{place.loopback}/v1"',
            f'[providers.openai-compatible]\nbase_url = "{place.loopback}/v1"',
        ]
        recipe = place.folder / "recipe.toml"
        recipe.write_text("\n".join(text))
        run = place.folder / "run"
        return Made(["build", str(recipe), "--run", str(run), "--json"], run)

    return make


def bench(place: Place) -> Path:
    folder = place.folder / "bench"
    if not folder.exists():
        small_bench(folder, 6, licence=place.licence)
    return folder


def generate(*more: str) -> Callable[[Place, str], Made]:
    def make(place: Place, limits: str) -> Made:
        run = place.folder / "run"
        arguments = ["bench", "generate", str(bench(place)), "--run", str(run), "--editor", EDITOR, *more]
        return Made([*arguments, "--json", "--settings", place.settings(limits)], run)

    return make


def score(place: Place, limits: str) -> Made:
    run, own = place.folder / "run", place.settings(limits)
    if not run.exists():  # the baselines are outputs enough
        assert main(["bench", "generate", str(bench(place)), "--run", str(run), "--json"]) == 0
    judged = ["--metrics", "psnr", "--judge", MODEL, "--draws", "1", "--json"]
    return Made(["bench", "score", str(run), *judged, "--settings", own], run)


def prepare(place: Place, limits: str) -> Made:
    raw, out = place.folder / "raw", place.folder / "out"
    if not raw.exists():
        for name, left in (("a", 60), ("b", 100)):
            clean = sample_image("chelsea", left=left, top=40, size=(128, 96))
            write_png(raw / "before" / f"{name}.png", spot(clean, (60, 50), 10)[0])
            write_png(raw / "after" / f"{name}.png", clean)
        rows = [f"{name},Skin,Remove a mole,{place.licence}" for name in "ab"]
        (raw / "pairs.csv").write_text("\n".join(["id,organ,task,licence", *rows]) + "\n")
    if out.exists():
        out.rename(place.folder / f"out-{len(list(place.folder.iterdir()))}")
    run = place.folder / "out.calls"
    arguments = ["bench", "prepare", str(raw), "--to", str(out), "--describer", MODEL, "--keep", "text"]
    return Made([*arguments, "--settings", place.settings(limits)], run)


def audit(place: Place, limits: str) -> Made:
    """The run that is looked at was made by models on loopback, which may see everything."""
    seen, run = place.folder / "run", place.folder / "audit"
    if not seen.exists():
        made = build("writer")(place, "concurrency = 2")
        recipe = Path(made.arguments[1])
        recipe.write_text(recipe.read_text().replace(MODEL, "openai-compatible/w"))
        assert main([*made.arguments, "--limit", "1"]) in (0, 3)
    own = place.settings(limits)
    arguments = ["judge", "audit", str(seen), "--judge", MODEL, "--run", str(run), "--settings", own]
    return Made([*arguments, "--json", "--pairs", "1", "--kinds", "blob"], run)


CASES: dict[str, Callable[[Place, str], Made]] = {
    "build writer": build("writer"),
    "build editor": build("editor"),
    "build judge": build("judge"),
    "generate editor": generate(),
    "generate editor, demonstrations": generate("--shots", "1"),
    "score judge": score,
    "prepare describer": prepare,
    "audit judge": audit,
}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    set_keys(monkeypatch)
    yield
    close_workers()


@pytest.fixture
def servers() -> Iterator[tuple[FakeProvider, FakeProvider]]:
    """The provider under test, and a server on loopback."""
    with FakeProvider([describing_or(gemini_route)]) as away, FakeProvider([openai_route]) as here:
        yield away, here


def describing_or(route: Callable[..., object]) -> Callable[..., object]:
    """The fake of descriptions answers requests that ask for rephrasings, `route` all others."""

    def answer(request: object) -> object:
        asked = json.dumps(request.fields.get("generationConfig", {}))  # type: ignore[attr-defined]
        return describing_route(request) if "rephrasings" in asked else route(request)

    return answer


def in_a_new_process(arguments: list[str]) -> int:
    """Run the command as a new process would: forget which images were derived in this one."""
    permission._SOURCES.clear()
    return main(arguments)


def placed(
    folder: Path, servers: tuple[FakeProvider, FakeProvider], licence: Licence, patch: pytest.MonkeyPatch
) -> Place:
    return Place(folder, look_hosted(patch, servers[0].url), servers[1].url, licence)


@pytest.mark.parametrize("checked", [True, False], ids=["all checks", "the gate alone"])
@pytest.mark.parametrize("name", CASES)
def test_no_credentialed_image_is_sent(
    name: str,
    checked: bool,
    servers: tuple[FakeProvider, FakeProvider],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    place = placed(tmp_path, servers, Licence.CREDENTIALED, monkeypatch)
    made = CASES[name](place, "concurrency = 2")
    if not checked:
        for module in ("plantain.runs.setup", "plantain.pipeline.run"):
            monkeypatch.setattr(f"{module}.check_consent", lambda *given: None)
    capsys.readouterr()
    with RecordedConnections() as connections:
        code = in_a_new_process(made.arguments)
    error = capsys.readouterr().err
    port = int(servers[0].url.rpartition(":")[2])
    assert servers[0].calls == [] and port not in {there[1] for there in connections}
    assert code in (1, 2) and "credentialed" in error and NAME in error and "agreement" in error, error
    assert "retina-" not in error
    if not checked:
        assert ELSEWHERE in error
        with JournalReader.open(made.run) as reader:
            assert [*sent_with_sources(reader)] == [] and reader.spent_usd() == 0.0


@pytest.mark.parametrize("name", CASES)
def test_sent_images_are_journalled_and_requested_once_within_the_budget(
    name: str, servers: tuple[FakeProvider, FakeProvider], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = placed(tmp_path, servers, Licence.OPEN, monkeypatch)
    away = servers[0]
    # The budget first: one call, then the run stops and can be resumed.
    assert main(CASES[name](place, "concurrency = 2\nmax_calls = 1").arguments) == 3
    assert len(away.calls) <= 1
    made = CASES[name](place, "concurrency = 2")
    assert in_a_new_process(made.arguments) == 0
    with JournalReader.open(made.run) as reader:
        calls = [
            call for row in reader.tasks() for call in reader.calls(row.id) if call.model in (MODEL, EDITOR)
        ]
        recorded = {sent.file for sent, *_ in sent_with_sources(reader)}
        assert {sent.agreement for sent, *_ in sent_with_sources(reader)} <= {"licence open"}
        sessions = reader.sessions()
    shown = {
        hashlib.sha256(sent).hexdigest() for call in away.calls for sent in gemini_format.images_sent(call)
    }
    assert len(calls) == len(away.calls) > 0
    assert recorded == shown and shown
    assert all(session.ended_at for session in sessions)
    asked = len(away.calls)
    assert main(CASES[name](place, "concurrency = 2").arguments) == 0
    assert len(away.calls) == asked


@pytest.mark.parametrize("licence", [Licence.CREDENTIALED, Licence.OPEN])
def test_held_out_edits_are_judged_through_the_run_setup(
    licence: Licence,
    servers: tuple[FakeProvider, FakeProvider],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`train finetune` edits the held-out samples here and has them judged by whatever --judge names."""
    place = placed(tmp_path, servers, licence, monkeypatch)
    terms = load_terms(Path(place.settings("concurrency = 2")), (MODEL,))
    held_out, away, run = Benchmark.load(bench(place)), servers[0], tmp_path / "measured"
    folders = {(0, 0): {sample.task: tmp_path for sample in held_out.samples}}
    monkeypatch.setattr(RunSetup, "editor", lambda setup, name: Brightener(name))
    monkeypatch.setattr(measuring, "write_learning", lambda *given: tmp_path / "page")

    def measured() -> str | None:
        permission._SOURCES.clear()
        made = measuring.measure_trained(held_out, folders, run, "t", terms, MODEL, quiet=True)
        return asyncio.run(made)[0].stopped

    with RecordedConnections() as connections:
        if licence is Licence.CREDENTIALED:
            with pytest.raises(InputError, match="credentialed"):
                measured()
            assert away.calls == [] and connections == []
            return
        assert measured() is None
    with JournalReader.open(run) as reader:
        shown = {sent.file for sent, *_ in sent_with_sources(reader)}
    assert shown == {
        hashlib.sha256(sent).hexdigest() for call in away.calls for sent in gemini_format.images_sent(call)
    }
    asked = len(away.calls)
    assert asked and measured() is None and len(away.calls) == asked


def test_attention_is_recorded_of_open_editors_only(
    servers: tuple[FakeProvider, FakeProvider],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Attention is recorded inside a pipeline of this process: a hosted editor's outputs are refused in one line."""
    made = generate()(Place(tmp_path, servers[0].url, servers[1].url, Licence.OPEN), "concurrency = 2")
    assert main(made.arguments) == 0
    asked = len(servers[0].calls)
    place = placed(tmp_path, servers, Licence.OPEN, monkeypatch)
    with RecordedConnections() as connections:
        named = ["--editor", EDITOR, "--settings", place.settings("concurrency = 2")]
        assert main(["bench", "attention", str(made.run), *named]) == 2
    assert "attention can be recorded of open editors (diffusers/…) only" in capsys.readouterr().err
    assert connections == [] and len(servers[0].calls) == asked
