from __future__ import annotations

import re
import runpy
import sys
from datetime import date
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from fakes.caller import resolve_judge, resolve_writer
from plantain.files.secrets import Secret
from plantain.models.registry import (
    GROUP,
    PRICES,
    endings,
    has_own_connection,
    known_models,
    presets,
    price_of,
    provider,
    provider_names,
)
from plantain.records import InputError
from plantain.roles.options import ProviderOptions


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gemni/x", "did you mean 'gemini'?"),
        ("gemini", "is not provider/model"),
        ("", "is not provider/model"),
        ("offline/template", "did you mean 'offline/templates'"),
    ],
)
def test_unknown_name_is_one_line_with_the_nearest(name: str, message: str) -> None:
    with pytest.raises(InputError, match=r"models\.writer") as caught:
        resolve_writer(name)
    assert message in str(caught.value)


def test_another_packages_provider_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str, float]] = []

    def load(name: str, role: str, options: ProviderOptions) -> object:
        seen.append((name, role, options.timeout_s))
        return SimpleNamespace(name=name, fingerprint="1")

    monkeypatch.setitem(sys.modules, "lab_models", SimpleNamespace(MODELS={}, load=load))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "no_models", SimpleNamespace())  # type: ignore[arg-type]
    info = tmp_path / "lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nlab = lab_models\nbroken = no_such_module_here\nother = no_models\noffline = lab_models\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert provider_names()[-3:] == ("broken", "lab", "other")
    assert provider("offline").MODELS  # of two by one name, ours
    assert has_own_connection("lab/m")
    assert not has_own_connection("offline/templates")
    assert resolve_judge("lab/m", ProviderOptions(timeout_s=5)).name == "lab/m"
    assert seen == [("lab/m", "judge", 5)]
    with pytest.raises(InputError, match="no_such_module_here cannot be loaded"):
        resolve_judge("broken/m")
    with pytest.raises(InputError, match="not a module with MODELS and load"):
        resolve_judge("other/m")


def test_known_models_are_dated_priced_and_of_our_providers() -> None:
    for name, model in known_models().items():
        assert name.split("/")[0] in provider_names()
        assert model.roles
        assert set(model.roles) <= {"writer", "editor", "judge"}
        if model.retired:
            date.fromisoformat(model.retired)
            assert not model.successor or model.successor in known_models()
        for price in model.prices:
            date.fromisoformat(price.date)
            assert "unverified" in price.source
            assert price.output_per_m >= price.input_per_m > 0
        held = sorted((price.since, price.until) for price in model.prices)
        assert all(until == since for (_, until), (since, _) in pairwise(held)), (
            "days without a price, or with two"
        )
    assert price_of("gemini/never-heard-of") is None
    assert {known_models()[f"openai/{name}"].retired for name in ("gpt-5", "gpt-5-mini")} == {"2026-12-11"}


def test_ends_of_models_are_announced_sixty_days_ahead_with_the_successor() -> None:
    model = "openai/gpt-5"
    assert endings([model, "gemini/unheard-of"], date(2026, 10, 11)) == []
    (soon,) = endings([model, model], date(2026, 10, 12))
    assert "ends on 2026-12-11, in 60 days" in soon
    assert "openai/gpt-6.2-sol" in soon
    (gone,) = endings([model], date(2026, 12, 11))
    assert "has ended on 2026-12-11" in gone
    # OpenAI's page on deprecations: image models end by other dates than text models, unlike in the SDK's text.
    (image,) = endings(["openai/gpt-image-1.5"], date(2026, 11, 25))
    assert "ends on 2026-12-01, in 6 days" in image and "openai/gpt-image-2.6-sunburst" in image
    # Microsoft's page on retirements: Azure keeps a model at least 12 months, by dates of its own.
    (cloud,) = endings(["azure/gpt-5"], date(2026, 12, 11))
    assert cloud.startswith("azure/gpt-5 may end soon: openai ends it on 2026-12-11, other providers")
    assert "azure/gpt-6.2-sol" in cloud


def test_prices_equal_those_of_the_named_package() -> None:
    """`make prices` writes the table; a later genai-prices may differ, and its diff then needs a review."""
    pytest.importorskip("genai_prices")
    written = PRICES.read_text("utf-8")
    if written.split(",")[0] != f"# genai-prices {version('genai-prices')}":
        pytest.skip("another version of genai-prices is installed")
    made = runpy.run_path(str(Path(__file__).parents[2] / "checks" / "prices.py"))["made"]
    day = date.fromisoformat(written.partition("read on ")[2][:10])
    assert made(written, day) == written


def test_ends_of_models_equal_those_of_the_installed_sdk() -> None:
    """The announcements are in the text below the SDK's list of models."""
    module = pytest.importorskip("openai.types.shared.chat_model")
    text = " ".join(Path(module.__file__).read_text().split())
    for name, model in known_models().items():
        provider, _, id = name.partition("/")
        stated = [part for part in text.split('- "')[1:] if provider == "openai" and f'"{id}"' in f'"{part}']
        if stated and (announced := re.search(r"shutdown date: (\d{4}-\d\d-\d\d)", stated[0])):
            assert model.retired == announced.group(1), name


def test_a_key_is_never_shown() -> None:
    key = Secret("sk-a/b c-0123456789")
    assert "sk-" not in repr(key) + str(key) + f"{key!r}{key}"
    with pytest.raises(TypeError):
        key.__reduce__()


def test_the_seven_baselines_have_the_papers_settings() -> None:
    """MedEBench's appendix; its SEED-X and Gemini have words of their own before the instruction."""
    table = {
        row.name.partition("medebench-")[2]: row for row in presets().values() if "medebench-" in row.name
    }
    names = "instruct-pix2pix imagic instruct-diffusion paint-by-inpaint icedit seed-x gemini"
    assert set(table) == set(names.split())
    assert table["instruct-pix2pix"].sweep == {"image_guidance": (1.55, 1.6, 1.65), "guidance": (7.5, 7.6)}
    assert table["imagic"].sweep == {"alpha": (1.3, 1.35), "guidance": (7.5, 7.6)}
    stated = {name: dict(row.settings) for name, row in table.items()}
    assert stated["instruct-pix2pix"]["steps"] == stated["imagic"]["steps"] == 50
    assert (stated["instruct-diffusion"]["guidance"], stated["instruct-diffusion"]["image_guidance"]) == (
        5.0,
        1.25,
    )
    assert stated["paint-by-inpaint"] == {"steps": 50, "guidance": 7.0, "image_guidance": 1.7}
    assert stated["icedit"] == {"steps": 28, "guidance": 50.0}
    assert stated["seed-x"]["steps"] == 50
    assert table["seed-x"].words("Add a tooth") == "Edit this image: Add a tooth"
    assert table["gemini"].words("Add a tooth").startswith("You are good at image editing.")
    assert all(row.source.startswith("paper") for row in table.values())
