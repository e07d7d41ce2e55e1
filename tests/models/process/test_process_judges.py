"""EditScore and EditReward as judges, with fakes of their packages: no weights were run.

The fakes have the signatures, result fields and random guesses of the PyPI package editscore 0.2
(`editscore/__init__.py` and `utils.py`), and of TIGER-AI-Lab/EditReward, README.md and EditReward/inference_edit.py,
commits 0119171a and 246ab58c.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from plantain.cli import main
from plantain.models.process import workers
from plantain.models.process.judge import ProcessJudge
from plantain.models.process.provider import Settings, WorkerCommand, load
from plantain.pixels.encode import encode_png
from plantain.records import Direction, Geometry, InputError, Licence, Observations, OutcomeKind, SourceImage
from plantain.roles import EncodedImage, JudgeRequest, Reply
from plantain.rubrics import MED_BANANA, rubric_named

FOLDER = Path(workers.__path__[0])
IMAGE = SourceImage("x", "d", "fundus", (), Licence.OPEN, "a", "b", Geometry(64, 64, "pad", 0, 0, 64, 64))

EDITSCORE = """
from types import SimpleNamespace

class EditScore:
    def __init__(self, backbone="gpt-4.1", model_name_or_path="", score_range=25, num_pass=1, seed=42,
                 lora_path=None):
        self.loaded = [backbone, model_name_or_path, score_range, num_pass, lora_path]
        self.seed, self.weight = seed, ["trained"]
        self.model = SimpleNamespace(model=SimpleNamespace(parameters=lambda: [self.weight]))

    def evaluate(self, image_prompts, text_prompt):
        before, after = (image.convert("L").resize((1, 1)).getpixel((0, 0)) for image in image_prompts)
        reasoning = "guess_if_cannot_parse | ..." if text_prompt == "unreadable" else f"seed {self.seed}"
        return {"prompt_following": after / 25.5, "consistency": 10 - abs(after - before) / 25.5,
                "perceptual_quality": 8.0, "overall": 5.5, "SC_reasoning": reasoning,
                "PQ_reasoning": " ".join(map(str, self.loaded + self.weight))}
"""

EDITREWARD = """
class Number:
    def __init__(self, value): self.value = value
    def item(self): return self.value

class EditRewardInferencer:
    def __init__(self, config_path=None, checkpoint_path=None, device="cuda", differentiable=False,
                 reward_dim="dim1", rm_head_type="ranknet_multi_head"):
        assert (config_path, checkpoint_path, device) == ("c.yaml", "weights", "cpu")
        assert (reward_dim, rm_head_type) == ("overall_detail", "ranknet_multi_head")
        self.weight, self.model = ["trained"], self

    def parameters(self):
        return [self.weight]

    def reward(self, prompts, image_src, image_paths):
        from PIL import Image
        if self.weight != ["trained"]:
            return [[Number(self.weight[0])]]
        shades = [Image.open(paths[0]).convert("L").getpixel((0, 0)) for paths in (image_src, image_paths)]
        return [[Number((shades[1] - shades[0]) / 10), Number(99.0)]]
"""

TORCH = """
import contextlib
no_grad = contextlib.nullcontext
manual_seed = int

class nn:
    class init:
        @staticmethod
        def normal_(weight, std):
            weight[0] = std
"""


def program(tmp_path: Path, name: str) -> tuple[str, ...]:
    """Return the command of the judge's program, which finds the fakes in its working directory."""
    for package, text in (("editscore", EDITSCORE), ("EditReward", EDITREWARD), ("torch", TORCH)):
        (tmp_path / f"{package}.py").write_text(text)
    # As if they were installed in the program's own environment.
    start = "import runpy, sys; sys.path.insert(0, '.'); runpy.run_path(sys.argv[1], run_name='__main__')"
    return sys.executable, "-c", start, str(FOLDER / f"{name}.py")


def judge(tmp_path: Path, name: str, **settings: str | bool) -> ProcessJudge:
    command = WorkerCommand(
        command=program(tmp_path, name), folder=tmp_path, timeout_s=120.0, settings=settings
    )
    loaded = load(f"process/{name}", "judge", Settings(workers={name: command}))
    assert isinstance(loaded, ProcessJudge)
    return loaded


def shade(value: int) -> EncodedImage:
    return EncodedImage(encode_png(np.full((8, 8, 3), value, np.uint8)), "image/png")


def request(edited: int, rubric: str, instruction: str = "Add drusen.", seed: int = 7) -> JudgeRequest:
    by = MED_BANANA if rubric == "med-banana" else rubric_named(rubric)
    return JudgeRequest(IMAGE, shade(102), shade(edited), instruction, None, Direction.ADD, by, seed)


def ask(asked: ProcessJudge, *requests: JudgeRequest) -> list[Reply[Observations]]:
    async def scene() -> list[Reply[Observations]]:
        try:
            return await asyncio.gather(*map(asked.judge, requests))
        finally:
            await asked.aclose()

    return asyncio.run(scene())


