"""The setup of a run: the only module that makes models and opens runs that call them.

A command makes a `RunSetup` from its terms, takes its models from it, and opens a run with it. Consent, journal,
budget, limits, retry, batch jobs, Ctrl-C, the time cap and telemetry then apply to every call."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import TypeVar, cast

import orjson

from plantain.calls import AdmissionController, ModelClient, ModelDrift
from plantain.files.secrets import MissingKey, hide_environment
from plantain.journal import DiskFull, Journal, JsonValue, RunHeader
from plantain.journal.connect import JOURNAL_NAME
from plantain.models.hosted.batch.client import BatchClient
from plantain.models.registry import (
    check_name,
    close_models,
    has_own_connection,
    presets,
    provider,
    settings_class,
)
from plantain.records import InputError, SourceImage
from plantain.records.messages import COMMANDS, with_typed
from plantain.roles import Describer, Editor, Judge, Writer
from plantain.roles.options import ProviderSettings
from plantain.runs.consent import ConsentGate, check_consent, cleared, where
from plantain.runs.engine import engine_open
from plantain.runs.open_run import OpenRun, interruptible, time_cap
from plantain.runs.progress import SILENT, ProgressObserver
from plantain.runs.terms import PROVIDERS, Terms, budget_of, check_prices, model_limits, recorded_part
from plantain.version import __version__

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewRun:
    """Name, seed and frozen settings of a new run; a resumed run must repeat the settings."""

    name: str
    seed: int
    frozen: dict[str, JsonValue]


class RunSetup:
    """The models of one run, and the opening of the run, under its terms."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._jobs: BatchClient | None = None
        self._gate = ConsentGate(terms)
        self._made: dict[tuple[str, str, Path | None], object] = {}

    def check(self, *, images: Iterable[SourceImage] = (), named: Iterable[str] = (), by: str = "") -> None:
        """Check the terms before a run is made: provider names, prices under a budget, and consent.

        Args:
            images, named: images to be sent, if known; further models, which the option `by` names.

        Raises:
            InputError: a name is unknown, a model under a budget has no price, or an image may not be sent.
        """
        for name in named:
            check_name(name, self.terms.kind(name), by)
        check_prices(self.terms)
        check_consent(self.terms, images)

    def writer(self, name: str, missing: list[str] | None = None) -> Writer:
        """Load the writer of that name; raise as `load_model` does.

        Args:
            name: "provider/model".
            missing: receives a line for a missing key, instead of an error; such a model cannot be called.
        """
        return cast(Writer, self._model(name, "writer", missing))

    def editor(self, name: str, missing: list[str] | None = None) -> Editor:
        """Load an editor by name; `missing` collects missing keys as for `judge`; raise as `load_model` does."""
        return cast(Editor, self._model(name, "editor", missing))

    def judge(
        self,
        name: str,
        missing: list[str] | None = None,
        *,
        prompts: Path | None = None,
        named_by: str = "models.judge",
    ) -> Judge:
        """Load the judge of that name.

        Args:
            name: "provider/model".
            missing: collects a line for each missing key instead of raising.
            prompts: folder of templates that replace plantain's.
            named_by: field or option that names the judge, for error messages.

        Raises:
            InputError: as `load_model`.
        """
        try:
            return cast(Judge, self._model(name, "judge", missing, prompts))
        except InputError as error:
            raise type(error)(str(error).replace("models.judge:", f"{named_by}:", 1)) from error

    def describer(self, name: str, missing: list[str] | None = None) -> Describer:
        """Load a describer by name; `missing` collects missing keys as for `judge`; raise as `load_model` does."""
        return cast(Describer, self._model(name, "describer", missing))

    def guarded(self, role: T) -> T:
        """Wrap a model that the caller made, so that its images pass the run's consent check."""
        return cleared(role, self._gate, where(self.terms, str(getattr(role, "name", "unknown/model"))))

    def options(self, model: str, role: str = "") -> ProviderSettings:
        """Return the settings that a model's adapter receives in a role."""
        options = self.terms.options(model, role)
        if options.in_jobs and self._jobs is None:
            self._jobs = BatchClient()
        return options.within(clearance=self._gate, jobs=self._jobs if options.in_jobs else None)

    def _model(
        self, name: str, role: str, missing: list[str] | None = None, prompts: Path | None = None
    ) -> object:
        key = (name, role, prompts)
        if key not in self._made:
            options = self.options(name, role)
            options = options if prompts is None else options.but(prompts=prompts)
            try:
                model = load_model(name, role, options)
            except MissingKey as error:
                if missing is None:
                    raise
                missing.append(str(error))
                model = load_model(name, role, options.within(key_later=True))
            own_connection = has_own_connection(self.terms.kind(name))
            self._made[key] = self.guarded(model) if own_connection else model
        return self._made[key]

    @asynccontextmanager
    async def open(
        self,
        run: Path,
        new: NewRun | None = None,
        *,
        observer: ProgressObserver = SILENT,
        accept_model_change: bool | None = None,
        also_close: Iterable[object] = (),
    ) -> AsyncIterator[OpenRun]:
        """Open a run for calls until the block ends; its summary is complete then.

        Args:
            run: folder of the run.
            new: name, seed and frozen settings, which a resumed run must repeat; None for a run that must exist.
            observer: receives the run's progress.
            accept_model_change: continue, and record it, when a provider serves another model than before; None: stop,
                and name no option.
            also_close: further models to close with the run.

        Raises:
            InputError: another process writes to the run; its frozen settings differ; the folder contains other files;
                the engine does not exist.
        """
        hide_environment()  # a command has done so already; a caller from Python may not
        journal = Journal.open(run) if new is None else await _open_journal(run, new)
        before = journal.reader.meta(PROVIDERS)
        if (places := recorded_part(self.terms, before)) != (before or "{}"):
            await journal.set_meta(PROVIDERS, places)
        if (commands := with_typed(journal.reader.meta(COMMANDS), run)) is not None:
            await journal.set_meta(COMMANDS, commands)
        self._gate.journal = journal
        try:
            engine: AbstractAsyncContextManager[Terms] = nullcontext(self.terms)
            if self.terms.engine.kind != "local":
                engine = engine_open(self.terms, journal, observer)
            async with engine as terms:
                client = await self._client(terms, journal, observer, accept_model_change)
                client.admission.on_outage = lambda model, news: observer.waiting(f"{model}: {news}")
                opened = OpenRun(terms, journal, client, observer, bool(client.unhurried))
                async with (
                    interruptible(client, observer.stopping),
                    time_cap(terms.limits, opened),
                ):
                    yield opened
            if self._jobs is not None:
                opened.summary.left = await self._jobs.close()
            opened.sum_up()
            with contextlib.suppress(DiskFull):  # telemetry may be lost
                await journal.end_session(client.replayed)
        finally:
            self._gate.journal = None
            if self._jobs is not None:
                await self._jobs.close()
            await journal.close()
            await close_models(*self._made.values(), *also_close)

    async def _client(
        self, terms: Terms, journal: Journal, observer: ProgressObserver, accept_model_change: bool | None
    ) -> ModelClient:
        if self._jobs is None and journal.reader.has_jobs():  # of an earlier process
            self._jobs = BatchClient()
        in_jobs = await self._jobs.open(journal, observer.note) if self._jobs else ()
        admission = AdmissionController(partial(model_limits, terms), budget_of(terms.limits, journal.reader))
        drift = ModelDrift(journal, accept_changes=accept_model_change)
        client = ModelClient(journal, admission, drift, in_jobs=in_jobs)
        if self._jobs is not None:
            client.unhurried, client.leave_jobs = self._jobs.models, self._jobs.leave
        return client


