"""Any interleaving of operations, retries and kills, against a model of a run's required records."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from journal.examples import a_call, a_run, a_task
from plantain.journal import CallResult, Journal, verify
from plantain.journal.commit import Committer
from plantain.records import OK, Attempt, Outcome, OutcomeKind, Step, TaskState

CLOSED = [state for state in TaskState if state is not TaskState.PENDING]
OUTCOMES = [OK, Outcome(OutcomeKind.REFUSED, "policy"), Outcome(OutcomeKind.RATE_LIMITED, "wait", 2.0)]


class Run(RuleBasedStateMachine):
    """The journal on one side, dictionaries on the other."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.scratch = Path(tempfile.mkdtemp(prefix="plantain-stateful-"))
        self.openings = 0
        self.tasks: dict[str, tuple[int, TaskState, int]] = {}
        self.open: dict[int, tuple[str, int, int, int]] = {}
        self.tries: Counter[tuple[str, int, int]] = Counter()
        self.attempts: dict[tuple[str, int, int], Attempt] = {}
        self.blobs: set[str] = set()

    @initialize()
    def create(self) -> None:
        self.journal = self.loop.run_until_complete(a_run(self.scratch / "0", tasks=0))

    @rule(numbers=st.sets(st.integers(0, 5), min_size=1))
    def plan(self, numbers: set[int]) -> None:
        tasks = [a_task(number) for number in numbers]
        new = self.loop.run_until_complete(self.journal.add_tasks(tasks))
        assert new == sum(task.id not in self.tasks for task in tasks)
        for task in tasks:
            self.tasks.setdefault(task.id, (0, TaskState.PENDING, 0))

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), round=st.integers(1, 3))
    def start(self, data: st.DataObject, round: int) -> None:
        task = data.draw(st.sampled_from(sorted(self.tasks)))
        generation = self.tasks[task][0]
        self.tries[task, generation, round] += 1
        tries = self.tries[task, generation, round]
        call = a_call(task, round, Step.EDIT, tries, generation)
        self.open[self.loop.run_until_complete(self.journal.start_call(call))] = (
            task,
            generation,
            round,
            tries,
        )

    @precondition(lambda self: self.open)
    @rule(data=st.data(), outcome=st.sampled_from(OUTCOMES), image=st.binary(max_size=3))
    def settle(self, data: st.DataObject, outcome: Outcome, image: bytes) -> None:
        call = data.draw(st.sampled_from(sorted(self.open)))
        task, generation, round, _ = self.open.pop(call)
        stored = self.journal.put_blob(image, "image/png") if outcome.ok else None
        old = generation != self.tasks[task][0]
        attempt = Attempt(task, generation, round, "add", outcome, stored and stored.sha256, superseded=old)
        settlement = CallResult(
            call, outcome, outcome.ok, cost_usd=0.5, blobs=(stored,) if stored else (), attempt=attempt
        )
        self.loop.run_until_complete(self.journal.settle_call(settlement))
        self.attempts[task, generation, round] = attempt
        if stored:
            self.blobs.add(stored.sha256)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data(), state=st.sampled_from(CLOSED), round=st.integers(0, 3))
    def close_task(self, data: st.DataObject, state: TaskState, round: int) -> None:
        task = data.draw(st.sampled_from(sorted(self.tasks)))
        self.loop.run_until_complete(self.journal.close_task(task, state, round, "why"))
        self.tasks[task] = (self.tasks[task][0], state, round)

    @precondition(lambda self: self.tasks)
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sets(st.sampled_from(sorted(self.tasks)), min_size=1))
        closed = {task for task in chosen if self.tasks[task][1] is not TaskState.PENDING}
        assert self.loop.run_until_complete(self.journal.reopen_tasks(sorted(chosen))) == len(closed)
        for task in closed:
            self.tasks[task] = (self.tasks[task][0] + 1, TaskState.PENDING, 0)
        for key, attempt in self.attempts.items():
            if key[0] in closed:
                self.attempts[key] = Attempt(
                    *key, attempt.instruction, attempt.edit_outcome, attempt.edited, superseded=True
                )

    @rule(clean=st.booleans())
    def reopen_run(self, clean: bool) -> None:
        """Close and open the run, or kill it: then the folder is as it was at that moment."""
        if clean:
            self.loop.run_until_complete(self.journal.close())
            self.journal = Journal.open(self.journal.run)
        else:
            self._continue_with(self._copy())

    @precondition(lambda self: len(self.tasks) > 1)
    @rule(state=st.sampled_from(CLOSED), round=st.integers(0, 3))
    def kill_amid_many(self, state: TaskState, round: int) -> None:
        """All tasks are closed at once and the process dies at the first commit: the first ones are kept."""
        order = sorted(self.tasks)
        copies: list[Path] = []
        commit = Committer._commit

        def die(committer: Committer, group: list[Any]) -> None:
            commit(committer, group)
            if not copies:
                copies.append(self._copy())

        async def work() -> None:
            await asyncio.gather(*(self.journal.close_task(task, state, round, "kill") for task in order))

        with mock.patch.object(Committer, "_commit", die):
            self.loop.run_until_complete(work())
        self._continue_with(copies[0])
        kept = [self.journal.reader.task(task).reason == "kill" for task in order]
        assert kept[0]
        assert kept == sorted(kept, reverse=True)
        for task, there in zip(order, kept, strict=True):
            if there:
                self.tasks[task] = (self.tasks[task][0], state, round)
                self.loop.run_until_complete(self.journal.close_task(task, state, round, "why"))

    def _copy(self) -> Path:
        self.openings += 1
        folder = self.scratch / str(self.openings)
        shutil.copytree(self.journal.run, folder, ignore=shutil.ignore_patterns("*-shm"))
        return folder

    def _continue_with(self, folder: Path) -> None:
        self.loop.run_until_complete(self.journal.close())
        shutil.rmtree(self.journal.run)
        self.journal = Journal.open(folder)

    @invariant()
    def remembers_everything(self) -> None:
        if not hasattr(self, "journal"):
            return
        reader = self.journal.reader
        assert {row.id: (row.generation, row.state, row.round) for row in reader.tasks()} == self.tasks
        states = Counter(state for _, state, _ in self.tasks.values())
        assert reader.counts() == {state: states[state] for state in TaskState}
        assert {call.id for call in reader.open_calls()} == set(self.open)
        assert sum(call.reserved_usd or 0 for call in reader.open_calls()) == 0.25 * len(self.open)
        assert reader.spent_usd() == 0.5 * (sum(self.tries.values()) - len(self.open))
        attempts = [self.attempts[key] for key in sorted(self.attempts)]
        assert list(reader.all_attempts(superseded=True)) == attempts
        assert list(reader.all_attempts()) == [attempt for attempt in attempts if not attempt.superseded]
        for sha256 in self.blobs:
            reader.read_blob(sha256)

    def teardown(self) -> None:
        if hasattr(self, "journal"):
            assert verify(self.journal.reader).problems == ()
            self.loop.run_until_complete(self.journal.close())
        self.loop.close()
        shutil.rmtree(self.scratch)


TestRun = Run.TestCase
TestRun.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
