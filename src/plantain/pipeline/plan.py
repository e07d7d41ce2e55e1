"""The plan: which tasks a recipe and a catalogue make."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterator

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, load_taxonomy, out_of_view
from plantain.pipeline.control import control_tasks
from plantain.pipeline.recipe import Recipe
from plantain.records import Direction, EditTask, Finding, InputError, SourceImage, derive_seed, task_id
from plantain.records.suggestions import suggest


def enumerate_tasks(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> Iterator[EditTask]:
    """Every task of the recipe, streaming, a finding and direction at a time, then the controls.

    Raises:
        InputError: a finding that no modality of the catalogue knows.
    """
    for finding in chosen_findings(recipe, catalogue, taxonomy):
        for direction in recipe.data.directions:
            images = candidates(recipe, catalogue, taxonomy, finding, direction)
            if recipe.data.per_finding is not None:
                images = iter(_drawn(recipe.data.per_finding, images, recipe.seed, finding.name))
            for image in images:
                yield EditTask(
                    task_id(image.source_sha256, image.frame, finding.name, direction),
                    image.id,
                    finding.modality,
                    finding.name,
                    direction,
                )

    for modality in dict.fromkeys(f.modality for f in chosen_findings(recipe, catalogue, taxonomy)):
        yield from control_tasks(
            catalogue.images(modality=modality), taxonomy.normal(modality), recipe.data.controls, recipe.seed
        )


def _drawn(most: int, images: Iterator[SourceImage], seed: int, finding: str) -> list[SourceImage]:
    """So many images, drawn for each finding by itself: the same few for all of them would be a poor set."""

    def place(image: SourceImage) -> tuple[int, str]:
        return derive_seed(seed, "cap", finding, image.id, image.source_sha256), image.id

    return heapq.nsmallest(most, images, key=place)


def planned_images(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> Iterator[SourceImage]:
    """The images of the recipe's tasks, each once."""
    seen: set[str] = set()
    for task in enumerate_tasks(recipe, catalogue, taxonomy):
        if task.image_id not in seen:
            seen.add(task.image_id)
            yield catalogue.get(task.image_id)


def chosen_findings(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> list[Finding]:
    """The recipe's findings, or all that can be edited in the catalogue's modalities; in taxonomy order."""
    present = set(catalogue.count_by("modality"))
    modalities = [m for m in taxonomy.modalities if m in present]
    if not recipe.data.findings:
        return [f for m in modalities for f in taxonomy.targets(m)]
    everything = [f for m in modalities for f in taxonomy.targets(m, optional=True)]
    names = {f.name for f in everything}
    for name in recipe.data.findings:
        if name not in names:
            hint = suggest(name, sorted(names))
            raise InputError(
                f"data.findings: {name!r} is no finding of the catalogue's modalities "
                f"({', '.join(sorted(present)) or 'none'}); {hint}"
            )
    return [f for f in everything if f.name in recipe.data.findings]


def candidates(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, finding: Finding, direction: Direction
) -> Iterator[SourceImage]:
    """The images on which this finding can be added or removed, in order of id."""
    if direction is Direction.REMOVE:
        yield from catalogue.images(modality=finding.modality, label=finding.name)
        return
    for image in _without(recipe, catalogue, taxonomy, finding):
        if not out_of_view(finding, image):
            yield image


def not_planned(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> Counter[tuple[str, str, str]]:
    """How many additions are not planned, by modality, finding and the view that does not show its place.

    Under a cap, only those that no other image takes the place of.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    if Direction.ADD in recipe.data.directions:
        for finding in chosen_findings(recipe, catalogue, taxonomy):
            if not finding.visibility.never:
                continue
            views: Counter[str] = Counter()
            for image in _without(recipe, catalogue, taxonomy, finding):
                views[image.view if out_of_view(finding, image) else ""] += 1
            shown, most = views.pop("", 0), recipe.data.per_finding
            room = views.total() if most is None else max(0, most - shown)
            for view, n in sorted(views.items()):
                if missing := min(n, room):
                    counts[finding.modality, finding.name, view] = missing
                    room -= missing
    return counts


def _without(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, finding: Finding
) -> Iterator[SourceImage]:
    """The recorded images that do not have the finding, healthy ones alone where the recipe adds to no other."""
    normal = taxonomy.normal(finding.modality).name
    label = normal if recipe.data.add_to == "normal" else None
    for image in catalogue.images(modality=finding.modality, label=label):
        if finding.name not in image.labels and not image.synthetic:
            yield image


def plan_digest(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> str:
    """Changes when the tasks could; lets a resume skip the enumeration.

    Of views that do not show a finding's place those of own findings count: ours change with the version alone, and
    what earlier ones catalogued has no such view.
    """
    ours = load_taxonomy().findings
    never = [(f.name, *f.visibility.never) for f in taxonomy.findings if f.visibility.never and f not in ours]
    text = "\x1f".join(
        (
            catalogue.digest(),
            ",".join(f"{f.modality}/{f.name}/{f.optional}" for f in taxonomy.findings),
            recipe.data.model_dump_json(exclude={"catalogue", "finding_files"}),
            str(recipe.seed) if recipe.data.per_finding or recipe.data.controls else "",
            *(["never", repr(never)] if never else ()),
        )
    )
    return hashlib.sha256(text.encode()).hexdigest()
