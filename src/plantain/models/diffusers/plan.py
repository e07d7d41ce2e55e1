"""From an editor's name and a provider's settings to what is loaded and how it is called. Loads nothing yet."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path

from plantain.models.diffusers.jobs import Loading, Running, Steering
from plantain.models.diffusers.licences import WeightsTerms, check_terms, terms_of
from plantain.models.diffusers.methods import EditingMethod, method_for_class, method_named
from plantain.models.diffusers.weights import (
    LORA,
    NotReady,
    Weights,
    class_of,
    find_weights,
    folder_digest,
    has_index,
    is_hub_id,
    missing_part,
    trained_side,
    variant_of,
)
from plantain.models.presets import Preset, known_weights, preset, presets
from plantain.records import InputError
from plantain.roles.options import SIDES_TOLD, LoraChoice, ProviderOptions

STEERING = ("steps", "guidance", "image_guidance", "alpha", "text_steps", "model_steps", "strength")
RUNNING = tuple(field.name for field in fields(Running))
COMMON = frozenset(
    {
        "dtype",
        "device",
        "offload",
        "side",
        "batch_size",
        "lora",
        "loras",
        "bits",
        "compile",
        "attention_backend",
        "tf32",
        "vae_tiling",
        "revision",
        "cache_dir",
        "allow_downloads",
        "accept_licence",
        "safety_checker",
    }
)
"""Settings that every method follows."""


@dataclass(frozen=True, slots=True)
class EditorPlan:
    """An editor that is ready to be loaded.

    Attributes:
        name: as the recipe names it.
        preset: whose settings and words it takes.
        method: how its weights are run.
        weights, lora: what is loaded; `lora` None for none.
        loras: several together, each with its weight.
        terms: under which the weights come.
        loading, steering: for the device.
        options: of the provider.
    """

    name: str
    preset: Preset
    method: EditingMethod
    weights: Weights
    lora: Weights | None
    terms: WeightsTerms
    loading: Loading
    steering: Steering
    options: ProviderOptions
    loras: tuple[tuple[Weights, float], ...] = ()

    @property
    def fingerprint(self) -> str:
        """All that answers depend on, beside the request."""
        settings = " ".join(f"{name}={value}" for name, value in self.steering.settings.items())
        lora = f" lora={self.lora.name}@{self.lora.digest}" if self.lora else ""
        lora += "".join(f" lora={each.name}@{each.digest}*{weight:g}" for each, weight in self.loras)
        return (
            f"{self.method.name} {self.weights.name}@{self.weights.digest}{lora} {settings} "
            f"{self.options.sampling('side', 'dtype')} checker={self.options.safety_checker} "
            f"prompt={self.preset.prompt}{self._drawn_again}{SIDES_TOLD * self.tells_sides}{self._ran}"
        )

    @property
    def tells_sides(self) -> bool:
        """Whether the model is told where the patient's sides lie: not where a run began without that, and not a LoRA,
        which learned from instructions as they were.
        """
        return self.options.edition != 1 and self.lora is None and not self.loras

    @property
    def _ran(self) -> str:
        """What makes it smaller or faster; "" where nothing is said, as in runs from before these settings."""
        return "".join(f" {name}={value}" for name, value in self.loading.running.settings.items())

    @property
    def _drawn_again(self) -> str:
        """What tells answers from those of the first edition, where these were drawn beside their place."""
        return "" if self.method.frame.reference == "canvas" else " reference=canvas"


def plan_editor(name: str, options: ProviderOptions) -> EditorPlan:
    """Finds weights, method and settings of `diffusers/NAME`.

    Raises:
        InputError: no such preset, no weights on disk, a part of them missing, a setting that the method does not
            follow, or a licence that was not accepted. One line, which says what to do.
    """
    chosen, where = _preset_and_weights(name)
    weights = _on_disk(name, where, options)
    method = (
        method_named(chosen.method)
        if chosen.method
        else method_for_class(class_of(weights), str(weights.name))
    )
    part = missing_part(weights)
    if part:
        how = (
            "write [providers.diffusers] allow_downloads = true to fetch the rest"
            if is_hub_id(where)
            else "copy it there"
        )
        raise NotReady(f"{name}: {weights.folder / part} is missing: the weights are incomplete; {how}")
    options.check("diffusers", COMMON | method.takes | ({"step_cache"} if method.caches else set()))
    options = replace(options, side=options.side or trained_side(weights.folder))
    if options.offload not in ("", "none") and not method.offloads:
        raise InputError(f"providers.diffusers.offload: {method.name} needs the whole model on its device")
    if options.bits and "model_steps" in method.takes:
        raise InputError(
            f"providers.diffusers.bits: {method.name} learns each image with the denoiser's weights, and weights of "
            "fewer bits do not learn"
        )
    terms = terms_of(where, weights.folder, method.licence)
    check_terms(name, terms, options.accept_licence)
    loras = tuple((_lora_file(name, one, options), one.weight) for one in options.loras)
    if loras and options.lora:
        raise InputError("providers.diffusers.loras: says several, and lora says one; name it among loras")
    lora = None if loras else _lora(name, options.lora or chosen.lora or _bundled(weights.folder), options)
    for each in filter(None, (lora, *(found for found, _ in loras))):
        _check_one_file(each)
    for each in filter(None, (lora, *(found for found, _ in loras))):
        check_terms(each.name, terms_of(each.name, each.folder), options.accept_licence)
    loading = Loading(
        weights.folder,
        method.name,
        options.dtype,
        options.offload or "none",
        options.safety_checker,
        lora.folder if lora else None,
        variant_of(weights),
        tuple((found.folder, weight) for found, weight in loras),
        Running(**{name: getattr(options, name) for name in RUNNING}),
    )
    steering = _steering(chosen, method, options)
    return EditorPlan(name, chosen, method, weights, lora, terms, loading, steering, options, loras)


def _preset_and_weights(name: str) -> tuple[Preset, str]:
    """The preset (an empty one for plain weights), and the hub id or folder of the weights."""
    named = name.partition("/")[2]
    chosen, at, folder = named.partition("@")
    if f"diffusers/{chosen}" in presets() or at:
        found = preset(f"diffusers/{chosen}")
        if not (folder or found.weights):
            raise NotReady(
                f"{name}: its weights are in no hub; `plantain models convert` makes a folder of what its authors "
                f"publish; say where it lies: {name}@FOLDER"
            )
        return found, folder or found.weights
    if "/" not in named and not Path(named).is_dir():
        preset(name)  # says which preset is nearest
    usual = next((row for row in presets().values() if row.weights == named and row.usual), None)
    return (Preset(name) if usual is None else replace(usual, name=name)), named


def _on_disk(name: str, where: str, options: ProviderOptions) -> Weights:
    found = find_weights(where, options.revision, options.cache_dir)
    half = found is not None and is_hub_id(where) and (not has_index(found) or bool(missing_part(found)))
    if (found is None or half) and options.allow_downloads:
        from plantain.models.diffusers.download import fetch_card, fetch_pipeline

        known = known_weights().get(where)
        if known is None or not known.conditions:
            fetch_card(where, options.revision, options.cache_dir)
        card = find_weights(where, options.revision, options.cache_dir)
        check_terms(name, terms_of(where, card.folder if card else None), options.accept_licence)
        fetch_pipeline(where, options.revision, options.cache_dir, known.disk_gb if known else 0.0)
        found = find_weights(where, options.revision, options.cache_dir)
    if found is None or (is_hub_id(where) and not has_index(found)):
        raise NotReady(
            f"{name}: the weights {where} are not on this machine; write [providers.diffusers] allow_downloads = true "
            f"to fetch them, or name a folder that holds them"
        )
    return found


def _lora(name: str, where: str, options: ProviderOptions) -> Weights | None:
    if not where:
        return None
    found = find_weights(where, "", options.cache_dir)  # the revision is the base's
    if found is None and options.allow_downloads:
        check_terms(where, terms_of(where, None), options.accept_licence)
        from plantain.models.diffusers.download import fetch_lora

        fetch_lora(where, "", options.cache_dir)
        found = find_weights(where, "", options.cache_dir)
    if found is None:
        raise NotReady(
            f"{name}: the LoRA weights {where} are not on this machine; write [providers.diffusers] allow_downloads = "
            "true to fetch them, or lora = a file or folder that holds them"
        )
    return found


def _lora_file(name: str, choice: LoraChoice, options: ProviderOptions) -> Weights:
    """One of several sets of LoRA weights: a folder's file where one is named."""
    found = _lora(name, choice.weights, options)
    assert found is not None
    if not choice.file:
        return found
    path = found.folder / choice.file
    if Path(choice.file).name != choice.file or not path.is_file():
        there = sorted(file.name for file in found.folder.glob("*.safetensors")) or ["none"]
        raise InputError(
            f"providers.diffusers.loras: {choice.weights} has no file {choice.file!r}; it has {', '.join(there)}"
        )
    return Weights(f"{found.name}/{choice.file}", path, folder_digest(path))


def _check_one_file(lora: Weights) -> None:
    """Of a folder's several files diffusers takes the first that the system names, unless one has the usual name.

    Raises:
        InputError: names them.
    """
    files = sorted(file.name for file in lora.folder.glob("*.safetensors")) if lora.folder.is_dir() else []
    if len(files) > 1 and LORA not in files:
        raise InputError(
            f"providers.diffusers.loras: {lora.name} has several files; say which with file = one of {', '.join(files)}"
        )


def _bundled(folder: Path) -> str:
    """LoRA weights that lie in a pipeline's own folder, as training leaves them; "" for none."""
    weights = folder / LORA
    return str(weights) if weights.is_file() else ""


def _steering(chosen: Preset, method: EditingMethod, options: ProviderOptions) -> Steering:
    """The preset's settings, overridden by the provider's section."""
    chosen_here = {name: value for name in STEERING if (value := getattr(options, name)) is not None}
    usual = {name: value for name, value in chosen.settings.items() if name in method.takes}
    return Steering.of({**usual, **chosen_here})
