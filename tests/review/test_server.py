"""The server of a study, attacked: roles by route, blinding over every response, forged requests, hostile answers."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.results.rows import DICTIONARY
from plantain.review.results.writing import export_files
from plantain.review.serving import check_host
from plantain.review.study import ReaderTask, Study, open_study
from review.study_on_paper import MODELS, answer_to, mask_of, small_study

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

from plantain.review.web.reading import COOKIE
from plantain.review.web.server import create_app


class Visitor:
    """A browser with a cookie of its own."""

    def __init__(self, app, token: str | None = None) -> None:
        self.web = TestClient(
            app, base_url="http://127.0.0.1", follow_redirects=False, raise_server_exceptions=True
        )
        self.seen: list = []
        if token:
            assert self.web.post("/enter", json={"token": token}).status_code == 200

    def get(self, path: str):
        self.seen.append(self.web.get(path))
        return self.seen[-1]

    def post(self, path: str, body: object = None, **headers: str):
        self.seen.append(self.web.post(path, json=body or {}, headers=headers))
        return self.seen[-1]

    def answer(self, case: dict, value: dict, key: str = "0123456789abcdef"):
        return self.post("/api/answer", {"item": case["item"], "key": key, "value": value, "focus_ms": 1200})


def opened(folder: Path, *tasks: ReaderTask, **more):
    study = small_study(folder, *tasks, **more)
    ratings = Ratings.open(study)
    app = create_app(study, ratings, hosts=frozenset({"127.0.0.1"}))
    return study, ratings, app


def read_whole(visitor: Visitor) -> int:
    """Read every block to its end; return the number of answers given."""
    given = 0
    for block in visitor.get("/api/me").json()["blocks"]:
        for position in range(block["items"]):
            case = visitor.get(f"/api/case/{block['id']}/{position}").json()
            for url in [case["original"], case["truth"], *case["slots"], *case["proposals"]]:
                if url:
                    assert visitor.get(url).status_code == 200
            response = visitor.answer(case, answer_to(case), f"{given:016d}")
            assert response.status_code == 200, response.text
            given += 1
        assert visitor.post(f"/api/close/{block['id']}").status_code == 200
    return given


def test_no_response_to_a_reader_reveals_a_model(tmp_path: Path):
    """No model's name, nor a value that identifies one model, in any body, header or image."""
    study, ratings, app = opened(tmp_path / "s", cases=2)
    readers = [Visitor(app, ratings.invite()[1]) for _ in range(2)]
    for reader in readers:
        with reader.web:  # one event loop for hundreds of requests
            assert read_whole(reader) == sum(len(block.items) for block in study.blocks)
    by_size: set[int] = set()
    masks = {
        (study.folder / "images" / name).stat().st_size for case in study.cases for name in case.proposals
    }
    for reader in readers:
        for response in reader.seen:
            text = response.content + json.dumps(dict(response.headers)).encode()
            for name in MODELS:
                for part in (name, *name.split("/")):
                    assert part.encode() not in text
            assert b"task0" not in text and b"patient0" not in text
            if response.url.path.startswith("/image/"):
                assert response.headers["content-type"] == "image/png" and "etag" not in response.headers
                assert b"adobe" not in response.content  # the mark of synthetic images
                by_size.add(len(response.content))
    # the images of a case have one length, whichever model made them
    assert len(by_size) <= len({case.served_bytes for case in study.cases} | masks)
    # no address of an image is given to two readers, nor twice to one for two items
    paths = [{r.url.path for r in reader.seen if r.url.path.startswith("/image/")} for reader in readers]
    assert not paths[0] & paths[1]
    ratings.close()


ROUTES = [  # (method, path, no session, reader)
    ("GET", "/", 303, 200),
    ("GET", "/enter", 200, 200),
    ("GET", "/static/study.js", 200, 200),
    ("GET", "/static/../server.py", 404, 404),
    ("GET", "/static/%2e%2e%2fserver.py", 404, 404),
    ("GET", "/api/me", 401, 200),
    ("GET", "/api/case/b1/0", 401, 200),
    ("GET", "/api/case/b1/9999", 401, 404),
    ("GET", "/api/case/b1/-1", 401, 404),
    ("GET", "/api/case/b9/0", 401, 404),
    ("GET", "/image/0123456789abcdef0123456789abcdef", 401, 404),
    ("GET", "/image/..%2f..%2fstudy.json", 404, 404),
    ("GET", "/image/c0001-0.png", 401, 404),
    ("POST", "/api/answer", 401, 422),
    ("POST", "/api/agreement", 401, 422),
    ("POST", "/api/close/b1", 401, 422),
    ("POST", "/api/close/b9", 401, 404),
    ("GET", "/study.json", 404, 404),
    ("GET", "/ratings.sqlite", 404, 404),
    ("GET", "/docs", 404, 404),
    ("GET", "/openapi.json", 404, 404),
]


