"""`plantain review new`: cases are drawn, items are laid out, pictures are blinded, and all of it is frozen."""

from __future__ import annotations

import itertools
import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plantain.files.writing import replace_file
from plantain.findings.taxonomy import load_taxonomy
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import BadImage
from plantain.pixels.encode import encode_mask
from plantain.pixels.wide import packed
from plantain.records import InputError, Rubric
from plantain.records.counts import counted
from plantain.review.pictures import blinded, fitted_mask
from plantain.review.ratings import Ratings
from plantain.review.sources import Material
from plantain.review.study import ORIGINAL, PICTURES, Block, Case, Item, ItemKind, ReaderTask, Study, freeze

UNCHANGED = "unchanged copy"
"""A model of our own: the original as it was. An edit that changes nothing is not what was asked for."""

TITLES = {
    ReaderTask.ACCEPT: "Accept or reject",
    ReaderTask.RATE: "Rate",
    ReaderTask.PAIR: "Which is better?",
    ReaderTask.RANK: "Rank",
    ReaderTask.REAL_OR_EDITED: "Real or edited?",
    ReaderTask.TWO_CHOICES: "Which one is real?",
    ReaderTask.WHICH_FINDING: "Which finding?",
    ReaderTask.CHOOSE_ROI: "Where is it?",
    ReaderTask.DESCRIBE_OK: "Is the description right?",
}

LONGEST, LONGEST_DRAWN = 1024, 4096
"""Pixels of the longest side that readers see; where they draw, pictures keep their own size, up to the second."""

