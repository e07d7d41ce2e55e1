"""Editors without a provider's model: baselines of every run, planted editors of known quality, Python functions.

The truth of a benchmark is seldom aligned to the pixel, so that copying the input scores well on many metrics; a model
that does not beat `copy-input` has edited nothing. Planted editors know the truth and spoil it in one stated way: more
of the change is more accurate, and changes elsewhere in the image cost preservation. A good benchmark recovers this
order. Neither reads its instruction. A caller's function, plain or async, edits arrays or PIL images.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import io
import re
import traceback
import types
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import cv2
import numpy as np
from PIL import Image

from plantain.bench.benchmark.benchmark import Benchmark, resized_bicubic
from plantain.bench.benchmark.native_format import encode_png
from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode, one_line
from plantain.pixels.encode import compressed
from plantain.records import InputError, Outcome, OutcomeKind, Usage, derive_seed
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

VERSION = "1"

COPY_INPUT, RESIZE_ONLY, JPEG_75, GROUND_TRUTH = "copy-input", "resize-only", "jpeg-75", "ground-truth"
BASELINES = (COPY_INPUT, RESIZE_ONLY, JPEG_75, GROUND_TRUTH)
"""Labels of the arms, in the order in which tables show them."""

PROVIDER = "baseline"

WORKING_SIDE = 512
"""Longest side at which the paper's open models work, in pixels."""

STEP = 8
"""Latent models work on sides that are multiples of this."""

NO_TRUTH = "the benchmark has no image after the procedure"


def _copied(pixels: Pixels) -> tuple[Pixels, str]:
    return pixels, "the input, unchanged"


