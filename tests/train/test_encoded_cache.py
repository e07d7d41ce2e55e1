"""Encoded examples on the disk: each is encoded once, comes back as it was, and belongs to one study only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from plantain.records import InputError
from plantain.train.examples.encoded_cache import ExampleCache
from plantain.train.examples.pairs import ListedExample, TrainingPair
from train.moles import pairs


class Moles:
    """Pairs in memory, which says what was read."""

    name = "moles"
    digest = "d"

    def __init__(self) -> None:
        self.pairs = {pair.id: pair for pair in pairs(4)}
        self.asked = list[str]()

    def listed(self) -> list[ListedExample]:
        return [ListedExample(pair.id, pair.task, pair.cluster) for pair in self.pairs.values()]

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
    first = dict(ExampleCache(tmp_path / "encoded", key).encoded(source, ["2", "0"], parts))
    again = list(ExampleCache(tmp_path / "encoded", key).encoded(source, ["3", "2", "0"], parts))
    assert source.asked == ["2", "0", "3"]
    assert [name for name, _ in again] == ["3", "2", "0"]
    for name, found in again[1:]:
        expected = parts(source.pairs[name])
        assert {part: value.shape for part, value in found.items()} == {
            part: value.shape for part, value in expected.items()
        }
        assert all(torch.equal(found[part], expected[part]) for part in expected)
        assert all(torch.equal(found[part], first[name][part]) for part in expected)


def test_other_weights_or_another_size_encode_anew_and_what_is_damaged_is_named(tmp_path: Path) -> None:
    source, folder = Moles(), tmp_path / "encoded"
    for key in (["base", 64], ["base", 128], ["other", 64]):
        list(ExampleCache(folder, key).encoded(source, ["1"], parts))
    assert source.asked == ["1"] * 3
    for path in folder.iterdir():
        path.write_bytes(b"short")
    with pytest.raises(InputError, match="it is made again"):
        list(ExampleCache(folder, ["base", 64]).encoded(source, ["1"], parts))
    ExampleCache(folder, ["base", 64]).remove()
    assert not folder.exists()
