"""A Python function as an editor: over arrays or PIL images, plain or async, from a caller or from a file."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import inspect
import io
import re
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from PIL import Image

from plantain.pixels.arrays import Pixels
from plantain.pixels.decode import decode, one_line
from plantain.records import InputError, Outcome, OutcomeKind
from plantain.roles import EditedImage, EditRequest, EncodedImage, Reply, failed

AnyImage: TypeAlias = Pixels | Image.Image
EditFunction: TypeAlias = Callable[[Any, str], AnyImage | Awaitable[AnyImage]]
"""(image, instruction) -> edited image of the same size, plain or async.

Images are uint8 arrays of shape (H, W, 3), RGB, or PIL images where the first parameter is annotated as one.
"""
Images = Literal["array", "pil"]


@dataclass(frozen=True, slots=True)
class FunctionEditor:
    """A Python function as an editor; a plain one is called in threads, for several samples at once."""

    function: EditFunction
    name: str
    fingerprint: str
    images: Images = "array"

    @classmethod
    def of(cls, function: EditFunction, images: Images | None = None) -> FunctionEditor:
        """Return editor "python/FUNCTION"; its fingerprint depends on the source, or byte code without it.

        Args:
            function: the function.
            images: the type of its argument; None for that of the annotation of its first parameter.
        """
        called = re.sub(r"[^\w.-]", "", getattr(function, "__name__", type(function).__name__)) or "function"
        try:
            text = inspect.getsource(function)
        except (OSError, TypeError):
            text = repr(getattr(getattr(function, "__code__", None), "co_code", b""))
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
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
            given_as = f"; it was given a {'PIL image' if self.images == 'pil' else 'uint8 array'}"
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


def function_in_file(given: str) -> FunctionEditor:
    """Load the function of "FILE.py:NAME" as an editor.

    Raises:
        InputError: no such file or function, or the file cannot be run; one line with its reason.
    """
    text, _, name = given.rpartition(":") if not given.endswith(".py") else (given, "", "")
    path = Path(text)
    if not path.is_file():
        raise InputError(f"--editor {given}: no file {path}")
    spec = importlib.util.spec_from_file_location(f"plantain_editor_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(f"--editor {path}: {one_line(f'{type(error).__name__}: {error}')}") from error
    function = getattr(module, name, None)
    if not callable(function):
        own = [
            word for word, one in vars(module).items() if getattr(one, "__module__", "") == module.__name__
        ]
        names = ", ".join(f"{path}:{word}" for word in own) or "none is defined there"
        raise InputError(f"--editor {given}: name a function as FILE.py:NAME: {names}")
    return FunctionEditor.of(cast(EditFunction, function))
