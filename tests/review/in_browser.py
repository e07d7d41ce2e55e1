"""A study served on loopback and read in a real browser: what its tests share."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plantain.review.ratings import Ratings
from plantain.review.study import Study

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

LAID_OUT = """(() => { const stage = document.querySelector("#stage").getBoundingClientRect();
  return stage.left === 0 && stage.bottom > innerHeight - 2; })()"""
"""Whether the pictures have the whole of their side of the window; rules of other pages have taken some of it once."""


@contextmanager
def running(study: Study) -> Iterator[tuple[Ratings, str]]:
    uvicorn = pytest.importorskip("uvicorn")
    from plantain.review.room.server import create_app
    from plantain.review.serving import listen

    ratings = Ratings.open(study)
    held = listen("127.0.0.1", 0)
    app = create_app(study, ratings, hosts=frozenset({"127.0.0.1"}))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]})
    thread.start()
    try:
        yield ratings, f"http://127.0.0.1:{held.getsockname()[1]}"
    finally:  # a test that fails must not leave the process waiting for the server
        server.should_exit = True
        thread.join()
        ratings.close()


class Screen:
    """A page, what it asked for, what it complained of; `turn` counts what it has shown."""

    def __init__(self, browser, width: int, height: int) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": height}).new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def then(self, act, *args) -> None:
        """Does something and waits until the page has shown something new; no clock is asked."""
        turn = self.page.evaluate("document.body.dataset.turn ?? ''")
        act(*args)
        self.page.wait_for_selector(
            f'body[data-turn]:not([data-turn="{turn}"])', state="attached", timeout=20_000
        )

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)


@contextmanager
def at_first_item(browser, study: Study) -> Iterator[tuple[Screen, Ratings]]:
    """A new reader's page on the first item of a study, of its training where it has one."""
    with running(study) as (ratings, address):
        screen = Screen(browser, 1280, 800)
        screen.then(screen.page.goto, f"{address}/enter#{ratings.invite()[1]}")
        screen.then(screen.page.keyboard.press, "y")
        screen.then(screen.page.keyboard.press, "Enter")
        yield screen, ratings
        assert screen.complaints == []
        screen.page.context.close()