@pytest.fixture(scope="module")
def paired(tmp_path_factory):
    study, ratings, app = opened(
        tmp_path_factory.mktemp("rooms") / "s", ReaderTask.PAIR, ReaderTask.CHOOSE_ROI
    )
    yield study, ratings, app
    ratings.close()


def paths_of(routed):
    """Every path that an application or router answers, those of its included routers too."""
    for route in routed.routes:
        inner = getattr(route, "original_router", None)  # FastAPI 0.16x keeps included routers whole
        yield from [route.path] if inner is None else paths_of(inner)


def test_every_route_by_role(paired):
    _, ratings, app = paired
    visitors = [Visitor(app), Visitor(app, ratings.invite()[1])]
    for method, path, *expected in ROUTES:
        found = [(v.get(path) if method == "GET" else v.post(path)).status_code for v in visitors]
        assert found == expected, (method, path)
    assert set(paths_of(app)) == {
        "/", "/enter", "/static/{name}", "/api/me", "/api/agreement",
        "/api/case/{block}/{position}", "/image/{token}", "/api/answer", "/api/close/{block}",
    }  # fmt: skip


def test_items_of_another_reader_are_not_found(paired):
    _, ratings, app = paired
    one, other = (Visitor(app, ratings.invite()[1]) for _ in range(2))
    mine = one.get("/api/case/b1/0").json()
    assert other.get(mine["slots"][0]).status_code == 404
    assert other.answer(mine, {"better": "left"}).status_code == 404
    assert one.get("/api/case/b1/3").status_code == 404  # not yet: only the next item is served
    assert one.answer(mine, {"better": "left"}).status_code == 200
    assert not other.get("/api/me").json()["blocks"][0]["answered"]


def test_forged_requests_are_refused(paired):
    _, ratings, app = paired
    _, token = ratings.invite()
    reader = Visitor(app, token)
    case = reader.get("/api/case/b1/0").json()
    body = {"item": case["item"], "key": "k" * 16, "value": {"better": "left"}, "focus_ms": 1}
    for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert reader.post("/api/answer", body, **headers).status_code == 403
    form = reader.web.post("/api/answer", data=body)
    assert form.status_code == 415
    assert reader.web.get("/api/me", headers={"Host": "rebound.example"}).status_code == 421
    # of a stated size, and endless
    for content in (b"{" + b" " * (5 << 20), (b" " * 65536 for _ in range(90))):
        headers = {"Content-Type": "application/json"}
        assert reader.web.post("/api/answer", content=content, headers=headers).status_code == 413
    assert not reader.get("/api/me").json()["blocks"][0]["answered"]
    # a planted session cookie is not accepted, and signing in ends the old one
    planted = Visitor(app)
    planted.web.cookies.set(COOKIE, "planted", domain="127.0.0.1")
    entered = planted.web.post("/enter", json={"token": token})
    cookie = entered.headers["set-cookie"]
    assert "planted" not in cookie and "HttpOnly" in cookie and "samesite=strict" in cookie.lower()
    assert Visitor(app).web.post("/enter", json={"token": token[:-1]}).status_code == 401


def test_every_response_has_security_headers(paired):
    _, ratings, app = paired
    reader = Visitor(app, ratings.invite()[1])
    for path in ("/", "/api/me", "/static/look.css", "/nowhere", "/image/x"):
        headers = reader.get(path).headers
        assert (
            "script-src 'self'" in headers["content-security-policy"]
            and "unsafe" not in headers["content-security-policy"]
        )
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def at_regions(study: Study, ratings: Ratings, app) -> tuple[Visitor, str]:
    """A new reader who has finished the pairs, and the reader's code."""
    reader, token = ratings.invite()
    for item in study.blocks[0].items:
        ratings.save(reader.code, item.id, "k" * 8, "b1", list(item.shown), 0, {"better": "tie"}, 1)
    ratings.close_block(reader.code, "b1")
    return Visitor(app, token), reader.code


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({}, "mask: draw a region"),
        ({"mask": "###"}, "mask: a PNG of 64 x 64 pixels as base64"),
        ({"mask": mask_of((32, 64))}, "mask: a PNG of 64 x 64 pixels"),
        ({"mask": mask_of((64, 64), 130)}, "mask: black outside, white inside"),
        ({"mask": base64.b64encode(b"GIF89a").decode()}, "mask: a PNG"),
        ({"proposal": 7}, "proposal: a number"),
        ({"proposal": 0, "better": "left"}, "better: no such field"),
        ({"cannot": " "}, "cannot: give the reason"),
        ({"proposal": 0, "comment": "x" * 3000}, "comment: text of at most"),
        ([1], "answer: an object"),
    ],
)
def test_hostile_answers_are_refused_in_one_line_and_not_stored(paired, value, line):
    visitor, _ = at_regions(*paired)
    case = visitor.get("/api/case/b2/0").json()
    response = visitor.answer(case, value)
    assert response.status_code == 422 and line in response.json()["detail"]
    assert not visitor.get("/api/me").json()["blocks"][1]["answered"]


