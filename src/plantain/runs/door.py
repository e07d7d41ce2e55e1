"""The one door to models: whoever calls a model gets it here, with everything that stands around a call.

A command makes a `Door` of its terms, takes its models from it, and opens a run through it. Inside, consent, journal,
budget, limits, retry, batch jobs, Ctrl-C, the time cap and telemetry all hold; nothing brings only some of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar, cast

from plantain.files.secrets import MissingKey, hide_environment
from plantain.journal import DiskFull, Journal
from plantain.models.hosted.batch.client import BatchClient
from plantain.models.registry import brings_its_own_connection, close_models
from plantain.models.resolver import load_model
from plantain.records import InputError, SourceImage
from plantain.roles import Describer, Editor, Judge, Writer
from plantain.roles.options import ProviderSettings
from plantain.runs.cleared import cleared
from plantain.runs.consent import check_consent, where
from plantain.runs.consent_gate import ConsentGate
from plantain.runs.engine import engine_open
from plantain.runs.money.pricing import check_prices
from plantain.runs.observer import SILENT, ProgressObserver
from plantain.runs.open_run import OpenRun
from plantain.runs.opening import Beginning, open_client, open_journal
from plantain.runs.settings.terms import Terms
from plantain.runs.worker_pool import WorkerPool, interruptible, time_cap

T = TypeVar("T")


class Door:
    """The models of one run under its terms.

    Args:
        terms: under which they are called.
        begun: of a run that goes on, what each role or model was begun with; see `opening.begun_with`.
    """

    def __init__(self, terms: Terms, begun: Mapping[str, str] = MappingProxyType({})) -> None:
        self.terms = terms
        self._begun = begun
        self._jobs = BatchClient()
        self._gate = ConsentGate(terms)
        self._made: dict[tuple[str, str, str, Path | None], object] = {}

    def check(self, *, images: Iterable[SourceImage] = ()) -> None:
        """Refuses what cannot be, before anything is made for it.

        Args:
            images: what would be sent, as far as it is known; the gate looks again at each picture that goes.

        Raises:
            InputError: a budget over a model without a price, or images that may not be sent to a hosted model.
        """
        check_prices(self.terms)
        check_consent(self.terms, images)

    def writer(self, name: str, remembered: str = "", missing: list[str] | None = None) -> Writer:
        """The writer of that name; raises as `plantain.models.resolver.load_model` does.

        Args:
            name: "provider/model".
            remembered: what the run calls it where it keeps what its roles were begun with, if not by its name.
            missing: takes a line for a key that is not set, instead of a refusal; such a model cannot be called.
        """
        return cast(Writer, self._model(name, "writer", remembered, missing))

    def editor(self, name: str, remembered: str = "", missing: list[str] | None = None) -> Editor:
        """The editor of that name; raises as `writer` does."""
        return cast(Editor, self._model(name, "editor", remembered, missing))

    def judge(
        self,
        name: str,
        remembered: str = "",
        missing: list[str] | None = None,
        *,
        prompts: Path | None = None,
        named_by: str = "models.judge",
    ) -> Judge:
        """The judge of that name; raises as `writer` does.

        Args:
            name, remembered, missing: as for a writer.
            prompts: a folder of prompts of its own.
            named_by: the field or option that named it, for messages.
        """
        try:
            return cast(Judge, self._model(name, "judge", remembered, missing, prompts))
        except InputError as error:
            raise type(error)(str(error).replace("models.judge:", f"{named_by}:", 1)) from error

    def describer(self, name: str, remembered: str = "", missing: list[str] | None = None) -> Describer:
        """The describer of that name; raises as `writer` does."""
        return cast(Describer, self._model(name, "describer", remembered, missing))

    def guarded(self, role: T) -> T:
        """A model that somebody made themselves, behind the same gate as those that are made here."""
        return cleared(role, self._gate, where(self.terms, str(getattr(role, "name", "unknown/model"))))

    def options(self, model: str, remembered: str = "", role: str = "") -> ProviderSettings:
        """What the model's adapter is handed.

        Args:
            model: its name.
            remembered: what the run calls it where it keeps what it was begun with, if not by its name.
            role: which it is to fill, whose own settings it then has.
        """
        options = self.terms.options(model, role)
        return options.within(clearance=self._gate, jobs=self._jobs if options.in_jobs else None)

    def _model(
        self,
        name: str,
        role: str,
        remembered: str = "",
        missing: list[str] | None = None,
        prompts: Path | None = None,
    ) -> object:
        key = (name, role, remembered, prompts)
        if key not in self._made:
            options = self.options(name, remembered, role)
            options = options if prompts is None else options.but(prompts=prompts)
            try:
                model = load_model(name, role, options)
            except MissingKey as error:
                if missing is None:
                    raise
                missing.append(str(error))
                model = load_model(name, role, options.within(key_later=True))
            self._made[key] = (
                self.guarded(model) if brings_its_own_connection(self.terms.kind(name)) else model
            )
        return self._made[key]

    @asynccontextmanager
    async def open(
        self,
        run: Path,
        beginning: Beginning | None = None,
        *,
        observer: ProgressObserver = SILENT,
        on_commit: Callable[[int], None] | None = None,
        accept_model_change: bool | None = None,
        also_close: Iterable[object] = (),
    ) -> AsyncIterator[OpenRun]:
        """A run, open for calls until the block ends; then its summary says what was done.

        Args:
            run: its folder.
            beginning: what a new run begins with and a resumed one must repeat; None for a run that has to be there.
            observer: told how the run goes on.
            on_commit: told the number of durable events so far.
            accept_model_change: go on, and record it, when a provider serves another model than before; None:
                stop, and name no option.
            also_close: models of the caller's own.

        Raises:
            InputError: another process holds the run; it was begun with something else; the folder is something else;
                there is no such engine.
        """
        hide_environment()  # a command has done so already; a caller from Python may not
        journal = Journal.open(run) if beginning is None else await open_journal(run, beginning)
        journal.on_commit = on_commit
        self._gate.journal = journal
        try:
            async with engine_open(self.terms, journal, observer) as (terms, watch):
                client, admission = await open_client(
                    terms, journal, self._jobs, accept_model_change=accept_model_change
                )
                client.on_worker = watch
                pool = WorkerPool(client, on_waiting=observer.waiting)
                opened = OpenRun(terms, journal, client, admission, pool, observer, bool(self._jobs.models))
                async with (
                    interruptible(client, observer.stopping),
                    time_cap(terms.limits, journal.reader, pool),
                ):
                    yield opened
            opened.summary.left = await self._jobs.close()
            opened.sum_up()
            # Telemetry is not worth a fault where there is no room for it.
            with contextlib.suppress(DiskFull):
                await journal.end_session(client.replayed, opened.telemetry())
        finally:
            self._gate.journal = None
            await self._jobs.close()
            await journal.close()
            await close_models(*self._made.values(), *also_close)
