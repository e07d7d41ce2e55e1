"""`plantain review serve`: one server a study, on loopback unless told otherwise, stopped by Ctrl-C without loss."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from plantain.files.installing import install_line
from plantain.journal.disk.lock import RunLock
from plantain.journal.errors import RunLocked
from plantain.records import InputError
from plantain.review.ratings import ADMINISTRATOR, Ratings
from plantain.review.study import Study, open_study

PORT = 8765
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Served:
    """What is told when a server stands: `administrator` is the link of whoever started it."""

    url: str
    administrator: str
    readers: int


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def link(base: str, token: str) -> str:
    """A reader's own address. What follows # is sent to no server by itself, so that no log can hold it."""
    return f"{base.rstrip('/')}/enter#{token}"


def check_host(study: Study, host: str, agreement: bool) -> None:
    """Refuses to serve credentialed pictures beyond this machine without `--agreement`. Raises InputError."""
    if study.credentialed and not is_loopback(host) and not agreement:
        raise InputError(
            f"--host {host}: {study.folder} holds pictures that are credentialed or of unknown licence; beyond this "
            "machine they are served only with --agreement, to readers who confirm it by name"
        )


def serve(
    folder: Path, *, host: str, port: int, agreement: bool, url: str, announce: Callable[[Served], None]
) -> None:
    """Serves until it is interrupted. `announce` is called once the port is held.

    Args:
        url: where readers reach it, through a proxy that speaks TLS; "" for the address itself.

    Raises:
        InputError: no study, another server on it, a port in use, the extra `review` not installed.
    """
    try:
        import uvicorn

        from plantain.review.room.server import create_app
    except ImportError as error:
        raise InputError(f"serving needs {error.name}: {install_line('review')}") from error
    if url and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise InputError(f"--url {url!r}: the address that readers see, e.g. https://read.example.org")
    study = open_study(folder)
    check_host(study, host, agreement)
    try:
        lock = RunLock(folder)
    except RunLocked as error:
        raise InputError(f"{folder}: is being served already ({error})") from error
    ratings = Ratings.open(study)
    try:
        held = listen(host, port)
        base = f"http://{host if ':' not in host else f'[{host}]'}:{held.getsockname()[1]}"
        _, token = ratings.invite(ADMINISTRATOR)
        public = urlsplit(url)
        names = {"127.0.0.1", "localhost", "[::1]", host, public.hostname or host}
        known = frozenset(names) if is_loopback(host) or url else frozenset[str]()
        app = create_app(study, ratings, hosts=known, secure=public.scheme == "https")
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, lifespan="off"
        )
        announce(Served(url or base, link(url or base, token), len(ratings.readers())))
        uvicorn.Server(config).run(sockets=[held])
    finally:
        ratings.close()
        lock.release()


def listen(host: str, port: int) -> socket.socket:
    """The port, held before anybody is told of it; 0: any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((host, port))
    except OSError as error:
        held.close()
        raise InputError(f"--port {port}: {host} cannot be used: {error.strerror}; name another") from error
    held.listen(128)
    return held
