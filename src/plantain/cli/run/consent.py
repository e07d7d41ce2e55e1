"""`plantain run consent`: what a run has sent where, under which agreement, for those who answer for the images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
import typer

from plantain.cli.terminal.application import application
from plantain.journal import JournalReader
from plantain.journal.sending import SentPicture, connections, sent_pictures
from plantain.records.counts import counted
from plantain.runs.engine import stored_state

app = application()


@app.command()
def consent(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="a run's folder")],
    as_json: Annotated[bool, typer.Option("--json", help="every picture in every request, as JSON")] = False,
) -> None:
    """What left this machine: for each address and agreement, how many pictures of which datasets were sent to it.

    Recorded before each request goes out: the SHA-256 of the very bytes, and the IP address really connected to (a
    proxy's, where one stands between). Models that run here are not in it. Workers of a Ray cluster count as the
    owner's own machines: no agreement is asked for them, and one line says that pictures went to them.

    Example: plantain run consent runs/cxr-pilot
    """
    with JournalReader.open(run) as reader:
        rows = sent_rows(reader)
        ips = connections(reader)
        engine = stored_state(reader)
    cluster = None if engine is None else str(engine.get("address", "an address that was not recorded"))
    if as_json:
        document = {"sent": rows, "summary": summary_of(rows, ips), "cluster": cluster}
        print(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
        return
    if cluster is not None:
        print(
            f"pictures went to workers of the Ray cluster at {cluster}, which counts as the owner's own machines"
        )
    if not rows:
        print("nothing was sent to a provider" if cluster else "nothing was sent beyond this machine")
        return
    for line in summary_of(rows, ips):
        connected = _connected(ips.get(str(line["address"]), []))
        print(
            f"{line['model']} at {line['address']}{connected}, under {line['agreement']}:\n"
            f"  {line['dataset']} ({line['licence'] or 'licence unknown'}): {counted(line['images'], 'image')}, "
            f"{counted(line['pictures'], 'picture')}, in {counted(line['requests'], 'request')} from "
            f"{line['from']} to {line['to']}"
        )


def sent_rows(reader: JournalReader) -> list[dict[str, object]]:
    """Every picture in every request, with the dataset and licence of the source that shows in it."""
    known: dict[str, tuple[str, str]] = {}
    rows: list[dict[str, object]] = []
    for sent in sent_pictures(reader):
        if sent.image not in known:
            known[sent.image] = _named(reader, sent)
        dataset, licence = known[sent.image] if sent.picture else ("withdrawn since", "")
        rows.append({**asdict(sent), "dataset": dataset, "licence": licence})
    return rows


def _named(reader: JournalReader, sent: SentPicture) -> tuple[str, str]:
    """Dataset and licence of the source of a picture."""
    if not sent.image:
        return "unknown", ""
    image = reader.image(sent.image)
    return " ".join(filter(None, (image.dataset, image.version))), image.licence.value


def _connected(ips: Sequence[str]) -> str:
    return f" (connected to {', '.join(ips)})" if ips else ""


def summary_of(
    rows: Iterable[dict[str, object]], ips: Mapping[str, Sequence[str]]
) -> list[dict[str, object]]:
    """One line for each model, address, dataset, licence and agreement, with the IP addresses connected to."""
    grouped: dict[tuple[str, ...], list[dict[str, object]]] = {}
    for row in rows:
        key = tuple(str(row[name]) for name in ("model", "address", "dataset", "licence", "agreement"))
        grouped.setdefault(key, []).append(row)
    return [
        {
            "model": model,
            "address": address,
            "connected_to": list(ips.get(address, [])),
            "dataset": dataset,
            "licence": licence,
            "agreement": agreement,
            "images": len({row["image"] for row in own}),
            "pictures": len({row["picture"] for row in own}),
            "requests": len({(row["call"], row["at"]) for row in own}),
            "from": min(str(row["at"]) for row in own),
            "to": max(str(row["at"]) for row in own),
        }
        for (model, address, dataset, licence, agreement), own in sorted(grouped.items())
    ]
