"""Encoded examples on the disk while a study runs: nested training sets and further seeds encode nothing again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from plantain.records import InputError
from plantain.train.examples.pairs import PairSource, TrainingPair

Parts = Mapping[str, Tensor]


class ExampleCache:
    """A folder with one file of latents and text states for each example.

    Args:
        folder: made with the first example.
        key: all that an encoding depends on beside the example: data, base weights, method, size.
    """

    def __init__(self, folder: Path, key: Sequence[object]) -> None:
        self._folder = folder
        self._key = json.dumps(list(key))

    def encoded(
        self, source: PairSource, ids: Sequence[str], encode: Callable[[TrainingPair], Parts]
    ) -> Iterator[tuple[str, Parts]]:
        """Each example by id, in the order given, with its parts: read where they are here, else encoded and kept.

        Raises:
            InputError: as `PairSource.read`; or a file is damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file, save_file

        missing = [name for name in ids if not self._path(name).is_file()]
        if missing:
            self._folder.mkdir(parents=True, exist_ok=True)
        for pair in source.read(missing) if missing else ():
            parts = {part: value.detach().float().cpu().contiguous() for part, value in encode(pair).items()}
            new = self._path(pair.id).with_suffix(".part")
            save_file(parts, new)
            new.replace(self._path(pair.id))
        for name in ids:
            try:
                yield name, load_file(self._path(name))
            except (OSError, SafetensorError) as error:
                raise InputError(
                    f"{self._path(name)}: cannot be read ({error}); remove {self._folder}, it is made again"
                ) from error

    def remove(self) -> None:
        """When the study is trained."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        digest = hashlib.sha256(f"{self._key} {name}".encode()).hexdigest()
        return self._folder / f"{digest}.safetensors"