def test_a_drawn_region_comes_back_exact(paired):
    study, ratings, _ = paired
    visitor, reader = at_regions(*paired)
    case = visitor.get("/api/case/b2/0").json()
    assert visitor.answer(case, {"mask": mask_of((64, 64))}).status_code == 200
    files = dict(export_files(open_study(study.folder), ratings))
    region = next(data for name, data in files.items() if name.startswith("regions/") and reader in name)
    plane = cv2.imdecode(np.frombuffer(region, np.uint8), cv2.IMREAD_UNCHANGED)
    assert plane.shape == (64, 64) and set(np.unique(plane)) == {0, 255}
    assert (np.argwhere(plane).min(axis=0) == (5, 7)).all() and (
        np.argwhere(plane).max(axis=0) == (19, 29)
    ).all()


def test_credentialed_images_wait_for_the_agreement_and_stay_on_loopback(tmp_path: Path):
    study, ratings, app = opened(tmp_path / "s", ReaderTask.ACCEPT, credentialed=True)
    visitor = Visitor(app, ratings.invite()[1])
    assert visitor.get("/api/case/b1/0").status_code == 403 and visitor.get("/api/me").json()["agreement"]
    for name in ("x", "\0\0\0\0", "Ada\nLovelace"):
        assert visitor.post("/api/agreement", {"name": name}).status_code == 422
    for name in ("Dr Ada Lovelace", "Somebody Else"):
        assert visitor.post("/api/agreement", {"name": name}).status_code == 200
    assert ratings.readers()[0].confirmed_name == "Dr Ada Lovelace"  # who confirmed stays on record
    case = visitor.get("/api/case/b1/0").json()
    assert visitor.answer(case, answer_to(case)).status_code == 200
    assert all(b"Lovelace" not in data for _, data in export_files(study, ratings))
    with pytest.raises(InputError, match="only with --agreement"):
        check_host(study, "0.0.0.0", agreement=False)
    check_host(study, "127.0.0.1", agreement=False)
    check_host(study, "0.0.0.0", agreement=True)
    ratings.close()


def stored(ratings: Ratings) -> int:
    return ratings._db.execute("SELECT count(*) FROM answer").fetchone()[0]


def test_an_answer_on_a_full_disk_is_refused_in_one_line_and_not_stored(tmp_path: Path):
    """SQLite may take no page more, which it reports as it reports a full disk, until there is room again."""
    _, ratings, app = opened(tmp_path / "s", ReaderTask.PAIR)
    visitor = Visitor(app, ratings.invite()[1])
    case = visitor.get("/api/case/b1/0").json()
    limit = "PRAGMA max_page_count = {}"
    ratings._db.execute(limit.format(ratings._db.execute("PRAGMA page_count").fetchone()[0]))
    value, saved = {"better": "left", "comment": "x" * 1900}, 0
    while (response := visitor.answer(case, value, f"{saved:016d}")).status_code == 200:
        saved += 1
    assert response.status_code == 507
    assert response.json() == {"detail": "not saved: the disk is full; please inform the owner of the study"}
    assert stored(ratings) == saved > 0 and not ratings._db.in_transaction
    assert visitor.get("/api/me").json()["blocks"][0]["answered"] == 1  # reading continues
    ratings._db.execute(limit.format(1 << 30))
    for _ in range(2):  # as the browser repeats it, twice
        assert visitor.answer(case, value, f"{saved:016d}").status_code == 200
    assert stored(ratings) == saved + 1
    ratings.close()


def test_export_is_rows_without_names(paired):
    study, ratings, app = paired
    visitor = Visitor(app, ratings.invite()[1])
    visitor.answer(visitor.get("/api/case/b1/0").json(), {"better": "left"})
    files = dict(export_files(study, ratings))
    rows = list(csv.DictReader(io.StringIO(files["answers.csv"].decode())))
    assert list(rows[0]) == list(DICTIONARY) and {row["study"] for row in rows} == {study.digest[:16]}
    pairs = [row for row in rows if row["task"] == "pair" and row["answer"] not in ("tie", "")]
    assert pairs and all(row["answer"] in MODELS for row in pairs)
    assert files["HASH"].decode().startswith(study.digest)