# --- settings frozen in a run --------------------------------------------------------------------


async def changed_since(journal: Journal, key: str, today: dict[str, str]) -> str | None:
    """Describe, in one sentence, how a model differs from the one that the run started with; None if none does.

    The run records prompts, versions of offline models and the rubric, which a recipe does not contain. New roles are
    added to the record.

    Args:
        key: key of the record in the journal's meta.
        today: fingerprint of each role's model now.
    """
    recorded = journal.reader.meta(key)
    before: dict[str, str] = orjson.loads(recorded) if recorded is not None else {}
    for role, fingerprint in today.items():
        if role in before and before[role] != fingerprint:
            return (
                f"the {role} is now {fingerprint}, and this run was started with {before[role]}: another prompt, "
                "model version or image setting; resume with the version that started this run, or use a new run folder"
            )
    if not today.keys() <= before.keys():
        await journal.set_meta(key, orjson.dumps({**before, **today}).decode())
    return None


async def _open_journal(run: Path, new: NewRun) -> Journal:
    """Return the run's journal; create it if missing. Raise InputError if a frozen value differs."""
    frozen = new.frozen
    if not (run / JOURNAL_NAME).exists():
        header = RunHeader(os.urandom(8).hex(), new.name, new.seed, frozen, __version__)
        return Journal.create(run, header)
    journal = Journal.open(run)
    before = {"kind": "build", **journal.header.frozen, "name": journal.header.name}
    now_given = {"kind": "build", **frozen, "name": new.name}
    for key in {**now_given, **before}:
        value, recorded = now_given.get(key), before.get(key)
        if recorded != value:
            await journal.close()
            field, now, was = _difference(value, recorded, key)
            raise InputError(
                f"{run}: the {field} is now {_shown(now)}, but this run was started with {_shown(was)}; name, "
                "models, sampling, loop and seed are frozen in a run: use a new --run folder, or restore the old value"
            )
    return journal


