"""The viewer over a run whose tasks are counted by hand, over a study and over a release: filters, pages, refusals."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.scored_run import make_all
from fakes.commands import refused
from plantain.cli import main
from plantain.cli.review.demo import simulate
from plantain.journal import JournalReader
from plantain.journal.questions.browsing import TaskQuery, page_of
from plantain.pixels.encode import XMP_PACKET
from plantain.review.ratings import Ratings
from plantain.review.study import ReaderTask
from report.run_on_paper import LICENCES
from review.study_on_paper import MODELS, small_study

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

from plantain.cli.view import _opened
from plantain.review.web.run_view import PAGE, RunView
from plantain.review.web.server import create_viewer
from plantain.review.web.study_view import StudyView


@pytest.fixture(scope="module")
def run(hostile_run: Path) -> Path:
    return hostile_run


def web_of(view: RunView | StudyView) -> TestClient:
    return TestClient(create_viewer(view), base_url="http://127.0.0.1", follow_redirects=False)


@pytest.fixture(scope="module")
def web(run: Path) -> Iterator[TestClient]:
    with web_of(RunView(run)) as client:  # one event loop for all requests
        yield client


def listed(text: str) -> list[str]:
    return re.findall(r'<tr class="[a-z_]*" id="t([0-9a-f]+)"', text)


FILTERS = [  # counted in the plan of `run_on_paper`
    ("", 10),
    ("state=success", 5),
    ("state=pending", 2),
    ("text=fundus", 3),
    ("text=heart", 1),
    ("text=no such words", 0),
    ("text=chest2", 1),
    ("text=lung lesion&state=success", 0),
]


@pytest.mark.parametrize(("query", "tasks"), FILTERS)
def test_states_and_searches_filter_the_tasks(web: TestClient, query: str, tasks: int):
    page = web.get(f"/?{query}")
    assert page.status_code == 200 and len(listed(page.text)) == tasks


def test_pages_forwards_and_back_contain_every_task(run: Path):
    with JournalReader.open(run) as reader:
        whole = [task.id for task in page_of(reader, TaskQuery(), size=100).tasks]
        assert whole == [row.id for row in reader.tasks()]
        pages, after = [], ""
        while True:
            page = page_of(reader, TaskQuery(), size=3, after=after)
            pages.append([task.id for task in page.tasks])
            assert page.before == bool(after)
            if not page.behind:
                break
            after = page.tasks[-1].id
        assert [task for one in pages for task in one] == whole
        back = page_of(reader, TaskQuery(), size=3, before=page.tasks[0].id)
        assert (
            [task.id for task in back.tasks] == pages[-2] and back.behind and back.before == (len(pages) > 2)
        )
        first = page_of(reader, TaskQuery(), size=3, before=whole[0])
        assert len(whole) == 10 and len(first.tasks) <= 3


def test_a_task_shows_rounds_judges_calls_and_its_neighbours(web: TestClient, run: Path):
    with JournalReader.open(run) as reader:
        amd = next(row for row in reader.tasks() if row.task.finding.startswith("AMD"))
        calls = reader.calls(amd.id)
    page = web.get(f"/task/{amd.id[:8]}?text=fundus").text
    assert page.count('class="round"') == 2 and page.count("<td>offline/") == len(calls)
    neighbours = re.findall(r'data-(?:previous|next)="([^"]*)"', page)
    ids = listed(web.get("/?text=fundus").text)
    at = ids.index(amd.id)
    around = [ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else ""]
    assert [found.split("?")[0].removeprefix("/task/") for found in neighbours] == around
    brain = web.get("/?text=glioma").text  # its first generation was superseded by a retry
    assert web.get(f"/task/{listed(brain)[0]}").text.count("superseded by a retry") == 2


def test_text_of_a_run_is_escaped_and_viewing_writes_nothing(web: TestClient, run: Path):
    before = {
        path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file() and "-shm" not in path.name
    }
    pages = [web.get(path) for path in ("/", "/?text=<script>alert(1)</script>")]
    pages += [web.get(f"/task/{task}") for task in listed(pages[0].text)]
    for page in pages:
        assert page.status_code == 200 and "<script>alert" not in page.text and "\u202e" not in page.text
        assert "default-src 'none'; script-src 'self'" in page.headers["content-security-policy"]
        assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.text) and " style=" not in page.text
    after = {
        path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file() and "-shm" not in path.name
    }
    assert {path for path in before if before[path] != after.get(path)} == set()


@pytest.mark.parametrize(
    "path",
    [
        "/task/zzzz", "/task/", "/image/..%2f..%2fjournal.sqlite", "/image/" + "0" * 64, "/static/..%2fserver.py",
        "/thumbnail/original/journal.sqlite", "/study.json", "/docs", "/openapi.json", "/?state=nonsense",
        "/?text=" + "x" * 300,
    ],
)  # fmt: skip
def test_unknown_addresses_get_one_short_page(web: TestClient, path: str):
    page = web.get(path)
    assert page.status_code in (404, 422) and "Traceback" not in page.text and len(page.text) < 2500


def test_only_reads_under_names_of_this_machine_are_answered(web: TestClient, run: Path):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert web.request(method, "/").status_code == 405
    assert web.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert {
        m for route in create_viewer(RunView(run)).router.routes for m in getattr(route, "methods", ())
    } <= {"GET", "HEAD"}


def test_thumbnails_are_marked_and_removed_with_their_image(run: Path, tmp_path: Path):
    copy = shutil.copytree(run, tmp_path / "run")
    web = web_of(RunView(copy))
    with JournalReader.open(copy) as reader:
        row = next(row for row in reader.tasks() if row.task.image_id == "chest2")
        edited = reader.attempts(row.id)[-1].edited or ""
    files = set(copy.rglob("*"))
    made = web.get(f"/thumbnail/edited/{edited}")
    assert made.headers["content-type"] == "image/jpeg" and set(copy.rglob("*")) == files
    assert XMP_PACKET in made.content  # the mark of synthetic images
    assert main(["run", "withdraw", str(copy), "--image", "chest2"]) == 0
    assert web.get(f"/thumbnail/edited/{edited}").status_code == 404


def test_a_study_is_shown_with_its_models_and_answers(tmp_path: Path):
    study = small_study(tmp_path / "s", ReaderTask.ACCEPT, ReaderTask.PAIR, cases=4)
    ratings = Ratings.open(study)
    simulate(study, ratings)
    rows = len(ratings.current())
    ratings.close()
    web = web_of(StudyView(study.folder))
    page = web.get("/").text
    assert page.count('id="tc0') == len(study.cases) and "not for readers" in page
    cases = [web.get(f"/case/{case.id}").text for case in study.cases]
    assert all(model in case for model in MODELS for case in cases)
    assert sum(case.count("<td>simulated-") for case in cases) == rows
    name = study.cases[0].images["original"]
    assert web.get(f"/image/{name}").headers["content-type"] == "image/png"
    assert web.get(f"/thumbnail/original/{name}").headers["content-type"] == "image/jpeg"
    for path in ("/image/..%2fsecret", "/image/secret", "/case/c9999", "/ratings.sqlite"):
        assert web.get(path).status_code == 404


def test_a_benchmarks_run_is_shown_by_arms_samples_and_scores(tmp_path: Path):
    made = make_all(tmp_path, organs=("Skin", "Eyes"), per_organ=3)
    with ExitStack() as held, JournalReader.open(made.run) as reader:
        view = _opened(made.run, held)
        assert isinstance(view, RunView) and view.bench
        web = web_of(view)
        page = web.get("/").text
        rows = list(reader.tasks())
        assert len(listed(page)) == min(len(rows), PAGE)
        assert "reason code" not in page and "round " not in page  # what only builds have
        assert listed(web.get("/?text=planted/exact").text) == [
            r.id for r in rows if r.task.finding == "planted/exact"
        ]
        swept = next(row for row in rows if row.task.finding == "offline/swept")
        one = web.get(f"/task/{swept.id}").text
        values = [
            score
            for score in reader.scores(swept.id)
            if score.metric == "lpips" and score.score.value is not None
        ]
        assert one.count("<h2>Output ") == len(reader.attempts(swept.id)) == 6 and len(values) == 6
        assert all(f"<td>{score.score.value:.4f}</td>" in one for score in values)
        for attempt in reader.attempts(swept.id):
            response = web.get(f"/image/{attempt.edited}")
            assert response.headers["content-type"] == "image/png" and response.content == reader.read_blob(
                attempt.edited
            )
        refused = next(a for row in rows for a in reader.attempts(row.id) if a.edited is None)
        assert "the provider declined" in web.get(f"/task/{refused.task_id}").text


def test_other_folders_are_refused_in_one_line(tmp_path: Path):
    for folder in (tmp_path / "none", tmp_path):
        refused("view", folder)


@pytest.mark.parametrize("words", [["view"], ["review", "serve"]])
def test_a_missing_extra_is_named_in_one_line(words: list[str], run: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plantain.files.installed.has_module", lambda name: name != "fastapi")
    assert "needs the package fastapi: in plantain's clone: pip install -e '.[review]'" in refused(
        *words, run
    )


def test_a_release_is_shown_like_a_run(run: Path, tmp_path: Path):
    copy = shutil.copytree(run, tmp_path / "run")
    words = ["export", str(copy), "--to", str(tmp_path / "out"), "--layout", "med-banana", "--json"]
    assert main([*words, *LICENCES]) == 0
    with ExitStack() as held:
        view = _opened(tmp_path / "out", held)
        assert isinstance(view, RunView) and view.name == "out"
        page = web_of(view).get("/").text
        assert len(listed(page)) == 8  # all but the two pending ones
        assert "/thumbnail/edited/" in page
