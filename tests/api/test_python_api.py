"""`import plantain` in real scripts and a real notebook kernel, and the results of each public name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas
import pytest
import skimage.data
from nbclient import NotebookClient
from PIL import Image

import plantain
from plantain.cli import main
from plantain.pipeline.recipe import checked
from plantain.records import InputError, TaskState
from plantain.rubrics import rubric_named

RECIPE = """
name = "pilot"
seed = 4
[data]
catalogue = "catalogue"
findings = ["AMD", "Cataract"]
check_text = false
[loop]
max_rounds = 1
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One real photograph, ingested, with a recipe in the same folder."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "images" / "normal").mkdir(parents=True)
    Image.fromarray(skimage.data.retina()).save(folder / "images" / "normal" / "0_left.png")
    command = ["ingest", "folder", str(folder / "images"), "--to", str(folder / "catalogue"), "--skip-text"]
    assert main([*command, "--modality", "fundus", "--licence", "open"]) == 0
    (folder / "pilot.toml").write_text(RECIPE)
    return folder


@pytest.mark.slow
def test_a_script_of_two_lines_needs_no_guard(project: Path) -> None:
    """Workers used to run the script again: tracebacks, and a task that its dying worker left as stopped."""
    script = project / "two.py"
    script.write_text("import plantain\nprint(plantain.run('pilot.toml', 'run'))\n")
    done = subprocess.run([sys.executable, script.name], cwd=project, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Run('run'): 2 tasks, 2 success\n"


CELLS = (
    """
import threading, plantain  # the kernel's loop runs already
print(plantain.run("pilot.toml", "noted", limit=1).summary.stopped)
run = plantain.run("pilot.toml", "noted")
print(run)
""",
    """
in_thread = []
thread = threading.Thread(target=lambda: in_thread.append(plantain.run("pilot.toml", "noted")))
thread.start(); thread.join()
print(in_thread[0].summary)
""",
    "run.task(run.tasks()[0].id[:5])",
)


@pytest.mark.slow
def test_notebook_builds_next_to_its_loop_and_in_threads(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(project / "ipython"))  # no user's settings
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(project)}}).execute()
    printed = ["".join(out.get("text", "") for out in cell.outputs) for cell in notebook.cells]
    assert printed[0] == "limit\nRun('noted'): 2 tasks, 2 success\n"
    assert "planned=2, closed=Counter()," in printed[1]  # no task is left
    assert " made=0," in printed[1]
    html = notebook.cells[2].outputs[0].data["text/html"]
    assert html.count("data:image/jpeg;base64,") == 2  # the original and its one edit
    assert "<b>Cataract, add</b>: Success" in html or "<b>AMD, add</b>: Success" in html


@pytest.fixture(scope="module")
def run(paper_run: Path) -> plantain.Run:
    """The run on paper of the report's tests, which list its 13 tasks and their final states."""
    return plantain.Run(paper_run)


def test_a_run_is_read_as_tasks_attempts_and_tables(run: plantain.Run) -> None:
    tasks = run.tasks()
    assert [task.id for task in tasks] == sorted(task.id for task in tasks)
    assert run.task(tasks[0].id[:12]).id == tasks[0].id
    assert {task.state for task in run.tasks("success")} == {TaskState.SUCCESS}
    by_task, by_attempt = run.table(), run.table("attempt")
    assert isinstance(by_task, pandas.DataFrame)
    assert list(by_task.task) == [task.id for task in tasks]
    page = (Path(__file__).parents[2] / "docs/reference/run-table.md").read_text(encoding="utf-8")
    columns = re.findall(r"^\| `(\w+)`", page, flags=re.M)
    criteria = {name for one in run.attempts() if one.verdict for name in one.verdict.observations.criteria}
    assert columns[: by_task.shape[1]] == list(by_task) and set(columns) == set(by_attempt) - criteria
    assert len(by_attempt) == len(run.attempts()) == run.status()["attempts"]
    assert (by_attempt.score.dropna().between(0, 1)).all() and by_attempt.score.isna().any()
    assert f"{len(tasks)} tasks" in repr(run)


def test_a_notebook_shows_hostile_words_as_text(hostile_run: Path) -> None:
    for task in plantain.Run(hostile_run).tasks():
        html = task._repr_html_()
        assert "<script" not in html and "<img src=x" not in html
        assert html.count("<img") == html.count('<img src="data:image/jpeg;base64,')


def test_wrong_arguments_raise(run: plantain.Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no task's id"):
        run.task("zz")
    with pytest.raises(ValueError, match="by: 'round'; task or attempt"):
        run.table("round")  # type: ignore[arg-type]
    with pytest.raises(InputError):
        plantain.Run(tmp_path / "nothing").tasks()
    (tmp_path / "r.toml").write_text(RECIPE)
    with pytest.raises(InputError, match="limit: 0; at least 1"):
        plantain.run(tmp_path / "r.toml", tmp_path / "run", limit=0)
    twice = {"judge": ["offline/instruments", "offline/instruments"]}
    with pytest.raises(InputError, match=r"recipe: models\.judge: offline/instruments is named 2 times"):
        plantain.plan(
            plantain.Recipe.model_validate({"name": "own", "data": {"catalogue": "c"}, "models": twice})
        )


def test_a_recipe_made_in_python_takes_its_rubrics_policy() -> None:
    recipe = plantain.Recipe.model_validate(
        {"name": "own", "data": {"catalogue": "c"}, "rubric": "medebench"}
    )
    assert recipe.loop.policy == "all-pass"
    assert (checked(recipe).loop.policy, checked(recipe).loop.threshold) == (
        "weighted",
        rubric_named("medebench").threshold,
    )


def test_every_public_name_exists_and_has_a_docstring() -> None:
    assert {"run", "plan", "Recipe", "Catalogue", "Run", "Benchmark", "evaluate", "metrics"} <= set(
        plantain.__all__
    )
    for name in plantain.__all__:
        assert getattr(plantain, name).__doc__ and name in dir(plantain)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        plantain.nonsense  # type: ignore[attr-defined]  # noqa: B018
