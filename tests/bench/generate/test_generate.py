"""Generating in process: new outputs, reused outputs, and requests refused before any call."""

from __future__ import annotations

import io
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest
from PIL import Image

from bench.small_bench import HEIGHT, WIDTH, Brightener, by, made, small_bench
from plantain.bench.benchmark.benchmark import Benchmark
from plantain.bench.generate.requests import ArmRequest
from plantain.bench.generate.runfile import BenchRun, PromptVariant
from plantain.cli import main
from plantain.journal import verify
from plantain.pixels.decode import decode
from plantain.records import InputError, Licence, OutcomeKind, TaskState

BASELINES = ["copy-input", "resize-only", "jpeg-75", "ground-truth"]


def test_baselines_are_always_generated(tmp_path: Path) -> None:
    benchmark = small_bench(tmp_path / "bench")
    summary = made(benchmark, tmp_path / "run")
    assert (summary.planned, summary.stopped, summary.closed) == (16, None, {TaskState.SUCCESS: 16})
    with BenchRun.open(tmp_path / "run") as run:
        assert list(run.arms) == BASELINES
        assert run.header.digest == benchmark.digest
        for label, expected in (("copy-input", benchmark.previous), ("ground-truth", benchmark.changed)):
            for output in run.outputs(label):
                assert np.array_equal(decode(run.read(output)), expected(benchmark.sample(output.sample_id)))
        assert run.samples["1"].has_truth
        assert verify(run.reader).ok
    made(small_bench(tmp_path / "without", 2, truth=False), tmp_path / "other")
    with BenchRun.open(tmp_path / "other") as run:
        (reason,) = {one.reason for one in run.outputs("ground-truth")}
    assert reason == "not_applicable: the benchmark has no image after the procedure"


def test_grid_points_are_generated_once_and_can_be_added(tmp_path: Path) -> None:
    benchmark, editor = small_bench(tmp_path / "bench", 3), Brightener()
    run = tmp_path / "run"
    first = made(benchmark, run, by(editor, sweep={"amount": (5.0, 40.0)}))
    assert len(editor.requests) == 6
    assert first.made == 6 + 12
    again = made(benchmark, run, by(editor, sweep={"amount": (5.0, 40.0)}))
    assert (again.made, again.planned, sum(again.closed.values())) == (0, 15, 0)
    with BenchRun.open(run) as bench:
        before = {(o.sample_id, o.k): o.edited for o in bench.outputs(editor.name)}
    more = made(benchmark, run, by(editor, sweep={"amount": (5.0, 40.0)}, seeds=2))
    assert more.made == 6
    assert more.replayed == 6
    with BenchRun.open(run) as bench:
        outputs = list(bench.outputs(editor.name))
        after = {(o.sample_id, o.k): o.edited for o in outputs}
        assert not any(attempt.superseded for attempt in bench.reader.all_attempts(superseded=True))
        assert [o.k for o in bench.scored(editor.name)] == [0, 0, 0]
    assert before.items() <= after.items()
    grid = bench.arms[editor.name].grid
    expected = [(0, 5.0), (0, 40.0), (1, 5.0), (1, 40.0)]
    assert [(one.seed, one.parameters["amount"]) for one in grid] == expected
    seeds = {(r.image.id, r.seed) for r in editor.requests}
    assert len(seeds) == 6  # two seeds for each of three samples, shared by both amounts
    assert len(set(after.values())) == 12


def test_only_added_samples_and_arms_are_generated(tmp_path: Path) -> None:
    run, one, other = tmp_path / "run", Brightener("offline/one"), Brightener("offline/other")
    made(small_bench(tmp_path / "small", 3), run, by(one))
    large = small_bench(tmp_path / "large", 5)
    made(large, run, by(one))
    assert sorted(request.image.id for request in one.requests) == ["1", "2", "3", "4", "5"]
    assert made(large, run, by(other)).made == 5
    with BenchRun.open(run) as bench:
        assert sorted(bench.samples) == ["1", "2", "3", "4", "5"]
        assert len(list(bench.outputs("copy-input"))) == 5
        assert list(bench.arms) == [*BASELINES, "offline/one", "offline/other"]


