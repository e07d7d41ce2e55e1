"""The checks before a build's first call: one way for `build`, and for `plan`, which refuses what that refuses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, load_taxonomy
from plantain.journal.disk.connect import JOURNAL_NAME
from plantain.pipeline.consent import check_planned_consent
from plantain.pipeline.forecast import BuildPlan, make_plan, read_pilot
from plantain.pipeline.method import Method, check_known, guarded, method_of
from plantain.pipeline.plan import enumerate_tasks, plan_digest
from plantain.pipeline.recipe import Recipe
from plantain.pipeline.shards import Shard, Share, counted, lessened, share_begun
from plantain.roles import TakesRegion
from plantain.runs.limits import check_prices
from plantain.runs.setup import RunSetup


@dataclass(frozen=True, slots=True)
class Ready:
    """A recipe that a build can start with; the caller closes the catalogue.

    Attributes:
        taxonomy, catalogue, setup, method: what it names.
        plan: digest of its tasks, which changes when they could.
        share: which part of the tasks a shard takes; None for all of them.
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
    """Open what a recipe names, and refuse what cannot work.

    Args:
        recipe: validated.
        run: folder of the run; an existing one keeps its model ids, also those that are no longer known.
        method: models to use instead of the recipe's names.
        shard: which of several runs this is; the terms are its share of the recipe's.
        missing: takes a line for each key that is not set, instead of an error: for callers that call no model.

    Raises:
        InputError: the catalogue is missing, a model is unknown or cannot fill its role, a key or extra is missing, an
            image may not be sent to a hosted model, or a budget meets a model without a price.
    """
    taxonomy = load_taxonomy(recipe.data.finding_files)
    share = share_begun(run, shard)
    if method is None and (run is None or not (run / JOURNAL_NAME).exists()):
        check_known(recipe)
    check_prices(recipe.terms)
    catalogue = Catalogue.open(recipe.data.catalogue)
    try:
        check_planned_consent(recipe, catalogue, taxonomy)
        plan = plan_digest(recipe, catalogue, taxonomy)
        if share is not None:
            if share.plan != plan:
                share = counted(enumerate_tasks(recipe, catalogue, taxonomy), share.shard, plan)
            recipe = lessened(recipe, share)
        setup = RunSetup(recipe.terms)
        made = method_of(recipe, setup, missing) if method is None else guarded(method, setup)
        return Ready(taxonomy, catalogue, setup, made, plan, share)
    except BaseException:
        catalogue.close()
        raise


def forecast(recipe: Recipe, pilot: Path | None = None) -> tuple[BuildPlan, list[str]]:
    """Return what a recipe will need, and remarks: missing keys, an editor that cannot work here; calls no model.

    Args:
        recipe: validated.
        pilot: folder of a run whose rates, costs and latencies to use.

    Raises:
        InputError: as `make_ready`, but for missing keys.
    """
    missing: list[str] = []
    ready = make_ready(recipe, missing=missing)
    with ready.catalogue:
        made = make_plan(recipe, ready.catalogue, ready.taxonomy, read_pilot(pilot) if pilot else None)
    remarks = [f"{line}; build needs it" for line in dict.fromkeys(missing)]
    editor = ready.method.editor
    if isinstance(editor, TakesRegion) and editor.takes_region:
        remarks.append(
            f"{recipe.models.editor} has to be told where to edit, and a build has no regions: every edit would end "
            "as not_applicable. Measure it on a benchmark with regions (plantain bench generate), or choose another"
        )
    return made, remarks
