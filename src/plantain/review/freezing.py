"""Make a study: draw cases, create items, blind the images, and freeze everything."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.files.opening import replace_file
from plantain.journal import BadBlob
from plantain.pixels.encode import encode_mask
from plantain.records import InputError, Rubric
from plantain.records.images import parent_of
from plantain.review.blinding import fitted_mask, stored_images
from plantain.review.ratings import Ratings
from plantain.review.sources import Material
from plantain.review.study import (
    IMAGES,
    ORIGINAL,
    Block,
    Case,
    Item,
    ReaderTask,
    Study,
    freeze,
    unfinished_folder,
)
from plantain.rubrics import MEDEBENCH

TITLES = {
    ReaderTask.ACCEPT: "Accept or reject",
    ReaderTask.RATE: "Rate",
    ReaderTask.PAIR: "Which is better?",
    ReaderTask.RANK: "Rank",
    ReaderTask.REAL_OR_EDITED: "Real or edited?",
    ReaderTask.CHOOSE_ROI: "Where is it?",
    ReaderTask.DESCRIBE_OK: "Is the description right?",
}

NEEDED = {
    ReaderTask.PAIR: "cases with outputs of two models (several --from, or a benchmark's run)",
    ReaderTask.RANK: "cases with outputs of two models (several --from, or a benchmark's run)",
    ReaderTask.DESCRIBE_OK: "cases with a description of the change",
}
"""Requirements of a task besides an edited image."""

LONGEST = 1024
"""Pixels of the longest side that readers see; images to draw on keep their own size."""


@dataclass(frozen=True, slots=True)
class StudySettings:
    """The settings of a new study.

    Attributes:
        tasks: the readers' tasks, one block each, in this order; `rank` makes a block per dimension of MedEBench.
        rubric: rubric whose criteria are accepted or rated.
        cases: number of cases to draw; None for all.
        scale: smallest and largest rating.
    """

    name: str
    seed: int
    tasks: tuple[ReaderTask, ...]
    rubric: Rubric
    cases: int | None = None
    scale: tuple[int, int] = (0, 10)


def new_study(
    folder: Path,
    found: Sequence[Material],
    sources: Sequence[str],
    settings: StudySettings,
    progress: Callable[[int, int], None] = lambda done, of: None,
    load: Callable[[Sequence[Material]], Sequence[Material]] = lambda drawn: drawn,
) -> Study:
    """Make a study in a new folder; if that fails, nothing is left.

    Args:
        found: all available cases; `outlines` of them are enough.
        sources: names of the runs, benchmarks or tables of the cases.
        load: returns the drawn cases with their images.
        progress: called with the numbers of finished and of all cases.

    Raises:
        InputError: the folder exists, or the material does not allow the tasks or has too few cases.
    """
    if folder.exists():
        raise InputError(f"{folder}: already exists; a study needs a new folder")
    _check(found, settings)
    drawn = _draw(found, settings)
    if settings.cases is not None and len(drawn) < settings.cases:
        raise InputError(f"--cases {settings.cases}: there are {len(drawn)}")
    materials = load(drawn)
    unfinished = unfinished_folder(folder)
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        (unfinished / IMAGES).mkdir(parents=True)
        cases, damaged = [], list[str]()
        for number, material in enumerate(materials, 1):
            try:
                case = _freeze_case(unfinished, number, material, ReaderTask.CHOOSE_ROI in settings.tasks)
                cases.append(case)
            except BadBlob as error:
                damaged.append(str(error))
            progress(number, len(materials))
        asked = [
            (task, dimension)
            for task in settings.tasks
            for dimension in (MEDEBENCH.criteria if task is ReaderTask.RANK else (None,))
        ]
        blocks = []
        for number, (task, dimension) in enumerate(asked, 1):
            block = _block(f"b{number}", task, cases, settings)
            if dimension is not None:
                title = f"{block.title}: {dimension.name.replace('_', ' ')}"
                criteria = ((dimension.name, dimension.question),)
                block = replace(block, title=title, criteria=criteria, dimension=dimension.short)
            blocks.append(block)
        study = freeze(
            Study(
                unfinished,
                settings.name,
                settings.seed,
                tuple(sources),
                tuple(cases),
                tuple(blocks),
                damaged=tuple(damaged),
            )
        )
        Ratings.create(study).close()
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return replace(study, folder=folder)


# --- cases ------------------------------------------------------------------------------------------


def _check(found: Sequence[Material], settings: StudySettings) -> None:
    for task in settings.tasks:
        if not any(_fits(material, task) for material in found):
            needed = NEEDED.get(task, "cases with an edited image")
            raise InputError(f"--task {task.value}: needs {needed}; there are none")


def _fits(material: Material, task: ReaderTask) -> bool:
    if task is ReaderTask.REAL_OR_EDITED and parent_of(material.original):
        return False  # the original is an accepted edit of an earlier turn
    outputs = len(material.images) - 1
    match task:
        case ReaderTask.CHOOSE_ROI:
            return True
        case ReaderTask.DESCRIBE_OK:
            return bool(material.description) and (outputs > 0 or material.ground_truth is not None)
        case ReaderTask.PAIR | ReaderTask.RANK:
            return outputs > 1
    return outputs > 0


def _draw(found: Sequence[Material], settings: StudySettings) -> list[Material]:
    """Draw cases from the strata in turn, each shuffled by the seed; further cases of a patient come later."""
    draw = random.Random(f"{settings.seed} cases")
    strata: dict[str, list[Material]] = {}
    for one in sorted(found, key=lambda material: material.source):
        if any(_fits(one, task) for task in settings.tasks):
            strata.setdefault(one.stratum, []).append(one)
    for name in sorted(strata):
        draw.shuffle(strata[name])
    turns = [strata[name] for name in sorted(strata)]
    draw.shuffle(turns)
    dealt = [one for row in itertools.zip_longest(*turns) for one in row if one is not None]
    seen: dict[str, int] = {}
    places = []
    for one in dealt:
        places.append(seen.get(one.cluster, 0))
        seen[one.cluster] = places[-1] + 1
    ordered = [dealt[n] for n in sorted(range(len(dealt)), key=lambda n: (places[n], n))]
    return ordered[: settings.cases]


def _freeze_case(folder: Path, number: int, material: Material, drawn_on: bool) -> Case:
    pixels = {key: read() for key, read in material.images.items()}
    height, width = pixels[ORIGINAL].shape[:2]
    scale = 1.0 if drawn_on else min(1.0, LONGEST / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    case, keys = f"c{number:04d}", sorted(pixels)
    everything = [pixels[key] for key in keys]
    if material.ground_truth is not None:
        everything.append(material.ground_truth())
    synthetic = [key != ORIGINAL or bool(parent_of(material.original)) for key in keys]
    synthetic += [False] * (len(everything) - len(keys))
    files, length = stored_images(everything, size, synthetic)
    names = [f"{case}-{place}.png" for place in range(len(files))]
    proposals = [f"{case}-proposal-{place}.png" for place in range(len(material.proposals))]
    masks = [encode_mask(fitted_mask(mask, size)) for mask in material.proposals]
    for name, data in zip([*names, *proposals], [*files, *masks], strict=True):
        replace_file(folder / IMAGES / name, data)
    return Case(
        id=case,
        source=material.source,
        stratum=material.stratum,
        cluster=material.cluster,
        modality=material.modality,
        finding=material.finding,
        direction=material.direction,
        instruction=material.instruction,
        description=material.description,
        size=size,
        served_bytes=length,
        images=dict(zip(keys, names, strict=False)),
        ground_truth=names[-1] if material.ground_truth is not None else "",
        verdicts=material.verdicts,
        proposals=tuple(proposals),
        spacing_mm=None if material.spacing_mm is None else material.spacing_mm / scale,
        credentialed=material.credentialed,
        image=material.original,
    )


# --- items ------------------------------------------------------------------------------------------


def _block(block: str, task: ReaderTask, cases: Sequence[Case], settings: StudySettings) -> Block:
    if task is ReaderTask.REAL_OR_EDITED:
        cases = [case for case in cases if not parent_of(case.image)]
    items = [item for case in cases for item in _items(case, task)]
    if not items:
        raise InputError(f"--task {task.value}: none of the drawn cases allows it; raise --cases")
    return Block(
        block,
        task,
        TITLES[task],
        tuple(replace(item, id=f"{block}-{n:05d}") for n, item in enumerate(items, 1)),
        criteria=tuple((one.name, one.question) for one in settings.rubric.criteria),
        scale=settings.scale,
        codes=tuple(settings.rubric.codes),
    )


def _items(case: Case, task: ReaderTask) -> Iterator[Item]:
    """Yield the questions of a task about one case."""
    models = [key for key in case.images if key != ORIGINAL]

    def item(*shown: str, reference: bool = True, truth: str = "") -> Item:
        return Item("", case.id, shown, reference, truth)

    match task:
        case ReaderTask.ACCEPT | ReaderTask.RATE:
            yield from (item(model) for model in models)
        case ReaderTask.PAIR:
            yield from (item(*pair) for pair in itertools.combinations(models, 2))
        case ReaderTask.RANK if len(models) > 1:
            yield item(*models)
        case ReaderTask.REAL_OR_EDITED:
            # The original once, whatever the number of models: results weigh edited and real images alike.
            yield from (item(model, reference=False, truth="edited") for model in models)
            yield item(ORIGINAL, reference=False, truth="real")
        case ReaderTask.CHOOSE_ROI:
            yield item()
        case ReaderTask.DESCRIBE_OK if case.description:
            yield item() if case.ground_truth else item(*models[:1])
