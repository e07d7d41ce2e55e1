"""`plantain run consent`: what a run has sent where, under which agreement, for those who answer for the images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import orjson

from plantain.cli.terminal.options import AsJson, RunArgument
from plantain.journal import JournalReader
from plantain.journal.sending import connections, sent_by_address, sent_with_sources
from plantain.records.counts import counted
from plantain.runs.engine import stored_state


def consent(run: RunArgument, as_json: AsJson = False) -> None:
    """What left this machine: for each address and agreement, how many pictures of which datasets were sent to it.

    Recorded before each request goes out: the SHA-256 of the very bytes, and the IP address really connected to (a
    proxy's, where one stands between). Models that run here are not in it. Workers of a Ray cluster count as the
    owner's own machines: no agreement is asked for them, and one line says that pictures went to them.

    Example: plantain run consent runs/cxr-pilot
    """
    with JournalReader.open(run) as reader:
        ips = connections(reader)
        engine = stored_state(reader)
        cluster = None if engine is None else str(engine.get("address", "an address that was not recorded"))
        summary = sent_by_address(reader)
        if as_json:
            for line in summary:
                line["connected_to"] = ips.get(str(line["address"]), [])
            _print_json(reader, summary, cluster)
            return
    if cluster is not None:
        print(
            f"pictures went to workers of the Ray cluster at {cluster}, which counts as the owner's own machines"
        )
    if not summary:
        print("nothing was sent to a provider" if cluster else "nothing was sent beyond this machine")
        return
    for line in summary:
        connected = _connected(ips.get(str(line["address"]), []))
        print(
            f"{line['model']} at {line['address']}{connected}, under {line['agreement']}:\n"
            f"  {line['dataset']} ({line['licence'] or 'licence unknown'}): {counted(line['images'], 'image')}, "
            f"{counted(line['pictures'], 'picture')}, in {counted(line['requests'], 'request')} from "
            f"{line['from']} to {line['to']}"
        )


def _print_json(reader: JournalReader, summary: list[dict[str, object]], cluster: str | None) -> None:
    """Print one object, its many rows one by one: they do not fit in memory together."""
    rest = orjson.dumps({"summary": summary, "cluster": cluster}, option=orjson.OPT_INDENT_2).decode()
    print('{\n  "sent": [', end="")
    for number, (sent, dataset, licence) in enumerate(sent_with_sources(reader)):
        row = orjson.dumps({**asdict(sent), "dataset": dataset, "licence": licence}).decode()
        print(f"{',' if number else ''}\n    {row}", end="")
    print(f"\n  ],{rest[1:]}")


def _connected(ips: Sequence[str]) -> str:
    return f" (connected to {', '.join(ips)})" if ips else ""