def test_a_changed_benchmark_editor_or_seed_is_refused_in_one_line(tmp_path: Path) -> None:
    folder, run, editor = tmp_path / "bench", tmp_path / "run", Brightener()
    benchmark = small_bench(folder)
    made(benchmark, run, ArmRequest(own={"mine": editor}))
    with pytest.raises(InputError, match="the seed is now 5, but this run was started with 0"):
        made(benchmark, run, seed=5)
    with pytest.raises(InputError, match="the offline/brightener is now 2, and this run was started with 1"):
        made(benchmark, run, ArmRequest(own={"mine": replace(editor, fingerprint="2")}))
    with pytest.raises(InputError, match="arm mine: model is now 'offline/b'"):
        made(benchmark, run, ArmRequest(own={"mine": replace(editor, name="offline/b")}))
    with pytest.raises(InputError, match="two arms are called"):
        made(benchmark, run, ArmRequest(own={"copy-input": editor}))
    (folder / "changed" / "2.png").write_bytes((folder / "changed" / "3.png").read_bytes())
    metadata = orjson.loads((folder / "benchmark.json").read_bytes())
    for row in metadata["samples"]:
        row["sha256"] = {}
    (folder / "benchmark.json").write_bytes(orjson.dumps(metadata))
    with pytest.raises(InputError, match="sample 2 changed since"):
        made(Benchmark.load(folder), run)
    with pytest.raises(InputError, match="sample 4 was removed since"):
        made(small_bench(tmp_path / "fewer", 3), run)
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="contains other files"):
        made(benchmark, tmp_path / "file")


