"""The method of a run (models, rubric, policy), and the checks of a build before its first call, consent above all."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal import Journal, JournalReader
from plantain.journal.connect import JOURNAL_NAME
from plantain.journal.questions.tasks import pending_images
from plantain.models.registry import check_name, endings, known_model, presets, roles_at
from plantain.pipeline.forecast import BuildPlan, make_plan, read_pilot
from plantain.pipeline.plan import (
    Shard,
    Share,
    counted_share,
    enumerate_tasks,
    plan_digest,
    planned_images,
    scaled_recipe,
    share_of_run,
)
from plantain.pipeline.recipe import Recipe
from plantain.privacy.permission import FREE_TO_LEAVE
from plantain.records import EditTask, InputError, Licence, Rubric, SourceImage, TaskKind, task_id
from plantain.records.messages import counted, suggest
from plantain.roles import Editor, Judge, TakesRegion, Writer, fingerprint_of
from plantain.rubrics import identity_of
from plantain.runs.consent import check_consent, hosted_models, kinship
from plantain.runs.settings_file import ConsentGiven
from plantain.runs.setup import RunSetup
from plantain.runs.terms import check_prices

NONE = "none"

METHOD = "method"
"""Meta key of the fingerprints that a resumed run must repeat."""


@dataclass(frozen=True, slots=True)
class Method:
    """How a run edits and judges.

    Attributes:
        writer, editor, judges: the models; several judges form a panel.
        rubric: the criteria; `policy`, `threshold`: when an edit qualifies by them.
        max_rounds: maximum number of rounds of a task.
        seed: the run's seed.
        restore: "none", or "outside" to restore the original around each edit.
    """

    writer: Writer
    editor: Editor
    judges: tuple[Judge, ...]
    rubric: Rubric
    policy: str
    threshold: float
    max_rounds: int
    seed: int
    restore: str = NONE


def method_of(recipe: Recipe, setup: RunSetup | None = None, missing: list[str] | None = None) -> Method:
    """Load the models, rubric and policy that a recipe names.

    Args:
        recipe: the recipe.
        setup: setup of the run; None for a temporary one, whose models can be inspected but not called.
        missing: collects a line for each missing key instead of raising; such a model cannot be called.

    Raises:
        InputError: a model is unknown or cannot fill its role, or a key or extra is missing.
    """
    setup = setup or RunSetup(recipe.terms)
    judges = tuple(setup.judge(name, missing) for name in recipe.models.judges)
    for judge in judges:
        fingerprint_of(judge, recipe.judged_by)  # refuses a rubric by which it cannot judge
    return Method(
        writer=setup.writer(recipe.models.writer, missing),
        editor=setup.editor(recipe.models.editor, missing),
        judges=judges,
        rubric=recipe.judged_by,
        policy=recipe.loop.policy,
        threshold=recipe.loop.threshold,
        max_rounds=recipe.loop.max_rounds,
        seed=recipe.seed,
        restore=recipe.loop.restore,
    )


def guarded(method: Method, setup: RunSetup) -> Method:
    """Wrap the models of a caller's method so that every image passes the run's consent check before it is sent."""
    judges = tuple(map(setup.guarded, method.judges))
    return replace(
        method, writer=setup.guarded(method.writer), editor=setup.guarded(method.editor), judges=judges
    )


def check_known(recipe: Recipe) -> None:
    """Check that a recipe's model ids are known, and that each model can fill its role.

    An unlisted id is accepted if the recipe states its price; at another address (`base_url`) any id is.

    Raises:
        InputError: one is not; the message names the field, the nearest id, and how to use an unlisted one.
    """
    models = recipe.models
    named = [("writer", models.writer), ("editor", models.editor)]
    for role, name in [*named, *(("judge", judge) for judge in models.judges)]:
        check_name(name, recipe.terms.kind(name), f"models.{role}")
        provider, _, model = name.partition("/")
        theirs = roles_at(recipe.terms.kind(name))
        section = recipe.terms.provider(name)
        if not theirs or not model or section.get("base_url") or model in section.prices or name in presets():
            continue
        row = known_model(f"{recipe.terms.kind(name)}/{model}")
        if row is None:
            near = suggest(name, [f"{provider}/{other.partition('/')[2]}" for other in theirs])
            raise InputError(
                f"models.{role}: no model {name!r} is known; {near} (if it is new, state its price: "
                f'[providers.{provider}.prices."{model}"] with input_per_m and output_per_m)'
            )
        if role not in row.roles:
            fit = [other for other, roles in theirs.items() if role in roles]
            hint = f"; for one, {fit[0]!r}" if fit else ""
            raise InputError(f"models.{role}: {name!r} can be {' and '.join(row.roles)}, not {role}{hint}")


def fingerprints(method: Method) -> dict[str, str]:
    """Return, by part ("writer", "judge 1", ...), a text that changes if the part's answers could change."""
    parts = {
        "writer": f"{method.writer.name}: {method.writer.fingerprint}",
        "editor": f"{method.editor.name}: {method.editor.fingerprint}",
        "rubric": " ".join(map(str, identity_of(method.rubric))),
    }
    for number, judge in enumerate(method.judges, start=1):
        parts[f"judge {number}"] = f"{judge.name}: {fingerprint_of(judge, method.rubric)}"
    return {**parts, **restore_identity(method.restore)}


