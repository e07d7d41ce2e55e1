"""`plantain review serve`: opens the reading room."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from plantain.cli.terminal.options import AsJson, Port, StudyArgument
from plantain.records.counts import counted

if TYPE_CHECKING:
    from plantain.review.serving import Served


def serve(
    study: StudyArgument,
    port: Port = 8765,
    host: str = typer.Option(
        "127.0.0.1",
        help="Address to listen on. Anything but 127.0.0.1 lets others reach the room: put TLS in front "
        "(docs/design/review.md has files for caddy and nginx).",
    ),
    agreement: bool = typer.Option(
        False,
        "--agreement",
        help="Serve credentialed pictures beyond this machine, to readers who confirm by name.",
    ),
    url: str = typer.Option(
        "", metavar="URL", help="Where readers reach it through a proxy, e.g. https://read.example.org."
    ),
    as_json: AsJson = False,
) -> None:
    """Serve a study until Ctrl-C. Every answer is stored before the next case appears; a kill loses none.

    Example: plantain review serve studies/pilot
    """
    from plantain.review.serving import is_loopback
    from plantain.review.serving import serve as run

    def announce(served: Served) -> None:
        if as_json:
            import orjson

            document = {"url": served.url, "administrator": served.administrator, "readers": served.readers}
            print(orjson.dumps(document).decode(), flush=True)
            return
        print(f"reading room: {served.url}   ({counted(served.readers, 'reader')} invited)")
        print(f"administrator: {served.administrator}")
        if not is_loopback(host):
            print(
                f"plantain: --host {host}: others on the network can reach this room, and without TLS they can "
                "read along; see docs/design/review.md",
                file=sys.stderr,
            )
        print("Ctrl-C stops; nothing is lost", flush=True)

    run(study, host=host, port=port, agreement=agreement, url=url, announce=announce)
