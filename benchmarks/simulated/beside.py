"""An application served beside the benchmark that asks it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from plantain.review.serving import listen


def served(app: FastAPI) -> tuple[str, Callable[[], None]]:
    """(address, how to stop it)."""
    held = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [held]})
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join()

    return f"http://127.0.0.1:{held.getsockname()[1]}", stop