OUTPUTS_NEEDED = {ReaderTask.PAIR: 2, ReaderTask.RANK: 2, ReaderTask.CHOOSE_ROI: 0}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `review new` was asked for.

    Attributes:
        tasks: one block each, in this order.
        cases: main cases to draw; None: all that the training leaves.
        training: items of the training, on cases of their own: feedback tells their truth.
        repeats: share of each block's main items that are read again.
        anchors, attention: items of known truth, and checks of attention, in each block.
        scale: of ratings.
    """

    name: str
    seed: int
    tasks: tuple[ReaderTask, ...]
    rubric: Rubric
    cases: int | None = None
    groups: int = 1
    training: int = 0
    pass_mark: float = 0.0
    repeats: float = 0.0
    anchors: int = 0
    attention: int = 0
    scale: tuple[int, int] = (0, 10)
    changes: bool = True
    agreement: str = ""
    own_region: bool = True


def new_study(
    folder: Path,
    found: Sequence[Material],
    sources: Sequence[str],
    wanted: Wanted,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Study:
    """Makes a study in a folder that does not exist; nothing stays where that fails.

    Raises:
        InputError: the folder is there, the material does not allow the tasks or has too few cases, or the name tells a
            model.
    """
    if folder.exists():
        raise InputError(f"{folder}: already exists; a study needs a new folder")
    _check(found, wanted)
    drawn = _drawn(found, wanted)
    _check_numbers(len(drawn), wanted)
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        (unfinished / PICTURES).mkdir(parents=True)
        cases = []
        for number, material in enumerate(drawn):
            cases.append(_freeze_case(unfinished, number, material, ReaderTask.CHOOSE_ROI in wanted.tasks))
            progress(number + 1, len(drawn))
        main, spare = cases[: len(cases) - wanted.training], cases[len(cases) - wanted.training :]
        blocks = tuple(_block(f"b{n}", task, main, spare, wanted) for n, task in enumerate(wanted.tasks, 1))
        study = freeze(
            Study(
                unfinished,
                wanted.name,
                wanted.seed,
                tuple(sources),
                tuple(cases),
                blocks,
                wanted.groups,
                wanted.changes,
                wanted.agreement,
            )
        )
        Ratings.create(study).close()
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return replace(study, folder=folder)


def _check(found: Sequence[Material], wanted: Wanted) -> None:
    if not wanted.tasks:
        raise InputError(f"--task: name at least one of {', '.join(ReaderTask)}")
    models = {model for material in found for model in material.pictures} - {ORIGINAL}
    parts = {part for model in models for part in (model, *model.split("/")) if len(part) > 2}
    for name in sorted(parts, key=lambda name: (-len(name), name)):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", wanted.name, re.IGNORECASE):
            raise InputError(f"--name {wanted.name!r}: readers see it, and it tells the model {name}")
    for task in wanted.tasks:
        if not any(_fits(material, task) for material in found):
            why = {
                ReaderTask.PAIR: "cases with outputs of two models (give several --from, or a benchmark's run)",
                ReaderTask.RANK: "cases with outputs of two models (give several --from, or a benchmark's run)",
                ReaderTask.DESCRIBE_OK: "cases with a description of the change",
                ReaderTask.WHICH_FINDING: "cases whose modality has findings",
            }.get(task, "cases with an edited picture")
            raise InputError(f"--task {task.value}: needs {why}; there are none")


def _check_numbers(drawn: int, wanted: Wanted) -> None:
    """A study that has fewer cases than it was planned with shows less than it was planned to show."""
    main = drawn - wanted.training
    if wanted.cases is not None and main < wanted.cases:
        beside = f" beside {wanted.training} for training" if wanted.training else ""
        raise InputError(f"--cases {wanted.cases}: there are {max(0, main)}{beside}")
    if main < 1:
        raise InputError(f"--training {wanted.training}: of {counted(drawn, 'case')} none is left to be read")
    if wanted.groups > main:
        raise InputError(f"--groups {wanted.groups}: of {counted(main, 'case')} not every group gets one")
    if wanted.pass_mark and not wanted.training:
        raise InputError(
            f"--pass {wanted.pass_mark:g}: there is no training to pass; say how much with --training"
        )


def _fits(material: Material, task: ReaderTask) -> bool:
    if task is ReaderTask.DESCRIBE_OK:
        return bool(material.description)
    if task is ReaderTask.WHICH_FINDING and not material.finding:
        return False
    return len(material.pictures) - 1 >= OUTPUTS_NEEDED.get(task, 1)


def _drawn(found: Sequence[Material], wanted: Wanted) -> list[Material]:
    """Cases as strata take turns, each shuffled by the seed; further cases of a patient come later."""
    draw = random.Random(f"{wanted.seed} cases")
    strata: dict[str, list[Material]] = {}
    for one in sorted(found, key=lambda material: material.source):
        if any(_fits(one, task) for task in wanted.tasks):
            strata.setdefault(one.stratum, []).append(one)
    turns: list[list[Material]] = []
    for name in sorted(strata):
        rows = strata[name]
        draw.shuffle(rows)
        turns.append(rows)
    draw.shuffle(turns)
    dealt = [one for row in itertools.zip_longest(*turns) for one in row if one is not None]
    seen: dict[str, int] = {}
    late = [(seen.setdefault(one.cluster, 0), n, one) for n, one in enumerate(dealt)]
    for place, (_, n, one) in enumerate(late):
        late[place] = (seen[one.cluster], n, one)
        seen[one.cluster] += 1
    ordered = [one for _, _, one in sorted(late, key=lambda entry: entry[:2])]
    return ordered if wanted.cases is None else ordered[: wanted.cases + wanted.training]


def _freeze_case(folder: Path, number: int, material: Material, drawn_on: bool) -> Case:
    pixels = {key: read() for key, read in material.pictures.items()}
    height, width = pixels[ORIGINAL].shape[:2]
    if drawn_on and max(width, height) > LONGEST_DRAWN:
        raise InputError(
            f"{material.source}: {width} x {height} pixels; regions are drawn on pictures of up to {LONGEST_DRAWN} "
            "a side"
        )
    scale = 1.0 if drawn_on else min(1.0, LONGEST / max(width, height))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    case = f"c{number + 1:04d}"
    names = {}
    for place, (key, data) in enumerate(sorted(blinded(pixels, size).items())):
        names[key] = f"{case}-{place}.png"
        replace_file(folder / PICTURES / names[key], data)
    proposals = []
    for place, mask in enumerate(material.proposals):
        proposals.append(f"{case}-proposal-{place}.png")
        replace_file(folder / PICTURES / proposals[-1], encode_mask(fitted_mask(mask, size)))
    return Case(
        case, material.source, material.stratum, material.cluster, material.modality, material.finding,
        material.direction, material.instruction, material.description, size, names, material.truth, tuple(proposals),
        None if material.spacing_mm is None else material.spacing_mm / scale, material.credentialed,
        _wide(folder, case, material, pixels[ORIGINAL], scale),
    )  # fmt: skip


def _wide(
    folder: Path, case: str, material: Material, prepared: Pixels, scale: float
) -> dict[str, object] | None:
    """Lays down all grey levels of the original; None where its file has no more, or is smaller than it was."""
    if material.wide is None or scale < 1:
        return None
    try:
        wide = material.wide(prepared)
    except BadImage:
        return None  # another curve than a linear window: what the file says would not be what is shown
    if wide is None:
        return None
    name = f"{case}-wide.png"
    height, width = wide.levels.shape
    replace_file(folder / PICTURES / name, blinded({"": packed(wide)}, (width, height))[""])
    record: dict[str, object] = {"file": name, "low": wide.low, "step": wide.step, "unit": wide.unit}
    windows = [list(one) for one in wide.windows]
    ends = {"black": wide.black, "white": wide.white}
    return record | ends | {"windows": windows, "linear": wide.linear}


def _block(
    block: str, task: ReaderTask, main: Sequence[Case], spare: Sequence[Case], wanted: Wanted
) -> Block:
    draw = random.Random(f"{wanted.seed} {block}")
    items = [item for case in main for item in _items(case, task, draw)]
    if not items:
        raise InputError(
            f"--task {task.value}: none of the drawn cases allows it; "
            "draw more (--cases), or keep fewer for training (--training)"
        )
    again = draw.sample(items, min(len(items), round(wanted.repeats * len(items))))
    kinds: list[Item] = [
        *items,
        *(replace(item, kind=ItemKind.REPEAT, of=str(items.index(item))) for item in again),
    ]
    kinds += _anchors(task, main, draw, wanted.anchors)
    kinds += _attention(task, items, draw, wanted)
    taught = [item for case in spare for item in _items(case, task, draw)][: wanted.training]
    known = _anchors(task, spare, draw, wanted.training // 2)
    taught = [*known, *taught][: wanted.training]
    if (
        task is ReaderTask.WHICH_FINDING
    ):  # what was asked for need not be what came out: no ground for feedback
        taught = [item if item.kind is ItemKind.ANCHOR else replace(item, truth="") for item in taught]
    kinds += [replace(item, kind=ItemKind.TRAINING) for item in taught]
    numbered = [replace(item, id=f"{block}-{n:05d}") for n, item in enumerate(kinds, 1)]
    numbered = [replace(item, of=numbered[int(item.of)].id) if item.of else item for item in numbered]
    criteria = tuple((one.name, one.question) for one in wanted.rubric.criteria)
    choices = _choices(task, [*main, *spare])
    return Block(
        block, task, TITLES[task], tuple(numbered), criteria, wanted.scale, tuple(wanted.rubric.codes), choices,
        wanted.pass_mark, wanted.own_region,
    )  # fmt: skip


def _items(case: Case, task: ReaderTask, draw: random.Random) -> Iterator[Item]:
    """The questions of a task on one case."""
    models = [key for key in case.pictures if key not in (ORIGINAL, UNCHANGED)]

    def item(*shown: str, reference: bool = True, truth: str = "") -> Item:
        return Item("", case.id, ItemKind.MAIN, shown, reference, truth)

    match task:
        case ReaderTask.ACCEPT | ReaderTask.RATE:
            yield from (item(model) for model in models)
        case ReaderTask.PAIR:
            yield from (item(*pair) for pair in itertools.combinations(models, 2))
        case ReaderTask.RANK if len(models) > 1:
            yield item(*models)
        case ReaderTask.REAL_OR_EDITED:
            # the original once, whatever the number of models: results weigh edited and real ones alike
            yield from (item(model, reference=False, truth="edited") for model in models)
            yield item(ORIGINAL, reference=False, truth="real")
        case ReaderTask.TWO_CHOICES:
            yield from (item(ORIGINAL, model, reference=False, truth=ORIGINAL) for model in models)
        case ReaderTask.WHICH_FINDING if case.finding:
            shows = case.finding if case.direction == "add" else ""
            yield from (item(model, reference=False, truth=shows) for model in models)
        case ReaderTask.CHOOSE_ROI:
            yield Item("", case.id, ItemKind.MAIN, (), True)
        case ReaderTask.DESCRIBE_OK if case.description:
            yield item(*models[:1])
        case _:
            return


def _anchors(task: ReaderTask, cases: Sequence[Case], draw: random.Random, wanted: int) -> list[Item]:
    """Items whose answer is known: an unchanged copy is no edit, and comes last in any comparison."""
    found = []
    for case in draw.sample(list(cases), len(cases)):
        models = [key for key in case.pictures if key not in (ORIGINAL, UNCHANGED)]
        if task is ReaderTask.ACCEPT:
            found.append(Item("", case.id, ItemKind.ANCHOR, (ORIGINAL,), True, "no"))
        elif task is ReaderTask.REAL_OR_EDITED:
            truth = draw.choice(["real", "edited"]) if models else "real"
            found.append(
                Item(
                    "", case.id, ItemKind.ANCHOR, (ORIGINAL if truth == "real" else models[0],), False, truth
                )
            )
        elif task is ReaderTask.TWO_CHOICES and models:
            found.append(Item("", case.id, ItemKind.ANCHOR, (ORIGINAL, models[0]), False, ORIGINAL))
        elif task is ReaderTask.WHICH_FINDING and case.truth:
            found.append(Item("", case.id, ItemKind.ANCHOR, (ORIGINAL,), False, _label(case)))
    return found[:wanted]


def _label(case: Case) -> str:
    """What an original shows, in the words of the closed list."""
    taxonomy = load_taxonomy()
    if case.modality in taxonomy.modalities and case.truth == taxonomy.normal(case.modality).name:
        return "none"
    return case.truth


def _attention(task: ReaderTask, items: Sequence[Item], draw: random.Random, wanted: Wanted) -> list[Item]:
    """Ordinary items with a line that says what to answer here."""
    asked = {
        ReaderTask.ACCEPT: ("answer No to every criterion", "no"),
        ReaderTask.RATE: (
            f"give {wanted.scale[0]} to every criterion",
            " ".join([str(wanted.scale[0])] * len(wanted.rubric.criteria)),
        ),
        ReaderTask.PAIR: ("answer Tie", "tie"),
        ReaderTask.REAL_OR_EDITED: ("answer Edited", "edited"),
        ReaderTask.WHICH_FINDING: ("answer None of these", "none"),
        ReaderTask.DESCRIBE_OK: ("answer No", "no"),
    }.get(task)
    if asked is None:
        return []
    chosen = draw.sample(list(items), min(len(items), wanted.attention))
    return [
        replace(
            item, kind=ItemKind.ATTENTION, truth=asked[1], notice=f"This checks attention: please {asked[0]}."
        )
        for item in chosen
    ]


def _choices(task: ReaderTask, cases: Sequence[Case]) -> tuple[str, ...]:
    if task is not ReaderTask.WHICH_FINDING:
        return ()
    taxonomy = load_taxonomy()
    listed = [
        f.name
        for m in sorted({c.modality for c in cases})
        if m in taxonomy.modalities
        for f in taxonomy.targets(m)
    ]
    return tuple(dict.fromkeys([*listed, *sorted({case.finding for case in cases if case.finding})]))
