"""Serve a study or the viewer on one port, on loopback by default, until Ctrl-C."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from plantain.files.installed import require_extra
from plantain.journal.connect import RunLock
from plantain.journal.rows import RunLocked
from plantain.records import InputError
from plantain.review.ratings import Ratings
from plantain.review.study import Study, open_study

if TYPE_CHECKING:
    from fastapi import FastAPI

    from plantain.review.web.run_view import RunView
    from plantain.review.web.study_view import StudyView

LOOPBACK = "127.0.0.1"


def is_loopback(host: str) -> bool:
    """Return True if a host name or IP address is only reachable from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def link(base: str, token: str) -> str:
    """Return a reader's personal URL. The token follows a #, which browsers do not send, so no log contains it."""
    return f"{base.rstrip('/')}/enter#{token}"


def check_host(study: Study, host: str, agreement: bool) -> None:
    """Check that credentialed images are only served locally or with `agreement`. Raise InputError otherwise."""
    if study.credentialed and not is_loopback(host) and not agreement:
        raise InputError(
            f"--host {host}: {study.folder} has images that are credentialed or of unknown licence; beyond this "
            "machine they are served only with --agreement, to readers who confirm it by name"
        )


def serve(
    folder: Path,
    *,
    host: str,
    port: int,
    agreement: bool,
    url: str,
    announce: Callable[[str, int], None],
) -> None:
    """Serve a study until interrupted.

    Args:
        host, port: address of the server.
        agreement: True if credentialed images may be served to readers who confirm the data use agreement.
        announce: called once the port is open, with its address and the number of readers.
        url: the address that readers use, through a proxy with TLS; "" for the server's own.

    Raises:
        InputError: not a study, already served, credentialed images would leave this machine without `agreement`, the
            port is in use, or the extra `review` is not installed.
    """
    require_extra("plantain review serve", "review", "fastapi", "uvicorn")
    from plantain.review.web.server import create_app

    if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise InputError(f"--url {url!r}: the address that readers see, e.g. https://read.example.org")
    study = open_study(folder)
    check_host(study, host, agreement)
    try:
        lock = RunLock(folder)
    except RunLocked as error:
        raise InputError(f"{folder}: is already being served ({error})") from error
    ratings = Ratings.open(study)
    try:
        opened = listen(host, port)
        base = f"http://{host if ':' not in host else f'[{host}]'}:{opened.getsockname()[1]}"
        public = urlsplit(url)
        names = {LOOPBACK, "localhost", "[::1]", host, public.hostname or host}
        known = frozenset(names) if is_loopback(host) or url else frozenset[str]()
        app = create_app(study, ratings, hosts=known, secure=public.scheme == "https")
        announce(url or base, len(ratings.readers()))
        _run(app, opened)
    finally:
        ratings.close()
        lock.release()


def view_until_stopped(view: RunView | StudyView, port: int, announce: Callable[[str], None]) -> None:
    """Serve the viewer on 127.0.0.1 until interrupted; once the port is open, call `announce` with the address."""
    from plantain.review.web.server import create_viewer

    opened = listen(LOOPBACK, port)
    announce(f"http://{LOOPBACK}:{opened.getsockname()[1]}/")
    _run(create_viewer(view), opened)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes any free port. Raise InputError if the port cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
    except OSError as error:
        opened.close()
        raise InputError(f"--port {port}: {host} cannot be used: {error.strerror}; use another") from error
    opened.listen(128)
    return opened


REQUEST_S = 20.0
"""Seconds in which a request has to arrive whole: half of one would hold its connection for ever."""


def _run(app: FastAPI, opened: socket.socket) -> None:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedProtocol(H11Protocol):
        """Closes a connection whose request does not arrive whole in time."""

        deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self.watch(ended=True)

        def watch(self, *, ended: bool = False) -> None:
            if not ended and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
                self.deadline = self.deadline or self.loop.call_later(REQUEST_S, self.transport.abort)
            elif self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

    config = uvicorn.Config(
        app, http=TimedProtocol, log_level="warning", access_log=False, server_header=False, lifespan="off"
    )
    uvicorn.Server(config).run(sockets=[opened])
