"""Encoded examples on disk: each is encoded once per study, and a step reads only its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from plantain.records import InputError
from plantain.train.editor_folder import cannot_write

Parts = Mapping[str, Tensor]


class _Named(Protocol):
    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=_Named)


class Encoded:
    """Examples encoded as parts by name, one safetensors file each.

    Args:
        folder: created with the first example.
        key: everything that an encoding depends on in addition to the example: data, base weights, size.
        ids: examples, in order.
        read: yields examples by id.
        encode: returns an example's parts; "source" is (channels, height, width).

    Raises:
        InputError: as `read`, a file cannot be written, or a file is damaged.

    Attributes:
        ids: of the examples.
        canvases: height and width of each example's latents; all examples of a batch share one canvas.
    """

    def __init__(
        self,
        folder: Path,
        key: Sequence[object],
        ids: Sequence[str],
        read: Callable[[Sequence[str]], Iterable[E]],
        encode: Callable[[E], Parts],
    ) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        self.ids = tuple(ids)
        self._folder, self._key = folder, json.dumps(list(key))
        missing = [name for name in ids if not self._path(name).is_file()]
        if missing:
            folder.mkdir(parents=True, exist_ok=True)
        for example in read(missing) if missing else ():
            parts = {
                part: value.detach().float().cpu().contiguous() for part, value in encode(example).items()
            }
            new = self._path(example.id).with_suffix(".part")
            try:
                save_file(parts, new)
            except (OSError, SafetensorError) as error:
                new.unlink(missing_ok=True)
                raise cannot_write(folder, f"the encoded example {example.id}", error) from error
            new.replace(self._path(example.id))
        shapes = [self._load(number)["source"].shape for number in range(len(self.ids))]
        self.canvases = tuple((int(shape[-2]), int(shape[-1])) for shape in shapes)

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, numbers: Sequence[int], device: torch.device) -> dict[str, Tensor]:
        """Return each part of these examples of one canvas, stacked on a device: float32 (n, ...)."""
        loaded = [self._load(number) for number in numbers]
        return {part: torch.stack([one[part] for one in loaded]).to(device) for part in loaded[0]}

    def chunks(self, most: int) -> list[list[int]]:
        """Return all examples once, in chunks of one canvas and at most `most`."""
        found = []
        for canvas in dict.fromkeys(self.canvases):
            alike = [number for number, other in enumerate(self.canvases) if other == canvas]
            found += [alike[at : at + most] for at in range(0, len(alike), most)]
        return found

    def _load(self, number: int) -> dict[str, Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self._path(self.ids[number])
        try:
            parts: dict[str, Tensor] = load_file(path)
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{path}: cannot be read ({error}); remove {self._folder} to encode again"
            ) from error
        return parts

    def _path(self, name: str) -> Path:
        digest = hashlib.sha256(f"{self._key} {name}".encode()).hexdigest()
        return self._folder / f"{digest}.safetensors"
