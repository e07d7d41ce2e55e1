"""Pairs described by a hosted model: data sent, answers paid only once, and bad answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest

from fakes import gemini_format, openai_format
from fakes.medebench_tree import sample_image, spot, write_png
from fakes.server import KEY, Answer, FakeProvider, Request
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.prepare.describers import SEAM
from plantain.cli import main
from plantain.journal import JournalReader

MODELS = ("gemini/m", "openai/m", "openai-compatible/m")

ANSWER = {
    "modality": "clinical photograph",
    "action": "removed",
    "entity": "the mole",
    "region": "left cheek",
    "context": "the fur stayed as it was",
    "prompt": "Remove the mole from the cheek.",
    "rephrasings": [
        "Take the mole off the cheek.",
        "Remove the mole from the cheek",
        "Clear the cheek of its mole.",
    ],
    "description": "Clinical photograph: the mole of the left cheek was removed, and smooth fur is seen there.",
}


def route(request: Request) -> Answer | None:
    """Answer in the format of the requested API."""
    if "generateContent" in request.path:
        text, answer = gemini_format.prompt_text(request), gemini_format.text_answer
        return answer(words(text))
    if request.path.endswith(("/responses", "/chat/completions")):
        chat = openai_format.is_chat(request)
        return openai_format.text_answer(words(openai_format.prompt_text(request)), chat=chat)
    return None


def words(text: str) -> str:
    return json.dumps(ANSWER)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeProvider]:
    with FakeProvider([route]) as provider:
        yield provider


@pytest.fixture(autouse=True)
def _clean(server: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script.clear()
    server.calls.clear()
    for name in ("GEMINI_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Three exact pairs; two state their licence, and only the first has a prompt."""
    folder = tmp_path / "raw"
    for name, left in (("a", 60), ("b", 100), ("c", 140)):
        clean = sample_image("chelsea", left=left, top=40, size=(128, 96))
        write_png(folder / "before" / f"{name}.png", spot(clean, (60, 50), 10)[0])
        write_png(folder / "after" / f"{name}.png", clean)
    head = "id,organ,task,prompt,licence,patient"
    rows = [
        "a,Skin,Remove a mole,Take it off.,open,Jane Doe",
        "b,Skin,Remove a mole,,open,",
        "c,Skin,Remove a mole,,open,",
    ]
    (folder / "pairs.csv").write_text("\n".join([head, *rows]) + "\n")
    return folder


def settings(tmp_path: Path, server: FakeProvider, model: str, more: str = "") -> str:
    provider = model.partition("/")[0]
    base = server.url if provider == "gemini" else f"{server.url}/v1"
    path = tmp_path / "settings.toml"
    path.write_text(f'{more}\n[providers.{provider}]\nbase_url = "{base}"\n')
    return str(path)


def prepare(raw: Path, out: Path, model: str, settings_file: str) -> int:
    args = [str(raw), "--to", str(out), "--describer", model, "--settings", settings_file]
    return main(["bench", "prepare", *args, "--keep", "text"])


def images_in(request: Request) -> list[bytes]:
    form = gemini_format if "generateContent" in request.path else openai_format
    return form.images_sent(request)


@pytest.mark.parametrize("model", MODELS)
def test_one_image_is_sent_and_descriptions_are_stored(
    server: FakeProvider, raw: Path, tmp_path: Path, model: str
) -> None:
    out = tmp_path / "out"
    assert prepare(raw, out, model, settings(tmp_path, server, model)) == 0
    bench = Benchmark.load(out)
    given, written = bench.sample("a"), bench.sample("b")
    assert given.prompt == "Take it off.", "the owner's prompt is kept"
    assert written.prompt == "Remove the mole from the cheek."
    assert written.rephrased in ("Take the mole off the cheek.", "Clear the cheek of its mole.")
    assert written.detailed == ANSWER["description"]
    assert (written.key_concept, written.image.modality) == ("the mole", "clinical photograph")
    assert len(server.calls) == 3
    for call in server.calls:
        (data,) = images_in(call)
        both = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
        assert both.shape == (384, 512 + SEAM + 512, 3)
        assert "Jane" not in call.body.decode()


def test_described_pairs_are_not_paid_again(server: FakeProvider, raw: Path, tmp_path: Path) -> None:
    file = settings(tmp_path, server, "gemini/m", "[limits]\nmax_calls = 2\nconcurrency = 1")
    out = tmp_path / "out"
    assert prepare(raw, out, "gemini/m", file) == 3
    assert len(server.calls) == 2
    assert not (out / "benchmark.json").exists(), "an interrupted preparation writes no benchmark"
    file = settings(tmp_path, server, "gemini/m")
    assert prepare(raw, out, "gemini/m", file) == 0
    assert len(server.calls) == 3
    assert len(Benchmark.load(out)) == 3
    with JournalReader.open(tmp_path / "out.calls") as reader:
        assert sum(reader.outcomes().values()) == 3
    first = (out / "benchmark.json").read_bytes()
    shutil.rmtree(out)
    assert prepare(raw, out, "gemini/m", file) == 0
    assert len(server.calls) == 3
    assert (out / "benchmark.json").read_bytes() == first


def test_refusal_keeps_the_owners_words(server: FakeProvider, raw: Path, tmp_path: Path) -> None:
    def broken(request: Request, good: Answer) -> Answer:
        form = gemini_format.text_answer
        return form("I cannot say.")

    server.script += [broken] * 6
    file = settings(tmp_path, server, "gemini/m", "[limits]\nconcurrency = 1")
    assert prepare(raw, tmp_path / "out", "gemini/m", file) == 0
    bench = Benchmark.load(tmp_path / "out")
    assert [sample.id for sample in bench.samples] == ["a"], "b and c have no prompt then"
    assert bench.sample("a").prompt == "Take it off."
    assert bench.sample("a").detailed == ""
    assert "the describer failed (malformed" in (tmp_path / "out" / "rejected.csv").read_text()


def test_images_of_unknown_licence_are_not_sent(
    raw: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = raw / "pairs.csv"
    table.write_text(table.read_text().replace(",open,", ",,"))
    file = tmp_path / "settings.toml"
    file.write_text('[providers.gemini]\nbase_url = "https://example.org"\n')
    assert prepare(raw, tmp_path / "out", "gemini/m", str(file)) == 2
    assert "has no known licence" in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.calls").exists()