def test_refusals_and_wrong_sizes_are_attempts_without_an_image(tmp_path: Path) -> None:
    benchmark, run = small_bench(tmp_path / "bench", 3), tmp_path / "run"
    shy = Brightener("offline/shy", refuses=frozenset({"2"}))
    tall = Brightener("offline/tall", size=(50, 100))
    half = Brightener("offline/half", size=(WIDTH // 2, HEIGHT // 2))
    summary = made(benchmark, run, ArmRequest(own={e.name: e for e in (shy, tall, half)}))
    assert summary.closed == {TaskState.SUCCESS: 12 + 2 + 3, TaskState.FAILED: 1 + 3}
    with BenchRun.open(run) as bench:
        refused = [one for one in bench.outputs("offline/shy") if one.edited is None]
        assert [(one.sample_id, one.reason) for one in refused] == [("2", "refused: not this one")]
        malformed = list(bench.outputs("offline/tall"))
        assert {one.attempt.edit_outcome.kind for one in malformed} == {OutcomeKind.MALFORMED}  # type: ignore[union-attr]
        assert all(one.attempt and one.attempt.raw for one in malformed)
        assert {decode(bench.read(one)).shape for one in bench.outputs("offline/half")} == {
            (HEIGHT, WIDTH, 3)
        }
        call = bench.reader.calls(next(bench.outputs("offline/half")).task_id)[0]
        assert "resized from 60x48: bicubic" in call.raw


def test_retry_repeats_only_failed_outputs(tmp_path: Path) -> None:
    benchmark, run = small_bench(tmp_path / "bench", 3), tmp_path / "run"
    editor = Brightener(refuses=frozenset({"2"}))
    made(benchmark, run, by(editor, seeds=2))
    assert made(benchmark, run, by(editor, seeds=2)).made == 0
    again = by(editor, seeds=2, retry=frozenset({OutcomeKind.REFUSED}))
    assert made(benchmark, run, again).closed == {TaskState.FAILED: 1}
    editor.refuses = frozenset()
    editor.requests.clear()
    assert made(benchmark, run, again).closed == {TaskState.SUCCESS: 1}
    assert [request.image.id for request in editor.requests] == ["2", "2"]
    with BenchRun.open(run) as bench:
        outputs = list(bench.outputs(editor.name))
        assert all(one.edited for one in outputs)
        assert {one.generation for one in outputs} == {0}
        draws = [call.key.draw for call in bench.reader.calls(outputs[2].task_id)]
    assert sorted(draws) == [0, 0, 1, 1, 2, 2]  # two outputs: refused, refused again, made
    assert made(benchmark, run, again).made == 0


def test_prompt_variant_is_sent_and_a_missing_one_is_reported(tmp_path: Path) -> None:
    benchmark, run, editor = small_bench(tmp_path / "bench", 2), tmp_path / "run", Brightener()
    made(benchmark, run, by(editor, prompt=PromptVariant.REPHRASED))
    label = "offline/brightener"
    assert [request.instruction for request in editor.requests] == ["Draw a disc of light."]
    with BenchRun.open(run) as bench:
        arm = bench.arms[f"{label}+rephrased"]
        assert arm.prompt is PromptVariant.REPHRASED
        reasons = [one.reason for one in bench.outputs(arm.label)]
    assert reasons == ["", "not_applicable: the sample has no rephrased prompt"]


def test_limit_counts_editor_outputs_and_the_next_run_makes_the_rest(tmp_path: Path) -> None:
    benchmark, run, editor = small_bench(tmp_path / "bench", 3), tmp_path / "run", Brightener()
    summary = made(benchmark, run, by(editor, seeds=2), limit=5)
    # Three samples of two outputs each: two samples fit into five outputs. The baselines' tasks do not count.
    baselines = sum(summary.closed.values()) - 2
    assert (summary.stopped, len(editor.requests), baselines % 3) == ("limit", 4, 0)
    assert baselines > 0
    rest = made(benchmark, run, by(editor, seeds=2))
    assert (rest.stopped, sum(rest.closed.values()), len(editor.requests)) == (None, 1, 6)
    made(benchmark, tmp_path / "other", by(editor, seeds=2), limit=1)
    assert len(editor.requests) == 6 + 2  # always whole tasks


def test_images_of_unknown_licence_are_not_sent_to_hosted_models(tmp_path: Path) -> None:
    benchmark = small_bench(tmp_path / "bench", 2, licence=Licence.UNKNOWN)
    hosted = Brightener("somewhere/model")
    message = r"image '1' of small has no known licence .* and somewhere/model is a hosted"
    with pytest.raises(InputError, match=message):
        made(benchmark, tmp_path / "run", by(hosted))
    assert not hosted.requests
    assert not (tmp_path / "run").exists()
    made(benchmark, tmp_path / "run", by(Brightener()))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"sweep": {"guidance": (7.5,)}}, "has no parameter 'guidance'; it can vary amount"),
        ({"shots": (0, 1)}, "--shots: 1 demonstrations; offline/brightener accepts none"),
        ({"shots": (9,)}, "--shots: no task has 10 samples of different sources"),
    ],
)
def test_unsupported_requests_are_refused_before_any_call(
    wanted: dict[str, object], message: str, tmp_path: Path
) -> None:
    editor = Brightener()
    with pytest.raises(InputError) as caught:
        made(small_bench(tmp_path / "bench", 8), tmp_path / "run", by(editor, **wanted))
    assert message in str(caught.value)
    assert not editor.requests and not (tmp_path / "run").exists()


