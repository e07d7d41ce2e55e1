"""Encoded examples on disk: each is encoded once, comes back unchanged, and belongs to one study only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from plantain.records import InputError
from plantain.train.denoising import Encoded
from plantain.train.pairs import TrainingPair
from train.moles import pairs

CPU = torch.device("cpu")


class Moles:
    """Pairs in memory, with a record of what was read."""

    def __init__(self) -> None:
        self.pairs = {pair.id: pair for pair in pairs(4)}
        self.asked = list[str]()

    def read(self, ids: Sequence[str]) -> Iterator[TrainingPair]:
        self.asked += ids
        return (self.pairs[name] for name in ids)


def parts(pair: TrainingPair) -> dict[str, Tensor]:
    return {
        "source": torch.from_numpy(pair.before.astype("float32")).permute(2, 0, 1),
        "n": torch.tensor(7.5),
    }


def test_nested_sets_encode_each_example_once_and_keep_the_order_asked_for(tmp_path: Path) -> None:
    source, key = Moles(), ["data", "base", 64]
    first = Encoded(tmp_path / "encoded", key, ["2", "0"], source.read, parts)
    again = Encoded(tmp_path / "encoded", key, ["3", "2", "0"], source.read, parts)
    assert source.asked == ["2", "0", "3"]
    assert again.ids == ("3", "2", "0")
    found, expected = again.rows([1, 2], CPU), [parts(source.pairs[name]) for name in ("2", "0")]
    for part in ("source", "n"):
        assert torch.equal(found[part], torch.stack([one[part] for one in expected]))
        assert torch.equal(found[part], first.rows([0, 1], CPU)[part])
    assert again.canvases == ((64, 64),) * 3
    assert again.chunks(2) == [[0, 1], [2]]


def test_other_weights_or_another_size_encode_anew_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    source, folder = Moles(), tmp_path / "encoded"
    for key in (["base", 64], ["base", 128], ["other", 64]):
        Encoded(folder, key, ["1"], source.read, parts)
    assert source.asked == ["1"] * 3
    for path in folder.iterdir():
        path.write_bytes(b"short")
    with pytest.raises(InputError, match="to encode again"):
        Encoded(folder, ["base", 64], ["1"], source.read, parts)
