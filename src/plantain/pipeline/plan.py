"""The plan: which tasks a recipe and a catalogue make."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from plantain.catalogue.store import Catalogue
from plantain.findings import Taxonomy, out_of_view
from plantain.pipeline.recipe import Recipe
from plantain.records import (
    Direction,
    EditTask,
    Finding,
    InputError,
    SourceImage,
    TaskKind,
    derive_seed,
    task_id,
)
from plantain.records.messages import suggest


def enumerate_tasks(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> Iterator[EditTask]:
    """Yield every task of the recipe, a finding and direction at a time, then the controls.

    Raises:
        InputError: a finding that no modality of the catalogue knows.
    """
    findings = chosen_findings(recipe, catalogue, taxonomy)
    for finding in findings:
        for direction in recipe.data.directions:
            for image in _capped(recipe, catalogue, taxonomy, finding, direction):
                yield _task(image, finding, direction)
    for modality in dict.fromkeys(finding.modality for finding in findings):
        yield from _controls(recipe, catalogue, taxonomy.normal(modality))


def further_tasks(
    recipe: Recipe,
    catalogue: Catalogue,
    taxonomy: Taxonomy,
    finding: Finding,
    direction: Direction,
    most: int,
    usable: Callable[[str], bool],
) -> list[EditTask]:
    """Return the next tasks of a finding and direction in the seeded order, at most `most`.

    Args:
        usable: returns False for the id of a task to skip, e.g. one that the run already has.
    """
    tasks = (
        (image, _task(image, finding, direction))
        for image in _capped(recipe, catalogue, taxonomy, finding, direction)
    )
    images = (image for image, task in tasks if usable(task.id))
    return [
        _task(image, finding, direction) for image in _drawn(most, images, recipe.seed, "cap", finding.name)
    ]


def _capped(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, finding: Finding, direction: Direction
) -> Iterable[SourceImage]:
    """The images of a finding and direction, at most `per_finding`."""
    images = candidates(recipe, catalogue, taxonomy, finding, direction)
    most = recipe.data.per_finding
    return images if most is None else _drawn(most, images, recipe.seed, "cap", finding.name)


def _task(image: SourceImage, finding: Finding, direction: Direction) -> EditTask:
    task = task_id(image.source_sha256, image.frame, finding.name, direction)
    return EditTask(task, image.id, finding.modality, finding.name, direction)


def _controls(recipe: Recipe, catalogue: Catalogue, normal: Finding) -> Iterator[EditTask]:
    """Images of a modality that pass through the editor unchanged, to tell its traces (watermark, compression, grain)
    from its edits; never a rendered one."""
    images = (image for image in catalogue.images(modality=normal.modality) if not image.synthetic)
    for image in _drawn(recipe.data.controls, images, recipe.seed, "control"):
        task = control_id(image, normal.name)
        yield EditTask(task, image.id, normal.modality, normal.name, Direction.ADD, TaskKind.CONTROL)


def control_id(image: SourceImage, normal: str) -> str:
    """Return a control's id, from the source file and the name of the normal class."""
    return task_id(image.source_sha256, image.frame, f"control\x1f{normal}", Direction.ADD)


def _drawn(most: int, images: Iterable[SourceImage], seed: int, *what: str) -> list[SourceImage]:
    """Up to `most` images by a seeded hash, drawn for each finding by itself: the same few for all were a poor set."""

    def place(image: SourceImage) -> tuple[int, str]:
        return derive_seed(seed, *what, image.id, image.source_sha256), image.id

    return heapq.nsmallest(most, images, key=place)


def planned_images(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> Iterator[SourceImage]:
    """Yield the images of the recipe's tasks, each once."""
    seen: set[str] = set()
    for task in enumerate_tasks(recipe, catalogue, taxonomy):
        if task.image_id not in seen:
            seen.add(task.image_id)
            yield catalogue.get(task.image_id)


def chosen_findings(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> list[Finding]:
    """Return the recipe's findings, or all that can be edited in the catalogue's modalities, in taxonomy order."""
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
                f"data.findings: {name!r} is not a finding of the catalogue's modalities "
                f"({', '.join(sorted(present)) or 'none'}); {hint}"
            )
    return [f for f in everything if f.name in recipe.data.findings]


def candidates(
    recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy, finding: Finding, direction: Direction
) -> Iterator[SourceImage]:
    """Yield the images on which this finding can be added or removed, in order of id."""
    if direction is Direction.REMOVE:
        yield from catalogue.images(modality=finding.modality, label=finding.name)
        return
    for image in _without(recipe, catalogue, taxonomy, finding):
        if not out_of_view(finding, image):
            yield image


def not_planned(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> Counter[tuple[str, str, str]]:
    """Return how many additions are not planned, by modality, finding and the view that does not show its place.

    Under a cap, only those without another image.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    if Direction.ADD not in recipe.data.directions:
        return counts
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
    """The recorded images without the finding; only healthy ones if the recipe adds to no others."""
    normal = taxonomy.normal(finding.modality).name
    label = normal if recipe.data.add_to == "normal" else None
    for image in catalogue.images(modality=finding.modality, label=label):
        if finding.name not in image.labels and not image.synthetic:
            yield image


def plan_digest(recipe: Recipe, catalogue: Catalogue, taxonomy: Taxonomy) -> str:
    """Return a hash that changes when the tasks could; a resume with the same one skips the enumeration."""
    text = "\x1f".join(
        (
            catalogue.digest(),
            ",".join(
                f"{f.modality}/{f.name}/{f.optional}/{'/'.join(f.visibility.never)}"
                for f in taxonomy.findings
            ),
            recipe.data.model_dump_json(exclude={"catalogue", "finding_files"}),
            str(recipe.seed),
        )
    )
    return hashlib.sha256(text.encode()).hexdigest()