def restore_identity(restore: str) -> dict[str, str]:
    """Return {"restore": version}, which identifies runs and requests with restoring; {} if it is off."""
    if restore == NONE:
        return {}
    from plantain.pixels.restore import VERSION  # heavy

    return {"restore": VERSION}


@dataclass(frozen=True, slots=True)
class Ready:
    """A checked recipe with all that a build needs; the caller closes the catalogue.

    Attributes:
        taxonomy, catalogue, setup, method: opened from the recipe.
        plan: digest of its tasks, which changes if the tasks could.
        share: the part of the tasks that a shard processes; None for all of them.
    """

    taxonomy: Taxonomy
    catalogue: Catalogue
    setup: RunSetup
    method: Method
    plan: str
    share: Share | None


def make_ready(
    recipe: Recipe,
    *,
    run: Path | None = None,
    method: Method | None = None,
    shard: Shard | None = None,
    missing: list[str] | None = None,
) -> Ready:
    """Open catalogue, models and taxonomy of a recipe, and reject a recipe that cannot run.

    Args:
        recipe: the recipe.
        run: folder of the run; an existing one may use model ids that are no longer known.
        method: models to use instead of those that the recipe names.
        shard: the part of the plan for this run; budget and limits are scaled by its share.
        missing: collects a line for each missing key instead of raising, for callers that call no model.

    Raises:
        InputError: the catalogue is missing, a model is unknown or cannot fill its role, a key or extra is missing, an
            image may not be sent to a hosted model, or a budget meets a model without a price.
    """
    taxonomy = load_taxonomy(recipe.data.finding_files)
    share = share_of_run(run, shard)
    if method is None and (run is None or not (run / JOURNAL_NAME).exists()):
        check_known(recipe)
    check_prices(recipe.terms)
    catalogue = Catalogue.open(recipe.data.catalogue)
    try:
        check_planned_consent(recipe, catalogue, taxonomy)
        plan = plan_digest(recipe, catalogue, taxonomy)
        if share is not None:
            if share.plan != plan:
                share = counted_share(enumerate_tasks(recipe, catalogue, taxonomy), share.shard, plan)
            recipe = scaled_recipe(recipe, share)
        setup = RunSetup(recipe.terms)
        made = method_of(recipe, setup, missing) if method is None else guarded(method, setup)
        return Ready(taxonomy, catalogue, setup, made, plan, share)
    except BaseException:
        catalogue.close()
        raise


def forecast(recipe: Recipe, pilot: Path | None = None) -> tuple[BuildPlan, list[str]]:
    """Forecast a recipe; return the plan, and remarks on missing keys or an unsuitable editor. No model is called.

    Args:
        recipe: the recipe.
        pilot: folder of a run whose rates, costs and latencies to use.

    Raises:
        InputError: as `make_ready`, except for missing keys.
    """
    missing: list[str] = []
    ready = make_ready(recipe, missing=missing)
    with ready.catalogue:
        made = make_plan(recipe, ready.catalogue, ready.taxonomy, read_pilot(pilot) if pilot else None)
    remarks = [f"{line}; build needs it" for line in dict.fromkeys(missing)]
    editor = ready.method.editor
    if isinstance(editor, TakesRegion) and editor.takes_region:
        remarks.append(
            f"{recipe.models.editor} needs a region to edit, and a build has none: every edit would end as "
            "not_applicable. Measure it on a benchmark with regions by bench generate --editor, or choose another"
        )
    if recipe.loop.turns > 1:
        remarks.append(
            f"loop.turns = {recipe.loop.turns}: the plan is of the first turn; each accepted edit is edited up to "
            f"{counted(recipe.loop.turns - 1, 'time')} more"
        )
    return made, remarks


