"""Resolve an editor's name and a provider's settings to a pipeline and its arguments.

Nothing is loaded; weights are fetched from the hub only if the settings allow it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from plantain.models.diffusers.jobs import RUNNING, Loading, Steering
from plantain.models.diffusers.licences import WeightsTerms, check_terms, terms_of
from plantain.models.diffusers.methods import EditingMethod, method_for_class, method_named
from plantain.models.diffusers.provider import Settings
from plantain.models.diffusers.weights import (
    LORA,
    NotReady,
    Weights,
    class_of,
    find_weights,
    has_index,
    is_hub_id,
    missing_part,
    trained_side,
    variant_of,
)
from plantain.models.registry import Preset, known_weights, preset, presets
from plantain.pixels.decode import one_line
from plantain.records import InputError

VERSION = "1"
"""Of this adapter; raised when the same weights and request could be run differently."""

STEERING = tuple(field.name for field in fields(Steering))


@dataclass(frozen=True, slots=True)
class EditorPlan:
    """An editor that is ready to be loaded.

    Attributes:
        name: name in the recipe.
        preset: the preset, with its settings and prompt.
        method: the method that runs the weights.
        weights: the weights to load.
        lora: LoRA weights; None for none.
        terms: licence of the weights.
        loading, steering: the pipeline to load and the settings of its calls.
        options: settings of the provider.
    """

    name: str
    preset: Preset
    method: EditingMethod
    weights: Weights
    lora: Weights | None
    terms: WeightsTerms
    loading: Loading
    steering: Steering
    options: Settings

    @property
    def fingerprint(self) -> str:
        """Return, as text, all settings and versions on which edits depend besides the request."""
        settings = {**self.steering.settings, **self.loading.running}
        parts = [
            f"diffusers@{VERSION} {self.method.name} {self.weights.name}@{self.weights.digest}",
            *([f"lora={self.lora.name}@{self.lora.digest}"] if self.lora else []),
            *(f"{name}={value}" for name, value in settings.items()),
            self.options.sampling("side", "dtype"),
            f"checker={self.options.safety_checker} prompt={self.preset.prompt}",
        ]
        return " ".join(parts)

    @property
    def names_sides(self) -> bool:
        """True if the prompt states the patient's left and right; LoRA weights were trained without that."""
        return self.lora is None


def plan_editor(name: str, options: Settings) -> EditorPlan:
    """Resolve `diffusers/NAME` to its weights, method and settings; no weights are loaded.

    Raises:
        InputError: no such preset, no weights on disk, a missing part, a setting that the method does not support, or a
            licence that was not accepted; one line with the remedy.
    """
    chosen, where = _preset_and_weights(name)
    weights = _on_disk(name, where, options)
    method = (
        method_named(chosen.method)
        if chosen.method
        else method_for_class(class_of(weights), str(weights.name))
    )
    if part := missing_part(weights):
        fetch = "write [providers.diffusers] allow_downloads = true to fetch the rest"
        how = fetch if is_hub_id(where) else "copy it there"
        raise NotReady(f"{name}: {weights.folder / part} is missing: the weights are incomplete; {how}")
    for unknown in sorted(options.stated & set(STEERING) - method.takes):
        raise InputError(
            f"{options.origin_of(unknown, 'providers.diffusers')}: {method.name} has no such setting; it takes "
            f"{', '.join(sorted(method.takes))}"
        )
    options = options.but(side=options.side or trained_side(weights.folder))
    if options.offload not in ("", "none") and not method.offloads:
        raise InputError(f"providers.diffusers.offload: {method.name} needs the whole model on its device")
    if options.bits and method.name == "imagic":
        raise InputError(
            "providers.diffusers.bits: imagic trains the denoiser, and quantised weights cannot be trained"
        )
    terms = terms_of(where, weights.folder, method.licence)
    check_terms(name, terms, options.accept_licence)
    lora = None
    if asked := options.lora or chosen.lora or _bundled(weights.folder):
        lora = _lora_weights(name, asked, options)
        check_terms(lora.name, terms_of(lora.name, lora.folder), options.accept_licence)
    usual = {key: value for key, value in chosen.settings.items() if key in method.takes}
    here = {key: value for key in STEERING if (value := getattr(options, key)) is not None}
    loading = Loading(
        weights.folder,
        method.name,
        options.dtype,
        options.offload or "none",
        options.safety_checker,
        variant_of(weights),
        lora.folder if lora else None,
        **{key: getattr(options, key) for key in RUNNING},
    )
    steering = Steering.of({**usual, **here})
    return EditorPlan(name, chosen, method, weights, lora, terms, loading, steering, options)


