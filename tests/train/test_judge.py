"""Judges learned from verdicts, on a tiny model of SmolVLM's class with random weights: noise that learns to answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor

from pipeline.quick import CallLog, quick_catalogue, quick_method, quick_recipe
from plantain.cli import main
from plantain.journal import JournalReader
from plantain.models.hosted.reports import read_report
from plantain.models.hosted.writer_and_judge import HostedJudge
from plantain.models.registry import provider
from plantain.models.vlm.conversation import LocalConversation, answer, as_messages
from plantain.models.vlm.local import find_local, open_local
from plantain.pipeline.run import run_build
from plantain.records import InputError, Observations, OutcomeKind
from plantain.release.export import export_run
from plantain.release.plan import ExportOptions
from plantain.roles import JudgeRequest, Reply
from plantain.roles.options import ProviderOptions
from plantain.rubrics import MED_BANANA
from plantain.train.finished import DONE
from plantain.train.judge.conversations import HELD_OUT, TRAIN, Conversations
from plantain.train.judge.decisions import held_out_decisions
from plantain.train.judge.judge_plan import JudgePlan
from plantain.train.judge.judge_run import CONVERSATIONS, export_verdicts, train_judge
from plantain.train.judge.tuning import answer_loss, make_adapters, tune
from plantain.train.judge.verdicts import verdicts_of
from plantain.train.loop.training import Schedule
from plantain.train.weights import digest
from train.tiny_vlm import save_tiny_vlm

OPTIONS = ProviderOptions(device="cpu", max_output_tokens=300)
PLAN = JudgePlan(steps=3, batch=2, side=64, least=1, lora_rank=4, rate=1e-2, every=1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("judged")
    recipe = quick_recipe(quick_catalogue(folder / "catalogue", images=3), findings=("AMD", "Cataract"))
    asyncio.run(run_build(recipe, folder / "run", method=quick_method(CallLog(None))))
    return folder / "run"


@pytest.fixture(scope="module")
def base(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tokenizer learned the words of the conversations, so that they are a few hundred tokens long."""
    folder = tmp_path_factory.mktemp("base")
    noise = save_tiny_vlm(folder / "bytes")
    export_verdicts(verdicts_of(run), words(noise), PLAN, folder)
    texts = (folder / CONVERSATIONS / TRAIN).read_text(encoding="utf-8").splitlines()
    said = [
        part["text"]
        for text in texts
        for m in json.loads(text)["messages"]
        for part in m["content"]
        if "text" in part
    ]
    return save_tiny_vlm(folder / "tiny", said)


def words(folder: Path) -> HostedJudge:
    return HostedJudge(LocalConversation(find_local(f"vlm/{folder}", OPTIONS)), OPTIONS)


def lines(folder: Path, name: str = TRAIN) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / CONVERSATIONS / name).read_bytes().splitlines()]


def test_verdicts_become_conversations_split_by_group(run: Path, base: Path, tmp_path: Path) -> None:
    learned, held_out = export_verdicts(verdicts_of(run), words(base), PLAN, tmp_path)
    assert {one.image.id for one in learned}.isdisjoint(one.image.id for one in held_out)
    with JournalReader.open(run) as reader:
        judged = {f"{a.task_id}-g{a.generation}-r{a.round}": a for a in reader.all_attempts() if a.verdict}
        both = lines(tmp_path) + lines(tmp_path, HELD_OUT)
        assert {line["id"] for line in both} == set(judged)
        for line in both:
            attempt = judged[line["id"]]
            _, user, answered = line["messages"]
            assert [m["role"] for m in line["messages"]] == ["system", "user", "assistant"]
            assert sum(part["type"] == "image" for part in user["content"]) == len(line["images"]) == 2
            assert attempt.instruction in user["content"][-1]["text"]
            assert read_report(answered["content"][0]["text"], MED_BANANA) == attempt.verdict.observations
    shown = Conversations.open(tmp_path / CONVERSATIONS / TRAIN).messages(0)
    assert {max(part["image"].size) for part in shown[1]["content"] if part["type"] == "image"} == {64}


def test_a_release_gives_the_conversations_of_its_run(run: Path, base: Path, tmp_path: Path) -> None:
    export_run(run, tmp_path / "release", ExportOptions(("parquet",), licences=("CC-BY-4.0",)))
    plan = replace(PLAN, side=None)
    export_verdicts(verdicts_of(run), words(base), plan, tmp_path / "a")
    learned, held_out = export_verdicts(verdicts_of(tmp_path / "release"), words(base), plan, tmp_path / "b")
    assert learned
    assert held_out

    def said(folder: Path) -> dict[str, object]:  # a release encodes edited pictures as it passes them on
        return {line["id"]: line["messages"] for name in (TRAIN, HELD_OUT) for line in lines(folder, name)}

    assert said(tmp_path / "b").items() <= said(tmp_path / "a").items()
    assert len(said(tmp_path / "b")) >= len(said(tmp_path / "a")) - 1  # a test split is nobody's


