"""Pages in a real browser: files, and a study or a viewer served on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from plantain.review.ratings import Ratings
from plantain.review.study import Study


def in_thread(act: Callable[[], Any]) -> Any:
    """Act in a thread of its own: the browser's driver has an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(act).result()


@contextmanager
def serving(app: Any) -> Iterator[str]:
    """Serve an application; yield its address."""
    uvicorn = pytest.importorskip("uvicorn")
    from plantain.review.serving import listen

    opened = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{opened.getsockname()[1]}"
    finally:  # a test that fails must not leave the process waiting for the server
        server.should_exit = True
        thread.join()


@contextmanager
def running(study: Study) -> Iterator[tuple[Ratings, str]]:
    from plantain.review.web.server import create_app

    ratings = Ratings.open(study)
    with serving(create_app(study, ratings, hosts=frozenset({"127.0.0.1"}))) as address:
        yield ratings, address
    ratings.close()


class Screen:
    """A page with its requests, errors and console; `data-turn` counts the views that it has shown."""

    def __init__(self, browser: Any, width: int, height: int, **context: object) -> None:
        self.page = browser.new_context(viewport={"width": width, "height": height}, **context).new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def then(self, act: Callable[..., object], *args: object) -> None:
        """Act, and wait until the page has shown something new; no clock is involved."""
        turn = self.page.evaluate("document.body.dataset.turn ?? ''")
        act(*args)
        self.page.wait_for_selector(f'body[data-turn]:not([data-turn="{turn}"])', state="attached")

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)


@contextmanager
def at_first_item(browser: Any, study: Study) -> Iterator[tuple[Screen, Ratings]]:
    """Open a new reader's page at the first item of a study."""
    with running(study) as (ratings, address):
        screen = Screen(browser, 1280, 800)
        screen.then(screen.page.goto, f"{address}/enter#{ratings.invite()[1]}")
        screen.then(screen.page.keyboard.press, "Enter")
        yield screen, ratings
        assert screen.complaints == []
        screen.page.context.close()


SIZES_AND_THEMES = [(1280, "dark"), (1280, "light"), (400, "dark"), (400, "light")]

FIRST_SIGHT = (Path(__file__).parent / "first_sight.js").read_text("utf-8")

IN_VIEW = """(selector) => {
  const all = [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility());
  return all.length > 0 && all.every((one) => { const box = one.getBoundingClientRect();
    const top = document.elementFromPoint(box.left + Math.min(5, box.width / 2), box.bottom - 2);
    return box.top >= 0 && box.bottom <= innerHeight && (one.contains(top) || top?.contains(one)); }); }"""
"""True if everything that the selector matches is inside the window and covered by nothing."""


@contextmanager
def window(browser: Any, width: int, height: int, theme: str) -> Iterator[Any]:
    """Open a window in a theme: of the viewer and reader studies by its button, of other pages by the system's."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce"
    )
    context.add_init_script(f"try {{ localStorage.setItem('theme', '{theme}') }} catch {{}}")
    yield context.new_page()
    context.close()


def assert_first_sight(page: Any, image: bool = True, large: float = 3) -> None:
    """`large` is the least contrast of large letters: 3 by WCAG 2.2, 1.4.3, as small ones have 4.5."""
    sight = page.evaluate(FIRST_SIGHT, large)
    assert sight["wide"] <= 0 and sight["narrow"] == [] and sight["dim"] == [] and sight["black"] == 0, sight
    assert not image or sight["first"] < 900