def test_editscore_scores_from_0_to_10(tmp_path: Path) -> None:
    replies = ask(judge(tmp_path, "editscore"), request(204, "editscore", seed=2**31 + 5))
    (seen,) = [reply.value for reply in replies]
    assert seen is not None, replies[0].outcome
    # The fake: 204 / 25.5 = 8; 10 - (204 - 102) / 25.5 = 6, which is below 7; 8.
    assert {n: (r.value, r.passed) for n, r in seen.criteria.items()} == {
        "prompt_following": (8.0, True),
        "consistency": (6.0, False),
        "perceptual_quality": (8.0, True),
    }
    # Its model's defaults, and the request's seed in 31 bits, which NumPy takes.
    loaded = "qwen25vl Qwen/Qwen2.5-VL-7B-Instruct 25 1 EditScore/EditScore-7B trained"
    assert seen.reason == f"overall 5.50 of 10; seed 5; {loaded}"


def test_a_score_that_editscore_guessed_is_unscored(tmp_path: Path) -> None:
    (reply,) = ask(judge(tmp_path, "editscore"), request(204, "editscore", "unreadable"))
    assert reply.value is not None
    values = {name: result.value for name, result in reply.value.criteria.items()}
    assert values == {"prompt_following": None, "consistency": None, "perceptual_quality": 8.0}
    assert reply.value.criteria["consistency"].evidence == "the model's answer could not be read"


def test_editreward_keeps_only_the_rubrics_scale(tmp_path: Path) -> None:
    asked = judge(tmp_path, "editreward", config="c.yaml", checkpoint="weights", device="cpu")
    better, worse, off = ask(asked, *(request(shade, "editreward") for shade in (132, 72, 255)))
    for reply, value, passed in ((better, 3.0, True), (worse, -3.0, False), (off, None, None)):
        assert reply.value is not None, reply.outcome
        result = reply.value.criteria["reward"]
        assert (result.value, result.passed) == (value, passed)
    assert off.value is not None
    # (255 - 102) / 10
    assert off.value.criteria["reward"].evidence == "15.3 is outside the scale of -10 to 10"


@pytest.mark.parametrize("name", ["editscore", "editreward"])
def test_another_rubric_is_not_applicable_and_loads_nothing(tmp_path: Path, name: str) -> None:
    asked = judge(tmp_path, name)  # EditReward's settings are missing: loading it would fail
    (reply,) = ask(asked, request(1, "med-banana"))
    assert reply.outcome.kind is OutcomeKind.NOT_APPLICABLE
    assert f"use --rubric {name}" in reply.outcome.reason


def test_untrained_weights_are_a_control_of_both(tmp_path: Path) -> None:
    (scored,) = ask(judge(tmp_path, "editscore", untrained=True), request(204, "editscore"))
    given = {"config": "c.yaml", "checkpoint": "weights", "device": "cpu"}
    (rewarded,) = ask(judge(tmp_path, "editreward", untrained=True, **given), request(204, "editreward"))
    assert scored.value is not None and scored.value.reason.endswith(" 0.02")
    assert rewarded.value is not None and rewarded.value.reason == "reward 0.020"


def test_an_answer_of_the_wrong_form_is_malformed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import json, pathlib, sys\n"
        "for line in sys.stdin:\n"
        "    data = json.load(open(line.strip()))\n"
        "    for job in data['jobs']:\n"
        "        answer = json.loads(sys.argv[1])[job['seed']]\n"
        "        if answer is not None:\n"
        "            (pathlib.Path(data['out']) / f\"{job['id']}.json\").write_text(json.dumps(answer))\n"
        "    print(line.strip(), flush=True)\n"
    )
    answers = [None, {}, {"criteria": {}}, {"criteria": {"reward": True}}, {"criteria": {"reward": "3"}}]
    command = WorkerCommand(command=(sys.executable, str(program), json.dumps(answers)), timeout_s=60.0)
    requests = [request(1, "editreward", seed=number) for number in range(len(answers))]
    replies = ask(ProcessJudge("process/x", command), *requests)
    assert {reply.outcome.kind for reply in replies} == {OutcomeKind.MALFORMED}
    assert [reply.outcome.reason for reply in replies] == [
        "the program wrote no 0.json",
        "the program's 0.json: criteria: expected an object",
        *["the program's 0.json: criteria.reward: expected a number or null"] * 3,
    ]


def test_an_editor_is_not_a_judge() -> None:
    with pytest.raises(InputError, match=r"models\.judge: 'process/brushnet' can be an editor, not a judge"):
        load("process/brushnet", "judge", Settings())


def test_rejudge_asks_the_program_about_a_run_of_imported_edits(tmp_path: Path, capsys) -> None:
    """From a table of pairs to the flips, by the command line."""
    for name, value in (("o", 102), ("e", 204)):
        Image.new("RGB", (64, 64), (value,) * 3).save(tmp_path / f"{name}.png")
    header = "original,edited,instruction,finding,modality,direction\n"
    (tmp_path / "edits.csv").write_text(f"{header}o.png,e.png,Add it.,,other,add\n")
    run, recipe = tmp_path / "run", tmp_path / "judges.toml"
    command = json.dumps(program(tmp_path, "editscore"))
    recipe.write_text(f'[providers.process.workers.editscore]\nfolder = "."\ncommand = {command}\n')
    assert main(["import", str(tmp_path / "edits.csv"), "--run", str(run)]) == 0
    asked = ["--judge", "process/editscore", "--rubric", "editscore", "--settings", str(recipe)]
    assert main(["judge", "rejudge", str(run), *asked]) == 0
    assert "process/editscore, rubric editscore: 1 judged, 0 accepted, 0 unscored" in capsys.readouterr().out
