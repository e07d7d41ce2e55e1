"""Splits keep groups whole, depend only on names, and have about their shares; pseudonyms are plain."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from plantain.catalogue.groups import Groups
from plantain.records import Licence, SourceImage
from plantain.release.naming import Pseudonyms, safe
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


def test_thirteen_patients_have_a_test_split_and_a_growing_run_moves_no_patient_chosen_by_hash() -> None:
    for seed in range(60):  # by chance 0.9 ** 13, a quarter of the seeds, would have none
        small = splits_of([f"g{n}" for n in range(13)], seed)
        assert set(small.values()) == set(SPLITS) and Counter(small.values())["train"] >= 5
        assert small == splits_of(reversed([f"g{n}" for n in range(13)]), seed)
    large = splits_of([f"g{n}" for n in range(500)], 3)
    larger = splits_of([f"g{n}" for n in range(1000)], 3)
    assert large.items() <= larger.items()
    assert set(splits_of([f"g{n}" for n in range(3)], 3).values()) <= set(SPLITS)


@given(st.text(max_size=60))
def test_safe_names_are_plain(name: str) -> None:
    made = safe(name)
    assert made and made.isascii() and not made.startswith(".")
    assert not set(made) & set('/\\ :*?"<>|\x00')
    assert safe(made) == made


def test_near_duplicates_of_an_open_and_a_credentialed_source_stay_in_one_group(tmp_path: Path) -> None:
    # Ingest joined two images of different datasets that look alike; the owner of one of them restricts its names.
    restricted = replace(source_image(1, Licence.CREDENTIALED), dataset="restricted", group="joined:0123")
    free = replace(source_image(2), dataset="free", group="joined:0123")
    other = replace(source_image(4, Licence.CREDENTIALED), dataset="restricted", group="patient 9")
    names = Pseudonyms(tmp_path, imported=False)
    names.prepare([free, restricted, other])
    released = [names.released(image) for image in (restricted, free, other)]
    assert Groups(released).count(released) == 2
    assert Groups(released).group(released[0]) == Groups(released).group(released[1])
    assert not any(name in str(image.group) for image in released for name in ("0123", "patient 9"))
    # Withdrawing by either name finds the same images.
    assert names.behind(str(released[0].group)) == {"joined:0123"}
    again = Pseudonyms(tmp_path, imported=False)
    again.prepare([restricted, free])
    assert again.released(free).group == released[1].group