def _resized(pixels: Pixels) -> tuple[Pixels, str]:
    """Resize to a model's working size and back, bicubic both ways: the cost of a model that edits nothing.

    The working size has a longest side of 512, or of half the image's if the image is not larger (else
    nothing would happen), both sides floored to multiples of 8.
    """
    height, width = pixels.shape[:2]
    longest = max(width, height)
    side = WORKING_SIDE if longest > WORKING_SIDE else longest // 2
    small = tuple(max(STEP, round(n * side / longest) // STEP * STEP) for n in (width, height))
    through = resized_bicubic(pixels, (small[0], small[1]))
    return resized_bicubic(through, (width, height)), f"through {small[0]}x{small[1]} and back, bicubic"


def _compressed(pixels: Pixels) -> tuple[Pixels, str]:
    """Encode as a JPEG of quality 75 with halved colour, the usual default of tools."""
    return decode(compressed(".jpg", pixels, cv2.IMWRITE_JPEG_QUALITY, 75)), "JPEG of quality 75, 4:2:0"


TRICKS: dict[str, Callable[[Pixels], tuple[Pixels, str]]] = {
    COPY_INPUT: _copied,
    RESIZE_ONLY: _resized,
    JPEG_75: _compressed,
}


class LocalEditor:
    """A baseline or planted editor: it ignores its instruction.

    Args:
        name: "baseline/NAME" or "planted/NAME".
        make: returns (output for an image and its sample's id, uint8 (H, W, 3), or None without the truth; a note).
    """

    def __init__(self, name: str, make: Callable[[Pixels, str], tuple[Pixels | None, str]]) -> None:
        self.name, self.fingerprint = name, f"{name.partition('/')[2]}@{VERSION}"
        self._make = make

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        """Return the output as PNG; a `not_applicable` outcome if the sample has no image after the procedure."""
        data, note = await asyncio.to_thread(self._edited, request)
        if data is None:
            return failed(Outcome(OutcomeKind.NOT_APPLICABLE, NO_TRUTH))
        return Reply(EditedImage(EncodedImage(data, "image/png"), note=note), usage=Usage(images=1))

    def _edited(self, request: EditRequest) -> tuple[bytes | None, str]:
        pixels, note = self._make(decode(request.original.data), request.image.id)
        return None if pixels is None else encode_png(pixels), note


def baseline_editor(label: str, benchmark: Benchmark) -> LocalEditor:
    """Make the editor of a baseline, e.g. `copy-input`; `ground-truth` returns the real image after the procedure."""
    name = f"{PROVIDER}/{label}"
    if label == GROUND_TRUTH:
        return LocalEditor(name, lambda pixels, sample: (_truth(benchmark, sample), "the real image after"))
    return LocalEditor(name, lambda pixels, sample: TRICKS[label](pixels))


def _truth(benchmark: Benchmark, sample_id: str) -> Pixels | None:
    sample = benchmark.sample(sample_id)
    return None if sample.changed is None else benchmark.changed(sample)


Spoil = Callable[[Pixels, Pixels, np.random.Generator], Pixels]
"""(before, truth, generator) -> output; images are uint8 (H, W, 3)."""

NOISE = 2.0
"""Standard deviation of `planted/noisy`, in grey levels, the same in all channels."""

COARSE = 8
"""Factor by which `planted/repainted` shrinks an image before it enlarges it again."""


def _partly(share: float) -> Spoil:
    """Return an editor's function that makes this share of the true change."""
    return lambda before, truth, rng: _bytes(before + share * (truth.astype(np.float64) - before))


def _noisy(before: Pixels, truth: Pixels, rng: np.random.Generator) -> Pixels:
    return _bytes(truth + rng.normal(0.0, NOISE, before.shape[:2])[..., None])


def _repainted(before: Pixels, truth: Pixels, rng: np.random.Generator) -> Pixels:
    """Return the real image after, shrunk eightfold (`COARSE`) and back, moved 0.6 % right and 0.4 % up."""
    height, width = truth.shape[:2]
    small = cv2.resize(truth, (width // COARSE, height // COARSE), interpolation=cv2.INTER_AREA)
    coarse = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    shift = np.array([[1.0, 0.0, 0.006 * width], [0.0, 1.0, -0.004 * height]])
    return np.asarray(
        cv2.warpAffine(coarse, shift, (width, height), borderMode=cv2.BORDER_REPLICATE), np.uint8
    )


def _bytes(values: np.ndarray) -> Pixels:
    return np.asarray(np.clip(np.rint(values), 0, 255), np.uint8)


PLANTED: dict[str, tuple[Spoil, str]] = {
    "planted/exact": (_partly(1.0), "the true change, and nothing else"),
    "planted/half": (_partly(0.5), "half of the change"),
    "planted/faint": (_partly(0.2), "a fifth of the change"),
    "planted/noisy": (_noisy, "the true change, with noise over the whole image"),
    "planted/repainted": (
        _repainted,
        "the true change in a redrawn image: coarser, and a little displaced everywhere",
    ),
}
"""By name: how the editor makes its image, and the same in words."""

ACCURACY = ("planted/exact", "planted/half", "planted/faint", "copy-input")
"""Planted order in editing accuracy: more of the change first."""

PRESERVATION = ("planted/exact", "planted/noisy", "planted/repainted")
"""Planted order in context preservation: smaller changes of the rest first."""


def planted_editor(label: str, benchmark: Benchmark) -> LocalEditor:
    """Make an editor of known quality: it returns the real image after, altered in one stated way."""
    spoil, note = PLANTED[label]

    def make(before: Pixels, sample_id: str) -> tuple[Pixels | None, str]:
        truth = _truth(benchmark, sample_id)
        rng = np.random.default_rng(derive_seed(0, label, sample_id))
        return None if truth is None else spoil(before, truth, rng), f"planted: {note}"

    return LocalEditor(label, make)


AnyImage: TypeAlias = Pixels | Image.Image
EditFunction: TypeAlias = Callable[[Any, str], AnyImage | Awaitable[AnyImage]]
"""(image, instruction) -> edited image of the same size, plain or async.

Images are uint8 arrays of shape (H, W, 3), RGB, or PIL images where the first parameter is annotated as one.
"""
Images = Literal["array", "pil"]


@dataclass(frozen=True, slots=True)
class FunctionEditor:
    """A Python function as an editor; unless it is async, threads call it for several samples at once.

    Attributes:
        function: the function.
        name: "python/FUNCTION".
        fingerprint: identity of its code, as `of` computes it.
        images: type of its first argument: "array" (uint8 RGB, (H, W, 3)) or "pil".
    """

    function: EditFunction
    name: str
    fingerprint: str
    images: Images = "array"

    @classmethod
    def of(cls, function: EditFunction, images: Images | None = None) -> FunctionEditor:
        """Make the editor "python/FUNCTION"; its fingerprint depends on the source, or on byte code without source.

        For a `functools.partial`, a closure or an object of a class, it also depends on the numbers and texts in it.

        Args:
            function: the function, or an object that can be called; a class raises InputError.
            images: "array" or "pil", the type of its argument; None: by the annotation of its first parameter.
        """
        if inspect.isclass(function):
            raise InputError(
                f"{function.__name__} is a class; give an object of it, such as edit = {function.__name__}()"
            )
        made = type(function).__init__  # type: ignore[misc]
        taken = {} if made is object.__init__ else inspect.signature(made).parameters
        own = {str(name): value for name, value in getattr(function, "__dict__", {}).items()}
        # A parameter's attribute is a setting, others may count calls; without such names all are settings.
        inner, values = function, {name: value for name, value in own.items() if name.lstrip("_") in taken}
        if any(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in taken.values()) or len(taken) > 1:
            values = values or own
        while isinstance(inner, functools.partial):
            values |= {str(place): value for place, value in enumerate(inner.args)} | inner.keywords
            inner = inner.func
        named = inner if hasattr(inner, "__name__") else type(inner)
        try:
            text = inspect.getsource(named)
        except (OSError, TypeError):
            text = repr(getattr(getattr(named, "__code__", None), "co_code", b""))
        if inspect.isfunction(inner):
            values |= dict(inspect.getclosurevars(inner).nonlocals)
        text += repr(sorted((k, v) for k, v in values.items() if isinstance(v, int | float | str)))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        called = re.sub(r"[^\w.-]", "", named.__name__) or "function"
        return cls(function, f"python/{called}", f"python {digest}", images or _annotated(function))

    async def edit(self, request: EditRequest) -> Reply[EditedImage]:
        before = decode(request.original.data)
        given = Image.fromarray(before) if self.images == "pil" else before
        try:
            made: object = await asyncio.to_thread(self.function, given, request.instruction)
            if inspect.isawaitable(made):
                made = await made
        except Exception as error:  # noqa: BLE001  (whatever the caller's function raises)
            where = traceback.extract_tb(error.__traceback__)[-1]
            problem = one_line(
                f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
            )
            given_as = "; it was given a PIL image"
            if self.images == "array":
                given_as = (
                    "; it was given a uint8 array; for PIL images annotate its parameter: PIL.Image.Image"
                )
            return failed(Outcome(OutcomeKind.MALFORMED, f"{self.name} raised {problem}{given_as}"))
        after = np.asarray(made.convert("RGB")) if isinstance(made, Image.Image) else made
        if not isinstance(after, np.ndarray) or after.dtype != np.uint8 or after.shape != before.shape:
            shape = getattr(after, "shape", None)
            got = f"{type(after).__name__} {getattr(after, 'dtype', '')} {'' if shape is None else shape}".split()
            wanted = f"a uint8 array of shape {before.shape}, or a PIL image of that size"
            return failed(Outcome(OutcomeKind.MALFORMED, f"{self.name} gave {' '.join(got)}, not {wanted}"))
        buffer = io.BytesIO()
        Image.fromarray(after).save(buffer, "PNG", compress_level=1)
        return Reply(EditedImage(EncodedImage(buffer.getvalue(), "image/png"), pixels=after))


def _annotated(function: EditFunction) -> Images:
    """Return the type in the annotation of the first parameter, or else of the result; "array" without one."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "array"
    first = [one.annotation for one in signature.parameters.values()][:1]
    kinds = [*first, signature.return_annotation]
    for kind in kinds:
        if kind is not inspect.Parameter.empty:
            pil = kind if isinstance(kind, str) else f"{getattr(kind, '__module__', '')}.{kind}"
            return "pil" if re.search(r"\bImage\b", pil) else "array"
    return "array"


FUNCTION = re.compile(r"(.*\.py)(?::(\w+))?(?:=([\w.+-]+))?")
"""A function as a value of `--editor`."""


def function_in_file(given: str) -> FunctionEditor:
    """Load the function of "FILE.py:FUNCTION" as an editor; "FILE.py:FUNCTION=NAME" calls it python/NAME.

    Raises:
        InputError: no such file or function, or the file cannot be run; one line with its reason.
    """
    found = FUNCTION.fullmatch(given)
    text, name, label = found.groups("") if found else (given, "", "")
    path = Path(text)
    if not path.is_file():
        raise InputError(f"--editor {given}: no file {path}")
    code = path.read_bytes()
    module = types.ModuleType(f"plantain_editor_{path.stem}")
    module.__file__ = str(path)
    try:  # not by an import: its bytecode is stale after a change of equal size within a second
        exec(compile(code, path, "exec"), vars(module))
    except Exception as error:
        raise InputError(f"--editor {path}: {one_line(f'{type(error).__name__}: {error}')}") from error
    function = getattr(module, name, None)
    if not callable(function):
        own = [
            word for word, one in vars(module).items() if getattr(one, "__module__", "") == module.__name__
        ]
        names = ", ".join(f"{path}:{word}" for word in own) or "none is defined there"
        raise InputError(f"--editor {given}: name a function as FILE.py:NAME: {names}")
    editor = FunctionEditor.of(cast(EditFunction, function))
    digest = hashlib.sha256(code).hexdigest()[:16]  # it may use whatever else the file defines
    return replace(editor, name=f"python/{label or name}", fingerprint=f"python {digest}")