def test_command_prints_the_state_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_bench(tmp_path / "bench", 2)
    arguments = ["bench", "generate", str(tmp_path / "bench"), "--run", str(tmp_path / "run")]
    assert main([*arguments, "--limit", "3"]) == 0  # baselines do not count
    assert "8 of 8 tasks to do; waiting for the first task; asking baseline/" in capsys.readouterr().err
    assert main([*arguments, "--json"]) == 0
    printed = orjson.loads(capsys.readouterr().out)
    assert (printed["tasks"], printed["stopped"]) == (8, None)
    assert main([*arguments, "--to", str(tmp_path / "files")]) == 0
    assert "ground-truth" in capsys.readouterr().out
    assert (tmp_path / "files" / "jpeg-75" / "2_0.png").exists()
    image = Image.open(io.BytesIO((tmp_path / "files" / "jpeg-75" / "2_0.png").read_bytes()))
    assert image.size == (WIDTH, HEIGHT)
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "99.png").touch()
    # another ratio of sides than the sample's
    Image.new("RGB", (50, 400)).save(tmp_path / "outputs" / "1.png")
    imported = [*arguments[:-1], str(tmp_path / "imported"), "--outputs", f"{tmp_path / 'outputs'}=tall"]
    reason = (
        f"malformed: the output is 50x400 pixels, {WIDTH}x{HEIGHT} in the benchmark: another ratio of sides"
    )
    assert main([*imported, "--json"]) == 0
    (tall,) = (arm for arm in orjson.loads(capsys.readouterr().out)["arms"] if arm["arm"].endswith("tall"))
    assert tall["reasons"][reason] == 1
    assert main(imported) == 0
    out, err = capsys.readouterr()
    assert reason in out and "must edit the images in" in out
    assert "1 file belongs to no sample of this benchmark and was left out, e.g. 99.png" in err
    for bad, message in (
        (["--shots", "1;2"], "--shots: '1;2' is not like 0,1,2,3"),
        (["--shots", "1"], "--shots: name the editors"),
        (["--sweep", "x"], "--sweep"),
        (["--editor", "offline/procedurl"], "did you mean 'offline/procedural'?"),
        (["--outputs", str(tmp_path / "nothing")], "no such folder"),
        (["--prompt", "long"], "long"),
    ):
        assert main([*arguments, *bad]) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "own.py").write_text("def same(image, instruction):\n    return image\n")
    assert main([*arguments, "--editor", str(tmp_path / "own.py:same"), "--limit", "1"]) == 3
    assert "1 of 10 tasks to do" in capsys.readouterr().err  # 8 baseline tasks are done, 1 task is left
    shutil.rmtree(tmp_path / "bench")
    assert main(arguments) == 2


def test_function_that_stopped_a_run_can_be_corrected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_bench(tmp_path / "bench", 24)
    file, run = tmp_path / "own.py", tmp_path / "run"
    words = ["bench", "generate", str(tmp_path / "bench"), "--run", str(run), "--editor", f"{file}:own"]

    def edited(shown: str, share: int) -> int:
        file.write_text(
            f"SHARE = {share}\n\n\ndef own(image, instruction):\n    return image{shown} // SHARE\n"
        )
        return main(words)

    assert edited(".mode", 2) == 1  # 20 failures in a row
    assert edited("", 2) == 0
    with BenchRun.open(run) as bench:
        assert [one.reason for one in bench.outputs("python/own")] == [""] * 24
    capsys.readouterr()
    assert edited("", 3) == 2 and "python/own changed" in capsys.readouterr().err  # a value that it uses
    assert main([*words, "--editor", f"{file}:own=own"]) == 2
    assert (
        "two functions are called python/own; name one with FILE.py:FUNCTION=NAME" in capsys.readouterr().err
    )


def test_changed_function_replaces_failed_outputs_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_bench(tmp_path / "bench", 2)
    file, run = tmp_path / "own.py", tmp_path / "run"
    changes: list[str] = []
    words = ["bench", "generate", str(tmp_path / "bench"), "--run", str(run), "--editor"]

    def edited(body: str, name: str = "") -> int:
        file.write_text(f"def own(image, instruction):\n    return {body}\n")
        changes.append(body)  # all of equal size, in one second: bytecode of an import would be out of date
        os.utime(file, ns=(0, 10**18 + len(changes) * 10**6))
        return main([*words, f"{file}:own{name}"])

    assert edited("image.mode") == edited("image // 2") == 0
    with BenchRun.open(run) as bench:
        fixed = [(one.generation, one.reason) for one in bench.outputs("python/own")]
    assert fixed == [(1, ""), (1, "")]
    capsys.readouterr()
    assert edited("image // 3") == 2
    assert "give the new one another name: --editor FILE.py:FUNCTION=NAME" in capsys.readouterr().err
    assert edited("image // 3", "=own-2") == 0
    assert main([*words[:-1], "--to", str(tmp_path / "made")]) == 0
    assert main([*words[:-1], "--outputs", str(tmp_path / "made")]) == 0
    own = ("python/own", "python/own-2")
    with BenchRun.open(run) as bench:
        assert list(bench.arms) == [*BASELINES, *own, *("outputs/" + one.replace("/", "__") for one in own)]
