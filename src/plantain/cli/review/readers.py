"""`plantain review invite` and `serve`: readers come to a study."""

from __future__ import annotations

import sys
from contextlib import closing

import typer

from plantain.cli.terminal.options import AsJson, Port, StudyArgument
from plantain.cli.terminal.tables import print_json
from plantain.records.messages import command_line, counted, next_line
from plantain.review.ratings import Ratings
from plantain.review.study import open_study


def invite(
    study: StudyArgument,
    readers: int = typer.Option(1, min=1, max=1000, help="How many new readers."),
    url: str = typer.Option("http://127.0.0.1:8765", metavar="URL", help="Where readers reach it."),
    as_json: AsJson = False,
) -> None:
    """Make each new reader a link of their own. A link is shown once: only its hash is kept.

    Example: plantain review invite studies/pilot --readers 5
    """
    from plantain.review.serving import link

    with closing(Ratings.open(open_study(study))) as ratings:
        made = [ratings.invite() for _ in range(readers)]
    links = [{"reader": reader.code, "link": link(url, token)} for reader, token in made]
    if as_json:
        print_json({"invited": links})
        return
    for one in links:
        print(f"{one['reader']}  {one['link']}")
    print(next_line("review", "serve", study))


def serve(
    study: StudyArgument,
    port: Port = 8765,
    host: str = typer.Option("127.0.0.1", help="Address; others than 127.0.0.1 need TLS."),
    agreement: bool = typer.Option(
        False, "--agreement", help="Serve credentialed images to readers who confirm."
    ),
    url: str = typer.Option("", metavar="URL", help="Where readers reach it, behind a proxy."),
    as_json: AsJson = False,
) -> None:
    """Serve a study until Ctrl-C. Every answer is stored before the next case appears; a kill loses none.

    Example: plantain review serve studies/pilot
    """
    from plantain.review.serving import is_loopback
    from plantain.review.serving import serve as run

    def announce(address: str, readers: int) -> None:
        if as_json:
            import orjson

            print(orjson.dumps({"url": address, "readers": readers}).decode(), flush=True)
            return
        how = "" if readers else f"; invite some: {command_line('review', 'invite', study)}"
        print(f"study: {address}   ({counted(readers, 'reader')} invited{how})")
        if not is_loopback(host):
            print(
                f"plantain: --host {host}: others on the network can reach this study, and without TLS they can "
                "read its traffic; see docs/design/review.md",
                file=sys.stderr,
            )
        print("Ctrl-C stops; nothing is lost", flush=True)

    run(study, host=host, port=port, agreement=agreement, url=url, announce=announce)