def test_too_little_is_refused(run: Path, base: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"50 of each are the least \(--least\)"):
        export_verdicts(verdicts_of(run), words(base), replace(PLAN, least=50), tmp_path)
    with pytest.raises(InputError, match="0 verdicts of 0 groups"):
        export_verdicts(verdicts_of(run, "nobody/judge"), words(base), PLAN, tmp_path)
    assert not (tmp_path / CONVERSATIONS).exists()
    with pytest.raises(InputError, match="neither a run"):
        verdicts_of(tmp_path)
    shutil.copytree(base, tmp_path / "trained")
    (tmp_path / "trained" / "adapter").mkdir()
    local = find_local(f"vlm/{tmp_path / 'trained'}", OPTIONS)
    with pytest.raises(InputError, match="was trained here already"):
        train_judge(verdicts_of(run), local, OPTIONS, PLAN, tmp_path)


def test_the_loss_is_transformers_own_on_the_answer_alone(run: Path, base: Path, tmp_path: Path) -> None:
    export_verdicts(verdicts_of(run), words(base), PLAN, tmp_path)
    conversations = Conversations.open(tmp_path / CONVERSATIONS / TRAIN)
    vlm = open_local(find_local(f"vlm/{base}", OPTIONS))
    processor, model = (
        AutoProcessor.from_pretrained(base),
        AutoModelForImageTextToText.from_pretrained(base).eval(),
    )
    whole = processor.apply_chat_template(
        conversations.messages(0), tokenize=True, return_dict=True, return_tensors="pt"
    )
    mark = processor.tokenizer.encode("Assistant:", add_special_tokens=False)
    ids = whole["input_ids"][0].tolist()
    begins = max(at for at in range(len(ids)) if ids[at : at + len(mark)] == mark) + len(mark)
    labels = whole["input_ids"].clone()
    labels[:, :begins] = -100  # what transformers leaves out
    with torch.no_grad():
        expected = model(**whole, labels=labels).loss
        assert torch.isclose(answer_loss(vlm, vlm.model, conversations, 0), expected, rtol=1e-5)


