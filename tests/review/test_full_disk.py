"""A disk that is really full: one clear line, nothing half, and the same again once there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from plantain.cli import main
from plantain.review.ratings import Ratings
from plantain.review.study import ReaderTask, open_study
from review.study_on_paper import answer_to, small_study

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

from plantain.review.web.server import create_app


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB of its own."""
    folder, mount, umount = tmp_path / "small", which("mount"), which("umount")
    folder.mkdir()
    if mount is None or umount is None:
        pytest.skip("no mount here")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"no disk of its own here: {made.stderr.strip()}")
    yield folder
    subprocess.run([umount, folder], check=True)


def fill(folder: Path) -> Path:
    """Takes what room there is."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    return path


def test_an_answer_that_finds_no_room_is_not_stored_and_said_in_one_line(small: Path):
    study = small_study(small / "s", ReaderTask.RATE, cases=4)
    ratings = Ratings.open(study)
    reader, token = ratings.invite()
    web = TestClient(create_app(study, ratings), base_url="http://127.0.0.1")
    web.post("/enter", json={"token": token})
    filler = fill(small)
    saved, refused = 0, None
    for position in range(4):
        case = web.get(f"/api/case/b1/{position}").json()
        if "item" not in case:
            break
        value = answer_to(case) | {"comment": "x" * 1900}
        body = {"item": case["item"], "key": f"key{position:05d}", "value": value, "focus_ms": 900}
        answer = web.post("/api/answer", json=body)
        if answer.status_code != 200:
            refused = (answer, body)
            break
        saved += 1
    assert refused is not None
    assert refused[0].status_code == 507
    assert refused[0].json() == {"detail": "not saved: the disk is full; please inform the administrator"}
    assert len(ratings.history()) == saved
    assert web.get("/api/me").json()["blocks"][0]["answered"] == saved  # the room goes on reading
    filler.unlink()
    for _ in range(2):  # as the browser sends it again, and once more
        assert web.post("/api/answer", json=refused[1]).status_code == 200
    assert len(ratings.history()) == saved + 1 and ratings.current(reader.code)[-1].value["comment"]
    ratings.close()


def test_a_study_that_finds_no_room_leaves_nothing_half(small: Path, tmp_path: Path, capsys):
    lines = ["original,edited,modality,finding,direction"]
    for case in range(6):
        for what in ("a", "b"):
            draw_image(tmp_path / f"{what}{case}.png", case)
        lines.append(f"a{case}.png,b{case}.png,chest_xray,Pneumothorax,add")
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    words = ["review", "new", str(small / "s"), "--from", str(tmp_path / "pairs.csv"), "--task", "accept"]
    assert main(words) == 2
    err = capsys.readouterr().err.strip().splitlines()[-1]
    assert "No space left on device" in err and not list(small.iterdir())
    assert main([*words, "--cases", "1"]) == 0
    assert len(open_study(small / "s").cases) == 1


def draw_image(path: Path, seed: int) -> None:
    import cv2
    import numpy as np

    noise = np.random.default_rng(seed).integers(0, 60, (1024, 1024), dtype=np.uint8)
    cv2.imwrite(str(path), noise)
