"""`plantain status`: progress of a run, also during a build."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table

from plantain.cli.terminal.options import AsJson, RunArgument
from plantain.cli.terminal.tables import print_json, print_table
from plantain.journal import JournalReader
from plantain.journal.batches import jobs_waiting
from plantain.journal.questions.accepted import accepted_rows, turn_rows
from plantain.journal.questions.status import not_closed, reasons, status_summary, unsuccessful, why_not_done
from plantain.journal.statements import NO_VERDICT
from plantain.pipeline.plan import share_of
from plantain.records import TaskKind, TaskState
from plantain.records.messages import COMMANDS, command_line, counted, next_line, typed_before
from plantain.runs.terms import costs_of


def status(run: RunArgument, as_json: AsJson = False) -> None:
    """Print the progress of a run. Read-only, also works during a build.

    Example: plantain status runs/cxr-pilot
    """
    with JournalReader.open(run) as reader:
        document = status_summary(reader)
        jobs = jobs_waiting(reader)
        name = reader.header.name
        causes = reasons(reader)
        ended = unsuccessful(reader)
        held = list(costs_of(reader).values())
        share = share_of(reader)
        accepted = accepted_rows(reader)
        turns = turn_rows(reader)
        resumes = resume_lines(reader) + unjudged_lines(reader)
        pages = ("bench", "table") if any(reader.counts(TaskKind.BENCH).values()) else ("report",)
    document |= {
        **({} if share is None else {"shard": str(share.shard), "tasks_of_plan": share.of}),
        "held_usd": round(sum(costs.held_usd for costs in held), 6),
        "calls_held": sum(c.lost for c in held),
        "accepted": [asdict(row) for row in accepted],
        **({"turns": [asdict(row) for row in turns]} if turns else {}),
    }
    if as_json:
        failed = {"unsuccessful": [asdict(task) for task in ended.tasks]}
        print_json({**document, "batch_jobs": jobs, **failed})
        return
    table = Table(title=f"{name} ({run})", show_header=False)
    table.add_column("what", style="bold")
    table.add_column("how many", overflow="fold")
    if share is not None:
        table.add_row("shard", f"{share.shard}: {share.tasks:,} of {counted(share.of, 'task')}")
    for section in ("tasks", "rounds", "calls", "outcomes"):
        values = document[section]
        assert isinstance(values, dict)
        parts = (
            f"round {key}: {n}" if section == "rounds" else f"{n} {key.replace('_', ' ')}"
            for key, n in values.items()
        )
        table.add_row("success in" if section == "rounds" else section, ", ".join(parts) or "none")
        if section == "tasks" and causes:
            table.add_row("", "\n".join(cause.strip() for cause in causes))
    if turns:
        table.add_row("turns", "\n".join(map(str, turns)))
    for row in accepted:
        found = f"{row.accepted:,} of {row.required:,} accepted, {row.tried:,} tried: {row.why}"
        table.add_row(f"{row.direction} {row.finding}", found)
    if document["not_closed"]:
        table.add_row("journal", str(document["not_closed"]))
    table.add_row("attempts", str(document["attempts"]))
    cost = document["cost_usd"]
    table.add_row("cost", "unknown" if cost is None else f"${cost:.4f}")
    reported = document["cost_reported"]
    if isinstance(reported, dict) and reported["differs"]:
        calls = counted(reported["calls"], "call")
        ours = f"computed by their prices: ${reported['computed_usd']:.4f}"
        table.add_row("reported cost", f"${reported['usd']:.4f} for {calls}; {ours}")
    if document["held_usd"]:
        table.add_row(
            "held",
            f"${document['held_usd']:.4f} for {counted(document['calls_held'], 'call')} sent whose answer is unknown",
        )
    for job in jobs:
        trouble = f" ({job['trouble']})" if job["trouble"] else ""
        table.add_row(
            "batch job",
            f"{job['id'] or job['key']}: {job['state']}, {counted(job['requests'], 'request')}{trouble}",
        )
    print_table(table)
    if document["held_usd"]:
        print(f"held calls, once billed: {command_line('run', 'retry', run, '--settle-held', 'USD')}")
    print(*ended.lines(run), *resumes, next_line(*pages, run), sep="\n")


def unjudged_lines(reader: JournalReader) -> list[str]:
    """Return a line with the command that judges imported edits, if some have no verdict."""
    unjudged = sum(n for _, why, n in why_not_done(reader) if why == NO_VERDICT)
    judge = command_line("judge", "rejudge", reader.run, "--judge", "offline/instruments", "--decisive")
    counts = reader.counts()
    decided = counts[TaskState.SUCCESS] + counts[TaskState.FAILED]
    also = f" (it then decides the other {decided}, too)" if decided else ""
    line = f"{counted(unjudged, 'edit has', 'edits have')} no verdict yet; judge with: {judge}{also}"
    return [line] if unjudged else []


def resume_lines(reader: JournalReader) -> list[str]:
    """Return a line with the command that resumes the run, if tasks are pending and no process works on them."""
    again = typed_before(reader.meta(COMMANDS), reader.run, "build", "demo", "bench generate", "bench demo")
    pending = reader.counts()[TaskState.PENDING]
    if not again or not pending or (reader.sessions()[-1].ended_at is None and not not_closed(reader)):
        return []
    return [f"{counted(pending, 'task is', 'tasks are')} pending; resume with: {again[0]}"]
