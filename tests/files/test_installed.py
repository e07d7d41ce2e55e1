"""plantain whose installation is older than its code says so in one line."""

from __future__ import annotations

import pytest

from plantain.files.installed import installed
from plantain.records import InputError


def test_an_installation_older_than_the_code_is_named() -> None:
    with pytest.raises(
        InputError, match=r"own plantain\.poems are not registered.*run its pip install again"
    ):
        installed("plantain.poems")