def _preset_and_weights(name: str) -> tuple[Preset, str]:
    """The preset (an empty one for plain weights), and the hub id or folder of the weights."""
    named = name.partition("/")[2]
    chosen, at, folder = named.partition("@")
    if f"diffusers/{chosen}" in presets() or at:
        found = preset(f"diffusers/{chosen}")
        if not (folder or found.weights):
            raise NotReady(
                f"{name}: its weights are in no hub; docs/how-to/open-editors.md makes a folder of what its authors "
                f"publish; name the folder: {name}@FOLDER"
            )
        return found, folder or found.weights
    if "/" not in named and not Path(named).is_dir():
        preset(name)  # raises with the nearest preset
    usual = next((row for row in presets().values() if row.weights == named and row.usual), None)
    return (Preset(name) if usual is None else replace(usual, name=name)), named


def _on_disk(name: str, where: str, options: Settings) -> Weights:
    found = find_weights(where, options.revision, options.cache_dir)
    half = found is not None and is_hub_id(where) and (not has_index(found) or bool(missing_part(found)))
    if (found is None or half) and options.allow_downloads:
        known = known_weights().get(where)
        if known is None or not known.conditions:
            fetch_files(where, options.revision, options.cache_dir, ["README.md"])
        card = find_weights(where, options.revision, options.cache_dir)
        check_terms(name, terms_of(where, card.folder if card else None), options.accept_licence)
        fetch_pipeline(where, options.revision, options.cache_dir)
        found = find_weights(where, options.revision, options.cache_dir)
    if found is None or (is_hub_id(where) and not has_index(found)):
        raise NotReady(
            f"{name}: the weights {where} are not on this machine; write [providers.diffusers] allow_downloads = true "
            f"in the recipe or a file for --settings to fetch them, or name a folder with them"
        )
    return found


def _lora_weights(name: str, where: str, options: Settings) -> Weights:
    """Find LoRA weights: a file, or a folder with a single file or one of the usual name."""
    found = find_weights(where, "", options.cache_dir)  # the revision is the base's
    if found is None and options.allow_downloads:
        check_terms(where, terms_of(where, None), options.accept_licence)
        fetch_files(where, "", options.cache_dir, ["*.safetensors", "README.md"])
        found = find_weights(where, "", options.cache_dir)
    if found is None:
        raise NotReady(
            f"{name}: the LoRA weights {where} are not on this machine; write [providers.diffusers] allow_downloads = "
            "true to fetch them, or lora = a file or folder with them"
        )
    files = sorted(file.name for file in found.folder.glob("*.safetensors")) if found.folder.is_dir() else []
    if len(files) > 1 and LORA not in files:  # diffusers would take any of them
        raise InputError(
            f"providers.diffusers.lora: {found.folder} has several files; name one of {', '.join(files)}"
        )
    return found


def _bundled(folder: Path) -> str:
    """LoRA weights in a pipeline's own folder, as training writes them; "" for none."""
    weights = folder / LORA
    return str(weights) if weights.is_file() else ""


def fetch_files(name: str, revision: str, cache_dir: Path | None, patterns: list[str]) -> None:
    """Download a repository's files that match `patterns` into the hub's cache. Raise InputError if that fails."""
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(name, revision=revision or None, cache_dir=cache_dir, allow_patterns=patterns)
    except (OSError, ValueError) as error:
        raise _not_fetched(name, error) from error


def fetch_pipeline(name: str, revision: str, cache_dir: Path | None) -> None:
    """Download a pipeline into the hub's cache, or resume an interrupted download. Raise InputError if that fails."""
    from diffusers import DiffusionPipeline

    try:
        DiffusionPipeline.download(name, revision=revision or None, cache_dir=cache_dir)
    except (OSError, ValueError) as error:
        raise _not_fetched(name, error) from error


def _not_fetched(name: str, error: BaseException) -> InputError:
    return InputError(
        f"{name}: could not be fetched from the hub: {one_line(str(error))}; gated weights need a token in HF_TOKEN "
        "and their conditions accepted on their page"
    )
