"""`plantain view`: a read-only browser view of a run, a benchmark's run, a release or a study."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from plantain.cli.terminal.options import AsJson, Port
from plantain.files.installed import require_extra
from plantain.records import InputError

if TYPE_CHECKING:
    from plantain.review.web.run_view import RunView
    from plantain.review.web.study_view import StudyView


def view(
    what: Path = typer.Argument(
        ..., metavar="RUN|BENCH-RUN|RELEASE|STUDY", help="Folder; a run may still be building."
    ),
    port: Port = 8766,
    as_json: AsJson = False,
) -> None:
    """Show every task, round, verdict and call in the browser, on 127.0.0.1, until Ctrl-C. Read-only.

    Every user account on this machine can open the address while it is served.

    Example: plantain view runs/pilot
    """
    require_extra("plantain view", "review", "fastapi", "uvicorn")
    from plantain.review.serving import view_until_stopped

    def announce(address: str) -> None:
        if as_json:
            import orjson

            print(orjson.dumps({"url": address}).decode(), flush=True)
            return
        print(f"{what}: {address}\nPress Ctrl-C to stop.", flush=True)

    with ExitStack() as held:
        view_until_stopped(_opened(what, held), port, announce)


def _opened(what: Path, held: ExitStack) -> RunView | StudyView:
    from plantain.journal.connect import JOURNAL_NAME
    from plantain.review.study import STUDY
    from plantain.review.web.run_view import RunView
    from plantain.review.web.study_view import StudyView

    if (what / STUDY).is_file():
        return StudyView(what)
    if (what / JOURNAL_NAME).is_file() or any(what.glob(f"*/{JOURNAL_NAME}")):  # names the run below
        return RunView(what)
    if what.is_dir():
        from plantain.cli.review.materials import imported

        return RunView(imported(what, held), what.resolve().name)
    raise InputError(f"{what}: not a run, benchmark run, release or study")
