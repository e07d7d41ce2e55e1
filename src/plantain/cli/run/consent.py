"""`plantain run consent`: the images that a run sent, by address and agreement, for the data's owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import orjson

from plantain.cli.terminal.options import AsJson, RunArgument
from plantain.journal import JournalReader
from plantain.journal.sending import connections, sent_by_address, sent_with_sources
from plantain.records.messages import counted
from plantain.runs.engine import stored_state


def consent(run: RunArgument, as_json: AsJson = False) -> None:
    """List the images that left this machine, by dataset, address and agreement.

    The SHA-256 of the sent bytes and the connected IP address (or a proxy's) are recorded before each request. Local
    models are not listed. Workers of a Ray cluster count as the owner's machines: one line names the cluster.

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
            f"images were sent to workers of the Ray cluster at {cluster}, which count as the owner's machines"
        )
    if not summary:
        print("nothing was sent to a provider" if cluster else "nothing was sent beyond this machine")
        return
    for line in summary:
        connected = _connected(ips.get(str(line["address"]), []))
        print(
            f"{line['model']} at {line['address']}{connected}, under {line['agreement']}:\n"
            f"  {line['dataset']} ({line['licence'] or 'licence unknown'}): {counted(line['images'], 'image')}, "
            f"{counted(line['files'], 'file')} in {counted(line['requests'], 'request')} from "
            f"{line['from']} to {line['to']}"
        )


def _print_json(reader: JournalReader, summary: list[dict[str, object]], cluster: str | None) -> None:
    """Print one JSON object row by row: all rows may not fit in memory."""
    rest = orjson.dumps({"summary": summary, "cluster": cluster}, option=orjson.OPT_INDENT_2).decode()
    print('{\n  "sent": [', end="")
    for number, (sent, dataset, licence) in enumerate(sent_with_sources(reader)):
        row = orjson.dumps({**asdict(sent), "dataset": dataset, "licence": licence}).decode()
        print(f"{',' if number else ''}\n    {row}", end="")
    print(f"\n  ],{rest[1:]}")


def _connected(ips: Sequence[str]) -> str:
    return f" (connected to {', '.join(ips)})" if ips else ""
