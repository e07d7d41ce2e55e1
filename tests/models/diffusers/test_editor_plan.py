"""From names and settings to loaded weights: found on disk, chosen by class, gated by licence, or refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from plantain.models.diffusers.licences import terms_of
from plantain.models.diffusers.plan import EditorPlan, plan_editor
from plantain.models.diffusers.provider import Settings
from plantain.models.diffusers.weights import folder_digest
from plantain.records import InputError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FLUX = "flux-1-dev-non-commercial-license"


def plan(name: object, **settings: object) -> EditorPlan:
    return plan_editor(f"diffusers/{name}", Settings(**settings))  # type: ignore[arg-type]


def cached(cache: Path, name: str, folder: Path, commit: str = COMMIT) -> Path:
    """A folder in the layout of the hub's cache."""
    place = cache / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text(commit)
    shutil.copytree(folder, place / "snapshots" / commit)
    return place / "snapshots" / commit


def test_method_follows_from_the_folders_class(tiny_folder: Callable[[str], Path]) -> None:
    for method in ("instruct-pix2pix", "sdxl-instruct-pix2pix", "flux2-klein", "qwen-image-edit-plus"):
        chosen = plan(tiny_folder(method))
        assert chosen.method.name == method
        assert chosen.loading.folder == tiny_folder(method).resolve()
        assert (chosen.steering.settings, chosen.terms.licence) == ({}, "unknown")


def test_preset_finds_its_weights_in_the_hubs_cache(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "timbrooks/instruct-pix2pix"
    folder = cached(tmp_path, name, tiny_folder("instruct-pix2pix"))
    found = plan("medebench-instruct-pix2pix", cache_dir=tmp_path)
    assert found.loading.folder == folder
    assert found.weights.digest == COMMIT[:12]
    assert found.terms.licence == "mit"
    assert found.steering.settings == {"steps": 50, "guidance": 7.5, "image_guidance": 1.6}
    assert COMMIT[:12] in found.fingerprint
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert plan(name).loading.folder == folder
    assert plan(name, revision=COMMIT).loading.folder == folder
    with pytest.raises(InputError, match="not on this machine"):
        plan(name, revision="other")


def test_missing_weights_are_named_in_one_line_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    for name in ("flux2-klein-4b", "some/model"):
        with pytest.raises(InputError) as caught:
            plan(name)
        message = str(caught.value)
        assert "allow_downloads = true" in message
        assert "\n" not in message
    with pytest.raises(InputError, match=r"its weights are in no hub.*@FOLDER"):
        plan("medebench-instruct-diffusion")
    with pytest.raises(InputError, match="did you mean 'diffusers/flux1-kontext'"):
        plan("flux1-kontex")
    with pytest.raises(InputError, match="neither a folder nor a hub id"):
        plan("./nothing-here/at/all")


def test_a_licence_with_conditions_must_be_accepted_by_name(tiny_folder: Callable[[str], Path]) -> None:
    """Every weights of these classes are FLUX.1-dev's, whatever folder contains them."""
    for method in ("flux-kontext", "icedit"):
        with pytest.raises(InputError, match=f'accept_licence = \\["{FLUX}"\\]'):
            plan(tiny_folder(method))
        assert plan(tiny_folder(method), accept_licence=(FLUX,)).terms.licence == FLUX
        with pytest.raises(InputError, match="not free for every use"):
            plan(tiny_folder(method), accept_licence=("mit",))


@pytest.mark.parametrize(
    ("header", "licence", "conditions"),
    [
        ("license: apache-2.0", "apache-2.0", False),
        ("license: other\nlicense_name: flux-non-commercial-license", "flux-non-commercial-license", True),
        ("license: mit\nextra_gated_prompt: Say who you are", "mit", True),
        ("tags: [x]", "unknown", False),
    ],
)
def test_the_licence_is_read_from_the_weights_own_card(
    tmp_path: Path, header: str, licence: str, conditions: bool
) -> None:
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\n# A model\nlicense: none\n")
    terms = terms_of(str(tmp_path), tmp_path)
    assert (terms.licence, terms.conditions) == (licence, conditions)


def test_the_fingerprint_changes_with_all_that_answers_depend_on(
    tiny_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tiny_folder("instruct-pix2pix"), folder)
    usual = plan(folder).fingerprint
    assert plan(folder).fingerprint == usual
    for settings in (
        {"steps": 3},
        {"guidance": 2.0},
        {"side": 256},
        {"dtype": "bfloat16"},
        {"safety_checker": False},
    ):
        assert plan(folder, **settings).fingerprint != usual
    for settings in ({"device": "cuda:1"}, {"offload": "model"}):
        assert plan(folder, **settings).fingerprint == usual
    (weights,) = (folder / "unet").glob("*.safetensors")
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    assert plan(folder).fingerprint != usual
    assert len(folder_digest(weights)) == 12


def test_weights_are_downloaded_only_if_allowed_and_after_the_licence(
    tiny_folder: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fetch(name: str, revision: str, cache_dir: Path | None) -> None:
        asked.append(name)
        cached(tmp_path, name, tiny_folder("flux2-klein" if "klein" in name else "icedit"))

    monkeypatch.setattr("plantain.models.diffusers.plan.fetch_pipeline", fetch)
    monkeypatch.setattr("plantain.models.diffusers.plan.fetch_files", lambda *place: None)
    with pytest.raises(InputError, match="not on this machine"):
        plan("flux2-klein-4b", cache_dir=tmp_path)
    with pytest.raises(InputError, match=FLUX):
        plan("black-forest-labs/FLUX.1-Fill-dev", cache_dir=tmp_path, allow_downloads=True)
    assert asked == []
    assert plan("flux2-klein-4b", cache_dir=tmp_path, allow_downloads=True).weights.digest == COMMIT[:12]
    assert asked == ["black-forest-labs/FLUX.2-klein-4B"]
    plan("flux2-klein-4b", cache_dir=tmp_path, allow_downloads=True)
    assert len(asked) == 1  # cached weights are not fetched again
