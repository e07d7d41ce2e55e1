"""Splits keep groups whole, depend on nothing but names, and have about the shares that they should."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from plantain.catalogue.groups import Groups
from plantain.records import SourceImage
from plantain.release.plan import SPLITS, splits_of
from release.runs import source_image

numbers = st.lists(st.integers(0, 30), min_size=1, max_size=40, unique=True)


def images(chosen: list[int]) -> list[SourceImage]:
    return [replace(source_image(n), group=f"p{n // 3}" if n % 4 else None) for n in chosen]


@given(numbers, st.randoms())
def test_groups_do_not_depend_on_order(chosen: list[int], rng) -> None:  # type: ignore[no-untyped-def]
    forward = images(chosen)
    shuffled = forward[:]
    rng.shuffle(shuffled)
    one, other = Groups(forward), Groups(shuffled)
    assert [one.group(image) for image in forward] == [other.group(image) for image in forward]


@given(numbers)
def test_patients_and_equal_pixels_stay_together(chosen: list[int]) -> None:
    made = images(chosen)
    twin = replace(made[0], id="twin", dataset="elsewhere", group="other patient")
    drawn = replace(
        made[-1],
        id=f"{made[-1].id}+AMD",
        synthetic=True,
        group=None,
        source_sha256="9" * 64,
        prepared_sha256="8" * 64,
    )
    groups = Groups([*made, twin, drawn])
    assert groups.group(twin) == groups.group(made[0])
    assert groups.group(drawn) == groups.group(made[-1])
    for one in made:
        for other in made:
            if one.group is not None and (one.dataset, one.group) == (other.dataset, other.group):
                assert groups.group(one) == groups.group(other)


def test_shares_are_about_80_10_10() -> None:
    counts = Counter(splits_of([f"g{n}" for n in range(20_000)], 7).values())
    # binomial: the standard deviation of a share of 0.1 over 20,000 is 0.0021; five of them
    assert abs(counts["test"] / 20_000 - 0.1) < 0.011
    assert abs(counts["validation"] / 20_000 - 0.1) < 0.011
    assert set(counts) == {"train", "validation", "test"}


def test_thirteen_patients_have_a_test_part_and_a_growing_run_moves_none_that_its_hash_chose() -> None:
    for seed in range(60):  # by chance 0.9 ** 13, a quarter of the seeds, would have none
        small = splits_of([f"g{n}" for n in range(13)], seed)
        assert set(small.values()) == set(SPLITS) and Counter(small.values())["train"] >= 5
        assert small == splits_of(reversed([f"g{n}" for n in range(13)]), seed)
    large = splits_of([f"g{n}" for n in range(500)], 3)
    larger = splits_of([f"g{n}" for n in range(1000)], 3)
    assert large.items() <= larger.items()
    assert set(splits_of([f"g{n}" for n in range(3)], 3).values()) <= set(SPLITS)
