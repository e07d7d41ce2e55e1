"""`plantain review serve`: serve a study to its readers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plantain.cli.terminal.application import application
from plantain.records.counts import counted

if TYPE_CHECKING:
    from plantain.review.serving import Served

app = application()


@app.command(epilog="Example: plantain review serve studies/pilot")
def serve(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of the study.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8765,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. With another than 127.0.0.1 others reach the study: put TLS in front "
            "(docs/design/review.md has files for caddy and nginx)."
        ),
    ] = "127.0.0.1",
    agreement: Annotated[
        bool,
        typer.Option(
            "--agreement",
            help="Serve credentialed images beyond this machine, to readers who confirm by name.",
        ),
    ] = False,
    url: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where readers reach it through a proxy, e.g. https://read.example.org."
        ),
    ] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print address and administrator's link as JSON.")
    ] = False,
) -> None:
    """Serve a study until Ctrl-C. Every answer is stored before the next case appears; a kill loses none."""
    from plantain.review.serving import is_loopback
    from plantain.review.serving import serve as run

    def announce(served: Served) -> None:
        if as_json:
            import orjson

            document = {"url": served.url, "administrator": served.administrator, "readers": served.readers}
            print(orjson.dumps(document).decode(), flush=True)
            return
        print(f"study: {served.url}   ({counted(served.readers, 'reader')} invited)")
        print(f"administrator: {served.administrator}")
        if not is_loopback(host):
            print(
                f"plantain: --host {host}: others on the network can reach this study, and without TLS they can "
                "read its traffic; see docs/design/review.md",
                file=sys.stderr,
            )
        print("Ctrl-C stops; nothing is lost", flush=True)

    run(study, host=host, port=port, agreement=agreement, url=url, announce=announce)
