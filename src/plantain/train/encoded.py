"""Examples as a model sees them, in a file beside the training: only those of one step are ever in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded examples, by number.

    Attributes:
        ids: of the examples.
        canvases: height and width of each one's latents; a batch holds one canvas only.
    """

    ids: tuple[str, ...]
    canvases: tuple[tuple[int, int], ...]
    _places: tuple[Mapping[str, tuple[int, tuple[int, ...]]], ...]
    _file: IO[bytes]

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, numbers: Sequence[int], device: torch.device) -> dict[str, Tensor]:
        """Each part of these examples, stacked on a device: float32 (n, ...).

        Args:
            numbers: examples of one canvas.
        """
        return {
            part: torch.stack([self._read(number, part) for number in numbers]).to(device)
            for part in self._places[numbers[0]]
        }

    def chunks(self, most: int) -> list[list[int]]:
        """All examples once, in chunks of one canvas and at most so many."""
        found = []
        for canvas in dict.fromkeys(self.canvases):
            alike = [number for number, other in enumerate(self.canvases) if other == canvas]
            found += [alike[at : at + most] for at in range(0, len(alike), most)]
        return found

    def _read(self, number: int, part: str) -> Tensor:
        start, shape = self._places[number][part]
        self._file.seek(start)
        data = self._file.read(4 * int(np.prod(shape)))
        return torch.from_numpy(np.frombuffer(data, np.float32).reshape(shape).copy())


def encode(examples: Iterable[tuple[str, Mapping[str, Tensor]]]) -> Encoded:
    """Writes examples to a file without a name, which goes with the process.

    Args:
        examples: id, and parts by name; the part "source" is (channels, height, width).

    Raises:
        ValueError: there is none.
    """
    file = tempfile.TemporaryFile(prefix="plantain-encoded-")  # noqa: SIM115  # lives as long as what it holds
    ids, canvases, places = [], [], []
    for name, parts in examples:
        here = {}
        for part, values in parts.items():
            here[part] = (file.tell(), tuple(values.shape))
            file.write(values.detach().float().cpu().numpy().tobytes())
        ids.append(name)
        canvases.append((int(parts["source"].shape[-2]), int(parts["source"].shape[-1])))
        places.append(here)
    if not ids:
        raise ValueError("no examples to learn from")
    return Encoded(tuple(ids), tuple(canvases), tuple(places), file)
