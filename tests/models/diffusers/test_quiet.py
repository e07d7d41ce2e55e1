"""What the libraries say unasked while they are imported stays off the terminal; what they warn of later does not."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

IMPORTED = """
from plantain.models.diffusers.quiet import quiet_libraries
quiet_libraries()
import plantain.models.diffusers.engine, torchao
"""


@pytest.mark.slow
def test_importing_diffusers_beside_torchao_says_nothing() -> None:
    """In a process of its own, as `models try` has one: slow because that imports torch."""
    pytest.importorskip("torchao")
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stderr == ""


def test_other_warnings_of_the_same_loggers_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("diffusers")
    from plantain.models.diffusers.quiet import quiet_libraries

    quiet_libraries()
    with caplog.at_level(logging.WARNING):
        logging.getLogger("torchao").warning("Failed to load /k.so: no such file")
        logging.getLogger("torchao").warning("Skipping import of cpp extensions")
    assert [record.message for record in caplog.records] == ["Skipping import of cpp extensions"]
