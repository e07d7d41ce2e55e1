"""Skip these tests without the torch extra."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")
pytest.importorskip("diffusers", reason="needs the torch extra")
pytest.importorskip("peft", reason="needs the torch extra")