def check_planned_consent(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> None:
    """Check that all images of a recipe's tasks may be sent to its hosted models. Raise InputError otherwise."""
    if holds_back(catalogue):
        check_consent(recipe.terms, planned_images(recipe, catalogue, taxonomy))


def holds_back(catalogue: Catalogue) -> bool:
    """Return True if a catalogue has images that need consent before they are sent to hosted models."""
    return bool(set(catalogue.count_by("licence")) - {licence.value for licence in FREE_TO_LEAVE})


async def check_pending_consent(recipe: Recipe, catalogue: Catalogue, journal: Journal) -> None:
    """Check that pending tasks' images may be sent, and record the recipe's consent. Raise InputError otherwise.

    The run's record of an image decides; the catalogue's only for images that are not in the run yet.
    """
    models = hosted_models(recipe.terms)
    if not models:
        return
    ids = pending_images(journal.reader, but=FREE_TO_LEAVE, unrecorded=holds_back(catalogue))
    check_consent(recipe.terms, (_recorded(journal, catalogue, image_id) for image_id in ids))
    if recipe.data.consent is not None:
        stated = recipe.data.consent
        every = (stated,) if isinstance(stated, ConsentGiven) else stated
        agreements = [one.model_dump(exclude_defaults=True) for one in every]
        given = {**agreements[0], **({"others": agreements[1:]} if agreements[1:] else {}), "models": models}
        await journal.set_meta("consent", orjson.dumps(given).decode())


def _recorded(journal: Journal, catalogue: Catalogue, image_id: str) -> SourceImage:
    try:
        return journal.reader.image(image_id)
    except InputError:
        return catalogue.get(image_id)


def hold_to_sources(catalogue: Catalogue, reader: JournalReader) -> None:
    """Check that image ids mean the same source files in run and catalogue. Raise InputError otherwise."""
    for image in reader.images():
        there = catalogue.find(image.id)
        same = there is None or (there.source_sha256, there.frame) == (image.source_sha256, image.frame)
        if there is not None and image.source_sha256 and not same:
            raise InputError(_another(reader, there, f"{image.source_sha256}, frame {image.frame}"))
    for row in reader.tasks():
        there = catalogue.find(row.task.image_id)
        if there is not None and row.task.id != _id_of(row.task, there):
            raise InputError(_another(reader, there, "another file"))


async def learn_from(catalogue: Catalogue, journal: Journal) -> list[str]:
    """Copy groups, splits, licences and consent that changed in a catalogue since the run stored its images.

    Withdrawals and splits need a corrected group; one that the catalogue no longer has is kept. A licence is copied
    only if the run's is unknown. All other fields, and the image itself, stay as they were when the tasks were made.

    Returns:
        The ids of the catalogue's images whose group or split changed.
    """
    regrouped = []
    for image in list(journal.reader.images()):
        there = catalogue.find(image.origin)
        if there is None:
            continue
        grouped = replace(image, group=there.group or image.group, split=there.split or image.split)
        known = there.licence if image.licence is Licence.UNKNOWN else image.licence
        now = replace(grouped, licence=known, consent=there.consent)
        if now != image:
            data = await asyncio.to_thread(journal.reader.read_blob, image.prepared_sha256)
            blob = await asyncio.to_thread(journal.put_blob, data, "image/jpeg")
            await journal.add_images([(now, blob)])
        if grouped != image and not image.parent:
            regrouped.append(image.id)
    return regrouped


def _id_of(task: EditTask, image: SourceImage) -> str:
    """The id that a build's task would have if it were made of this source."""
    if task.kind is TaskKind.EDIT:
        return task_id(image.source_sha256, image.frame, task.finding, task.direction)
    return task.id


def _another(reader: JournalReader, there: SourceImage, before: str) -> str:
    return (
        f"data.catalogue: an image of {there.dataset} has the source file {there.source_sha256}, frame {there.frame}, "
        f"and {reader.run} was started with {before} under the same id: it is another image; use the catalogue that "
        "the run was started with, or a new run folder"
    )


def warnings(recipe: Recipe) -> list[str]:
    """Return warnings to show before the first call, one line each."""
    drawn = [
        f"the judge {judge} is named {times} times: {times} draws of one judge, each with a seed of its own where the "
        "provider takes one; they show how sure it is, not what another would say"
        for judge, times in Counter(recipe.models.judges).items()
        if times > 1
    ]
    return (
        kinship(recipe.terms, recipe.models.editor, dict.fromkeys(recipe.models.judges))
        + drawn
        + endings(map(recipe.terms.listed, recipe.terms.models))
    )
