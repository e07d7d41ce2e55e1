"""The status of a run: calls, money and time, and text on how and why its tasks ended.

Calls, money and time are never part of an output that must be reproducible.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from plantain.journal.connect import last_holder
from plantain.journal.reader import JournalReader
from plantain.journal.rows import TaskRow, clean_text
from plantain.pixels.decode import one_line
from plantain.records import TaskState
from plantain.records.messages import command_line, counted, fold

_REPORTED = "json_extract(usage, '$.reported_usd')"

BY_STEP = "CASE step WHEN 'write' THEN 1 WHEN 'edit' THEN 2 ELSE 3 END"
"""SQL that orders rows as a round orders its steps."""

NAMED = 5
"""Failed, undecided and stopped tasks of a state that a command lists."""

UNSUCCESSFUL = (TaskState.FAILED, TaskState.UNDECIDED, TaskState.STOPPED)
"""States that a user asks about first."""


@dataclass(frozen=True, slots=True)
class StepCost:
    """Cost of one step with one model.

    Attributes:
        served_models: names of the models that answered, as the provider states them.
        tries: number of settled tries; `final` of them gave the answer that was used.
        cost_usd: sum over the `priced` tries, whose cost is known; None without any.
        mean_latency_s: mean over the tries that were timed; None without any.
        reported_usd: sum of the costs that the server reported; None without any.
    """

    step: str
    model: str
    served_models: tuple[str, ...]
    tries: int
    final: int
    cost_usd: float | None
    priced: int
    mean_latency_s: float | None
    reported_usd: float | None


def costs(reader: JournalReader) -> tuple[StepCost, ...]:
    """Return tries, cost and latency per step and model, over all generations."""
    return tuple(
        StepCost(step, model, tuple(sorted(filter(None, (served or "").split(",")))), *rest)
        for step, model, served, *rest in reader.connection.execute(
            "SELECT step, model, group_concat(DISTINCT nullif(served_model, '')), count(*), sum(final = 1),"
            " sum(cost_usd), count(cost_usd), avg(latency_s), "
            f"sum({_REPORTED}) FROM call WHERE state = 'settled' GROUP BY 1, 2"
            f" ORDER BY {BY_STEP}, 2"
        )
    )


def reported_cost(reader: JournalReader) -> dict[str, object] | None:
    """Compare the costs that servers reported with those computed from prices; None if no call has a reported cost.

    `usd` sums the reported costs, `computed_usd` the computed ones of the same calls; `differs` is True if they differ
    by 0.0001 USD or more, or if a computed one is unknown.
    """
    usd, computed, calls, known = reader.connection.execute(
        f"SELECT sum({_REPORTED}), total(cost_usd), count(*), count(cost_usd) FROM call WHERE {_REPORTED} IS NOT NULL"
    ).fetchone()
    if not calls:
        return None
    differs = known < calls or round(abs(usd - computed), 6) >= 0.0001
    return {"usd": round(usd, 6), "computed_usd": round(computed, 6), "calls": calls, "differs": differs}


def spent_by(reader: JournalReader, models: Collection[str]) -> tuple[float | None, float | None]:
    """Return (US dollars of these models' answers, None unless all are known; mean seconds per answer or None)."""
    cost, priced, settled, seconds = reader.connection.execute(
        "SELECT sum(cost_usd), count(cost_usd), count(*), avg(latency_s) FROM call "
        f"WHERE state = 'settled' AND model IN ({', '.join('?' * len(models))})",
        sorted(models),
    ).fetchone()
    known = settled > 0 and priced == settled
    return (round(cost, 6) if known else None), (None if seconds is None else round(seconds, 3))


def put_back(reader: JournalReader) -> tuple[int, float, int]:
    """Return (current restored edits, their mean restored share in [0, 1], edits that were not restored)."""
    row = reader.connection.execute(
        "SELECT count(s.value), coalesce(avg(s.value), 0.0), count(*) - count(s.value) FROM score s"
        " JOIN attempt a USING (task, generation, round) WHERE s.metric = 'restored' AND a.superseded = 0"
    ).fetchone()
    return int(row[0]), float(row[1]), int(row[2])


def status_summary(reader: JournalReader) -> dict[str, object]:
    """Return the state of a run as JSON values, most of those that `plantain status --json` prints.

    `tasks` and `rounds` count tasks of every kind (`rounds`: successes by the round that succeeded); `attempts` those
    of current generations; `calls.made` and `outcomes` all settled tries; `calls.replayed` answers reused from the
    journal; `cost_usd` sums the known costs.
    """
    connection = reader.connection
    counts = reader.counts()
    outcomes = {outcome.value: n for outcome, n in reader.outcomes().items()}
    unpriced = "SELECT count(*) FROM call WHERE outcome IS NOT NULL AND cost_usd IS NULL"
    won = "SELECT round, count(*) FROM task WHERE state = 'success' GROUP BY round ORDER BY round"
    (replayed,) = connection.execute("SELECT TOTAL(replayed) FROM session").fetchone()
    report = reader.run / "report.html"
    return {
        "tasks": {"total": sum(counts.values()), **{state.value: counts[state] for state in TaskState}},
        "rounds": {str(number): n for number, n in connection.execute(won)},
        "attempts": reader.attempt_count(),
        "attempts_superseded": reader.attempt_count(superseded=True),
        "calls": {
            "made": sum(outcomes.values()),
            "replayed": int(replayed),
            "open": len(reader.open_calls()),
        },
        "outcomes": outcomes,
        "cost_usd": round(reader.spent_usd(), 6),
        "cost_reported": reported_cost(reader),
        "calls_of_unknown_cost": connection.execute(unpriced).fetchone()[0],
        "modalities": [m for (m,) in connection.execute("SELECT DISTINCT modality FROM task ORDER BY 1")],
        "report": clean_text(str(report)) if report.exists() else None,
        "not_closed": not_closed(reader),
    }


def why_not_done(reader: JournalReader) -> list[tuple[TaskState, str, int]]:
    """Return (state, reason, number of tasks) of undecided, not applicable and stopped tasks, commonest first."""
    rows = reader.connection.execute(
        "SELECT state, reason, count(*) FROM task WHERE state IN ('undecided', 'not_applicable', 'stopped')"
        " AND reason <> '' GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
    )
    return [(TaskState(state), reason, n) for state, reason, n in rows]


def not_closed(reader: JournalReader) -> str:
    """Return a warning if a run's last process was killed; "" if it ended normally, or still runs on this machine.

    A process on another machine counts as killed. A kill loses no recorded result, but a copy of the run made during a
    build may miss the last commits; the warning then states how many stored images have no record.
    """
    sessions = [(session.pid, session.host, session.ended_at) for session in reader.sessions()]
    pid, host = last_holder(reader.run) or (sessions[-1][:2] if sessions else (0, ""))
    ends = [ended for *process, ended in sessions if process == [pid, host]]
    if not pid or (ends and ends[-1] is not None) or _runs_here(pid, host):
        return ""
    run = reader.connection.execute
    named = {sha256 for (sha256,) in run("SELECT sha256 FROM blob")}
    unnamed = len({name for name in reader.blobs.names() if not name.startswith(".")} - named)
    if not ends and not unnamed:
        return ""  # it held the run for something else, such as a withdrawal
    (latest,) = run("SELECT coalesce(max(started_at), 'none') FROM call").fetchone()
    return (
        f"process {pid} on {host} ended without closing the run: the last recorded call started at {latest}, "
        f"{counted(len(reader.open_calls()), 'call has', 'calls have')} no recorded answer, "
        f"{counted(unnamed, 'stored image is', 'stored images are')} in no record"
        + ("; if this is a copy, its log may have been cut" if unnamed else "")
    )


def _runs_here(pid: int, host: str) -> bool:
    if host != socket.gethostname():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(frozen=True, slots=True)
class ListedTask:
    """One task of a list, with the reason why it did not succeed; "" if it did."""

    id: str
    state: str
    modality: str
    finding: str
    direction: str
    round: int
    why: str

    @property
    def line(self) -> str:
        """Format the task for a terminal, e.g. "3f2a… failed in round 5: add Edema: realism (blending artefact)"."""
        where = f" in round {self.round}" if self.round else ""
        why = f": {self.why}" if self.why else ""
        return f"{self.id} {self.state.replace('_', ' ')}{where}: {self.direction} {self.finding}{why}"


@dataclass(frozen=True, slots=True)
class Unsuccessful:
    """Failed, undecided and stopped tasks: the first ones of each state by id, and their numbers by state."""

    tasks: tuple[ListedTask, ...]
    counts: tuple[tuple[str, int], ...]

    def lines(self, run: Path) -> Iterator[str]:
        """Yield a line for each named task, and for each state with more tasks the command to list them."""
        for state, count in self.counts:
            shown = [task for task in self.tasks if task.state == state]
            yield from (one_line(task.line) for task in shown)
            if count > len(shown):
                more = command_line("show", run, "--state", state)
                yield one_line(f"and {count - len(shown)} more {state}: {more}")


def listed(
    reader: JournalReader, states: Sequence[TaskState], findings: Sequence[str] = (), direction: str = ""
) -> Iterator[ListedTask]:
    """Yield the run's tasks, by state if `states` are given, else by id; an empty filter sets no condition.

    Findings match by letters and digits.
    """
    names = set(map(fold, findings))
    for state in states or (None,):
        for row in reader.tasks(state):
            if (not names or fold(row.task.finding) in names) and direction in ("", row.task.direction.value):
                yield _listed(reader, row)


def unsuccessful(reader: JournalReader, most: int = NAMED) -> Unsuccessful:
    """Return failed, undecided and stopped tasks, at most `most` of each state."""
    counts = reader.counts()
    tasks = [_listed(reader, row) for state in UNSUCCESSFUL for row in islice(reader.tasks(state), most)]
    return Unsuccessful(tuple(tasks), tuple((state.value, counts[state]) for state in UNSUCCESSFUL))


def tasks_line(summary: dict[str, object]) -> str:
    """Format the tasks of a `status_summary` in one line: "28 tasks: 22 success, 0 failed, 6 not applicable"."""
    tasks = summary["tasks"]
    assert isinstance(tasks, dict)
    always = ("success", "failed")
    parts = [f"{tasks[state]} {state}" for state in always]
    parts += [
        f"{n} {state.replace('_', ' ')}"
        for state, n in tasks.items()
        if n and state not in (*always, "total")
    ]
    return f"{counted(tasks['total'], 'task')}: {', '.join(parts)}"


def reasons(reader: JournalReader, most: int = 4) -> list[str]:
    """Return the `most` frequent reasons of tasks without a result, one line each, and one line for all others."""
    rows = why_not_done(reader)
    lines = [f"  {n} {state.replace('_', ' ')}: {one_line(reason)}" for state, reason, n in rows[:most]]
    if rest := sum(n for _, _, n in rows[most:]):
        lines.append(f"  {counted(rest, 'task')} for other reasons, which the report lists")
    return lines


def _listed(reader: JournalReader, row: TaskRow) -> ListedTask:
    task = row.task
    about = (task.modality, task.finding, task.direction.value, row.round)
    return ListedTask(row.id, row.state.value, *about, _why(reader, row))


def _why(reader: JournalReader, row: TaskRow) -> str:
    """Return the task's reason; of an imported task that failed, the failed criteria of its last judged edit."""
    if row.reason or row.state is not TaskState.FAILED:
        return row.reason
    verdicts = [one.verdict for one in reader.attempts(row.id, row.generation) if one.verdict is not None]
    return verdicts[-1].why_not if verdicts else ""