def _difference(now: JsonValue, was: JsonValue, field: str) -> tuple[str, JsonValue, JsonValue]:
    """Return the first field in which two settings differ, as "rubric.criteria.unhurt.weight", and its values."""
    now, was = _opened(now), _opened(was)
    if isinstance(now, dict) and isinstance(was, dict):
        for key in was | now:
            if key != "sha256" and now.get(key) != was.get(key):
                return _difference(now.get(key), was.get(key), field if key == "text" else f"{field}.{key}")
    return field, now, was


def _opened(value: JsonValue) -> JsonValue:
    """Return a rubric's text as its settings, and a list of named tables by name."""
    if isinstance(value, str) and value.startswith("{"):
        return dict(orjson.loads(value))
    if isinstance(value, list) and value and all(isinstance(one, dict) and "name" in one for one in value):
        return {str(one["name"]): one for one in value if isinstance(one, dict)}
    return value


def _shown(value: JsonValue) -> str:
    if value is None:
        return "not given"
    if isinstance(value, dict) and "name" in value:
        return str(value["name"])
    return shorten(str(value), 160, placeholder=" …")


def load_model(name: str, role: str, options: ProviderSettings | None = None) -> object:
    """Load a model by its name for the role "writer", "editor", "judge" or "describer".

    Raises:
        InputError: provider or model is unknown, key or extra is missing, or a setting is not supported.
    """
    kind = options.kind if options is not None and options.kind else name.partition("/")[0]
    check_name(name, kind, _role_name(role))
    preset = presets().get(name)
    if preset is not None and preset.model:
        raise InputError(
            f"models.{role}: {name} is a preset of `plantain bench generate`; in a recipe name {preset.model}"
        )
    return provider(kind).load(name, role, settings_class(kind)() if options is None else options)


def _role_name(role: str) -> str:
    """Return the field of a recipe, or the option of a command, that names the model."""
    return "--describer" if role == "describer" else f"models.{role}"