def test_a_stop_changes_no_weight(run: Path, base: Path, tmp_path: Path) -> None:
    ends = []
    export_verdicts(verdicts_of(run), words(base), PLAN, tmp_path)
    conversations = Conversations.open(tmp_path / CONVERSATIONS / TRAIN)
    for name in ("whole", "stopped"):
        done: list[int] = []

        def train(stop: int) -> str:
            vlm = open_local(find_local(f"vlm/{base}", OPTIONS))
            model, weights = make_adapters(vlm, 2, 0)
            schedule = Schedule(3, 1e-2, batch=2, checkpoint_every=1)
            work = tmp_path / name  # noqa: B023
            tune(vlm, model, weights, conversations, schedule, work, base="b", rank=2,
                 on_step=lambda step, noted: done.append(step), stop=lambda: len(done) == stop)  # noqa: B023  # fmt: skip
            return digest(weights)

        if name == "stopped":
            train(1)
        ends.append(train(-1))
        assert done == [1, 2, 3]
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_a_trained_judge_judges_and_gets_its_card_beside_its_base(
    run: Path, base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[providers.vlm]\ndevice = "cpu"\nmax_output_tokens = 6\n', encoding="utf-8")
    args = ["train", "judge", run, "--base", base, "--out", tmp_path / "out", "--least", "1", "--side", "64"]
    args += ["--steps", "4", "--batch", "2", "--rate", "0.02", "--settings", settings, "--json"]
    assert main([str(arg) for arg in args]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["held_out_loss"]["after"] < told["held_out_loss"]["before"]
    decisions = told["held_out_decisions"]
    assert (decisions["asked"], decisions["answered"], decisions["kappa"]) == (told["held_out"], 0, None)
    made = Path(told["model"])
    assert f"0 of {told['held_out']} answered" in " ".join(
        (made / "README.md").read_text(encoding="utf-8").split()
    )
    record = json.loads((tmp_path / "out" / DONE).read_text(encoding="utf-8"))
    with JournalReader.open(run) as reader:
        tasks = {row.id for row in reader.tasks()}
    assert {*record["trained_on"], *record["held_out"]} <= tasks  # what a withdrawal names
    assert "CC-BY" not in (made / "README.md").read_text(encoding="utf-8")
    assert "under: open (" in (made / "README.md").read_text(encoding="utf-8")
    before = sorted((path, path.stat().st_mtime_ns) for path in made.rglob("*"))
    assert main([str(arg) for arg in args]) == 0  # nothing is left to do
    assert json.loads(capsys.readouterr().out) == told
    assert sorted((path, path.stat().st_mtime_ns) for path in made.rglob("*")) == before
    if hasattr(os, "link"):
        assert (made / "model.safetensors").stat().st_ino == (base / "model.safetensors").stat().st_ino
    audit = [
        "audit",
        "--judge",
        f"vlm/{made}",
        "--beside",
        f"vlm/{base}",
        "--pairs",
        "1",
        "--kinds",
        "no change",
        "--findings",
        "AMD",
    ]
    audit += ["--settings", settings, "--to", tmp_path / "card", "--json"]
    assert main([str(arg) for arg in audit]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card["judge"] == f"vlm/{made}"
    assert (card["verdicts"], card["unanswered"] > 0) == (0, True)  # noise that was trained for four steps
    assert f"vlm/{base}" in card["agreement"]


class Sure:
    """Says the same of every edit, or what the verdict said."""

    def __init__(self, known: dict[str, Observations], always: bool | None = None) -> None:
        self._known, self._always = known, always

    async def judge(self, request: JudgeRequest) -> Reply[Observations]:
        seen = self._known[hashlib.sha256(request.edited.data).hexdigest()]
        if self._always is not None:
            seen = replace(
                seen, criteria={n: replace(r, passed=self._always) for n, r in seen.criteria.items()}
            )
        return Reply(seen)


def test_decisions_stand_beside_chance(run: Path) -> None:
    """A judge that always says the commoner decision agrees often and has kappa 0; one that is right has 1."""
    source = verdicts_of(run)
    some = source.judgements()
    known = {one.edited: one.verdict.observations for one in some}
    passed = sum(one.verdict.qualified for one in some)
    assert 0 < passed < len(some)
    right = asyncio.run(held_out_decisions(source, some, Sure(known)))
    assert right is not None
    assert (right.asked, right.answered, right.same, right.kappa) == (len(some), len(some), len(some), 1.0)
    always = asyncio.run(held_out_decisions(source, some, Sure(known, always=True)))
    assert always is not None
    assert (always.same, always.kappa) == (passed, 0.0)
    assert always.commoner == max(passed, len(some) - passed)
    assert asyncio.run(held_out_decisions(source, some, Sure(known), stop=lambda: True)) is None


@pytest.mark.slow
def test_what_was_learned_by_heart_is_answered(run: Path, base: Path, tmp_path: Path) -> None:
    """One verdict, until it is known: the judge that is loaded afresh then gives it, by plantain's own reading."""
    learned, _ = export_verdicts(verdicts_of(run), words(base), PLAN, tmp_path)
    first = (tmp_path / CONVERSATIONS / TRAIN).read_bytes().splitlines()[0]
    (tmp_path / CONVERSATIONS / "one.jsonl").write_bytes(first + b"\n")
    one = Conversations.open(tmp_path / CONVERSATIONS / "one.jsonl")
    vlm = open_local(find_local(f"vlm/{base}", OPTIONS))
    model, weights = make_adapters(vlm, 32, 0)
    tune(vlm, model, weights, one, Schedule(80, 1e-2), tmp_path / "work", base="b", rank=32)
    shutil.copytree(base, tmp_path / "judge")
    model.save_pretrained(tmp_path / "judge" / "adapter")
    (tmp_path / "judge" / "plantain.json").write_text('{"side": 64}', encoding="utf-8")
    judge = provider("vlm").load(f"vlm/{tmp_path / 'judge'}", "judge", OPTIONS)
    ((_, request),) = verdicts_of(run).requests([one for one in learned if one.id == json.loads(first)["id"]])
    reply = asyncio.run(judge.judge(request))
    assert reply.value == learned[0].verdict.observations


def test_noise_is_malformed_and_never_a_verdict(run: Path, base: Path) -> None:
    source = verdicts_of(run)
    ((_, request),) = source.requests(source.judgements()[:1])
    judge = provider("vlm").load(f"vlm/{base}", "judge", replace(OPTIONS, max_output_tokens=4))
    reply = asyncio.run(judge.judge(request))
    assert reply.value is None
    assert reply.outcome.kind is OutcomeKind.MALFORMED
    assert (reply.usage.output_tokens or 0) <= 4 + 8  # the second time with twice the room


def test_what_cannot_be_asked_is_said(base: Path, run: Path, tmp_path: Path) -> None:
    load = provider("vlm").load
    with pytest.raises(InputError, match="reads pictures and draws none"):
        load(f"vlm/{base}", "editor", OPTIONS)
    with pytest.raises(InputError, match=r"no config\.json"):
        load(f"vlm/{tmp_path}", "judge", OPTIONS)
    with pytest.raises(InputError, match="hf download org/missing"):
        load("vlm/org/missing", "judge", replace(OPTIONS, cache_dir=tmp_path))
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    broken = find_local(f"vlm/{tmp_path}", OPTIONS)
    source = verdicts_of(run)
    ((_, request),) = source.requests(source.judgements()[:1])
    heard = answer(broken, words(base).question(request))
    assert heard.outcome.fatal
    assert "cannot be loaded" in heard.outcome.reason
    with_pictures = as_messages(words(base).question(request))[1]["content"]
    assert sum(part["type"] == "image" for part in with_pictures) == 2
