"""What a recipe may say about a provider that concerns its adapter: where it is, and how its models are asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Protocol
from urllib.parse import urlsplit

from plantain.records import InputError, Price
from plantain.records.suggestions import suggest
from plantain.roles.batch_rules import USUAL, BatchRules
from plantain.roles.clearance import Clearance

PUBLIC = (
    "googleapis.com",
    "api.aws",
    "amazonaws.com",
    "openai.com",
    "azure.com",
    "azure.us",
    "azure.cn",
    "anthropic.com",
)
"""Where the public finds a provider: nobody's premises, whatever a recipe declares."""

THINKING = ("none", "minimal", "low", "medium", "high")
LENIENCY = ("balanced", "strict")
FORMS = ("plain", "blind")


class BatchJobs(Protocol):
    """The run's batch client, as far as this floor knows it; an adapter that sends jobs narrows it to the class."""

    @property
    def models(self) -> frozenset[str]: ...


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """How the worker of `process/NAME` is started; the contract is in docs/design/open-models.md.

    Attributes:
        command: program and arguments; the program is usually another environment's Python.
        folder: where it runs; None for here.
        timeout_s: seconds for one batch, the loading of weights included.
        batch_size: most edits in one manifest.
        settings: handed to the worker as they are.
        environment: variables that it gets although they hold keys, by name; of others it gets none.
    """

    command: tuple[str, ...]
    folder: Path | None = None
    timeout_s: float = 1800.0
    batch_size: int = 16
    settings: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    environment: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LoraChoice:
    """One of several sets of LoRA weights.

    Attributes:
        weights: hub id, folder or file.
        file: name of the file in it; "" for the usual one.
        weight: how much of it, 1 for as it was trained.
    """

    weights: str
    file: str = ""
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """One `[providers.NAME]` section as its adapter needs it. An empty value leaves the choice to the provider.

    Attributes:
        kind: the known provider that stands behind a named endpoint; "" for the one that is named.
        listed: the name under which the table of known models has the model, where it is another.
        base_url: where the provider is; needed by `openai-compatible` and `azure`.
        base_urls: all addresses of a model that several servers serve; `base_url` is the first.
        project: the Google Cloud project of `vertex`.
        location: its region; "global" for the global endpoint.
        bucket: "gs://bucket/folder" through which the batch jobs of `vertex` go.
        storage_url: address of that bucket's storage, where it is not Google's own.
        auth: how to sign in to `azure`: "key" or "entra"; "" for the key where the environment has one, else Entra.
        api_version: version of Azure's interface.
        deployments: names of Azure deployments -> the model that each serves, whose price it has.
        on_premises: the owner declares that images sent to `base_url` stay on the premises.
        proxy: address of the proxy that leads there; "" for the environment's, and for none where `on_premises` is set.
        ca_bundle: certificates of further authorities to trust, PEM: a hospital's own.
        client_certificate: what a server asks for to know us, PEM.
        client_key: the certificate's key, PEM, where it does not stand in the same file.
        api_key_env: name of the environment variable that holds the key, instead of the provider's usual one.
        timeout_s: seconds until an unanswered request is given up.
        temperature: of sampling; None for the provider's default.
        top_p: share of the probability that is sampled from; None for the provider's default.
        use_seed: send the call's seed where the provider takes one.
        thinking: how much a writer or judge may think: none, minimal, low, medium, high.
        thinking_budget: the same in tokens, for Gemini models that take a number.
        max_output_tokens: most tokens of one answer, thinking and pictures included; what a budget reserves.
        safety: Gemini's threshold for its adjustable filters, e.g. "BLOCK_ONLY_HIGH".
        image_size: size of an edited image, in the provider's words, e.g. "1K".
        image_quality: quality of an edited image, in the provider's words, e.g. "high".
        shown_side: longer side in pixels at which a writer or judge is shown pictures; None for as they are.
        service_tier: how soon and at which price it answers, in the provider's words ("flex", "priority").
        media_resolution: how closely a writer or judge looks at pictures ("low", "high").
        input_fidelity: how closely an editor keeps to what it was given: "low" or "high".
        mask: hand the region where the change belongs to the editor; benchmarks know one.
        moderation: how strictly OpenAI looks at an edit: "low" or "auto".
        background: background of an edited picture, e.g. "opaque".
        output_format: file format of an edited picture, e.g. "png".
        true_cfg_scale: classifier-free guidance of a served diffusion editor.
        negative_prompt: what a served diffusion editor should keep out of the picture.
        server: what an `openai-compatible` server is, e.g. "vllm": which names and settings it takes.
        origin: settings that were said elsewhere than in the provider's section -> where, for messages.
        leniency: how the judge's prompt weighs small imperfections: "balanced" or "strict".
        form: how a judge is asked: "plain", at once, or "blind", in two calls, of which the first shows it the two
            pictures alone.
        prompts: folder whose templates replace ours, by file name.
        edition: of our prompts, and of what open editors are told; 0 for the latest. A run that goes on has the one
            that it was begun with.
        price: overrides the table of known models.
        dtype: of an open model's weights: "float32", "float16", "bfloat16"; "" for the family's own on this device.
        device: where open models run: "cpu", "cuda:1", or several with commas; "" for every GPU, else the processor.
        offload: "none", "model" or "sequential": parts of a model wait in main memory until they are needed.
        steps: denoising steps of a diffusion editor; None for the preset's.
        guidance: how strongly a diffusion editor follows the instruction; None for the preset's.
        image_guidance: how strongly it keeps to the original, in methods that know this; None for the preset's.
        alpha: Imagic's step from the image's own embedding towards the text's.
        text_steps: steps in which Imagic learns the embedding of one image; None for 500.
        model_steps: steps in which Imagic learns the weights of one image; None for 1000.
        strength: how far an editor that is told where starts from the original there: 1 from noise, less from it.
        side: longest side, or square root of the area, at which an open editor works; None for the family's own.
        batch_size: most edits computed together on one device; None for one on a processor, four on a GPU.
        lora: hub id or folder of LoRA weights put onto an open editor.
        loras: several together.
        bits: bits to which an open editor's denoiser is quantised, 8 or 4; 0 for as the weights are.
        compile: compile the denoiser's blocks (torch.compile) with the first edits.
        attention_backend: one of diffusers, e.g. "native", "_native_cudnn", "flash"; "" for its default.
        tf32: matrix products of float32 in TF32, on NVIDIA's GPUs.
        vae_tiling: the VAE works tile by tile, which takes less memory.
        step_cache: threshold of the first block cache, which leaves out steps that change little; 0 for none.
        revision: branch, tag or commit of weights from the hub.
        cache_dir: where weights from the hub lie, instead of the usual cache.
        allow_downloads: fetch weights that are not on disk; otherwise nothing here ever opens a connection.
        accept_licence: the licences, by name, that the user accepts: needed by weights with conditions.
        safety_checker: keep a safety checker that the weights bring; what it blacks out is a refusal.
        workers: how to start the models of `process/NAME`, by name.
        jobs: the run's batch client, where its calls are to wait for jobs; None to send each at once.
        clearance: asked before a picture is sent to any address but this machine's; without one, none is.
        batch: how large its jobs may become.
        key_later: nothing is called with this model, so that a missing key is no fault.
    """

    kind: str = ""
    listed: str = ""
    base_url: str = ""
    base_urls: tuple[str, ...] = ()
    project: str = ""
    location: str = ""
    bucket: str = ""
    storage_url: str = ""
    auth: str = ""
    api_version: str = ""
    deployments: Mapping[str, str] = field(default_factory=dict)
    on_premises: bool = False
    api_key_env: str = ""
    timeout_s: float = 180.0
    temperature: float | None = None
    top_p: float | None = None
    use_seed: bool = True
    thinking: str = ""
    thinking_budget: int | None = None
    max_output_tokens: int = 8192
    safety: str = ""
    image_size: str = ""
    image_quality: str = ""
    shown_side: int | None = None
    service_tier: str = ""
    media_resolution: str = ""
    input_fidelity: str = ""
    mask: bool = False
    moderation: str = ""
    background: str = ""
    output_format: str = ""
    true_cfg_scale: float | None = None
    negative_prompt: str = ""
    server: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)
    leniency: str = "balanced"
    form: str = "plain"
    prompts: Path | None = None
    edition: int = 0
    price: Price | None = None
    dtype: str = ""
    device: str = ""
    offload: str = ""
    steps: int | None = None
    guidance: float | None = None
    image_guidance: float | None = None
    alpha: float | None = None
    text_steps: int | None = None
    model_steps: int | None = None
    strength: float | None = None
    side: int | None = None
    batch_size: int | None = None
    lora: str = ""
    loras: tuple[LoraChoice, ...] = ()
    bits: int = 0
    compile: bool = False
    attention_backend: str = ""
    tf32: bool = False
    vae_tiling: bool = False
    step_cache: float = 0.0
    revision: str = ""
    cache_dir: Path | None = None
    allow_downloads: bool = False
    accept_licence: tuple[str, ...] = ()
    safety_checker: bool = True
    workers: Mapping[str, WorkerCommand] = field(default_factory=dict)
    proxy: str = ""
    ca_bundle: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    jobs: BatchJobs | None = None
    clearance: Clearance | None = None
    batch: BatchRules = USUAL
    key_later: bool = False

    def sampling(self, *names: str) -> str:
        """The named settings that are set, as text for a fingerprint and for the journal."""
        settings = ((name, getattr(self, name)) for name in names)
        return " ".join(f"{name}={value}" for name, value in settings if value not in (None, ""))

    def check(
        self,
        provider: str,
        allowed: frozenset[str],
        choices: Mapping[str, Collection[str]] = MappingProxyType({}),
    ) -> None:
        """Refuses a setting that this provider cannot follow: a setting that is ignored would be recorded as kept.

        Args:
            provider: its name in the recipe.
            allowed: names of the settings that it follows, beside those that every provider does.
            choices: what some of them may be.

        Raises:
            InputError: names the field and what is allowed.
        """
        where = f"providers.{provider}"
        for known in fields(self):
            default = known.default_factory() if known.default_factory is not MISSING else known.default
            unset = getattr(self, known.name) == default
            if not unset and known.name == "base_urls" and known.name not in allowed:
                raise InputError(f"{where}.base_url: {provider} takes one address, not {len(self.base_urls)}")
            if not unset and known.name not in allowed | _COMMON:
                raise InputError(
                    f"{self.origin_of(known.name, where)}: {provider} has no such setting; it takes "
                    f"{', '.join(sorted((allowed | _COMMON) - _UNSAID))}"
                )
        for name, known_values in {
            "thinking": THINKING,
            "leniency": LENIENCY,
            "form": FORMS,
            **choices,
        }.items():
            value = getattr(self, name)
            if value and value not in known_values:
                raise InputError(f"{self.origin_of(name, where)}: {value!r}; {suggest(value, known_values)}")
        if self.timeout_s <= 0:
            raise InputError(f"{where}.timeout_s: must be more than 0 seconds, not {self.timeout_s:g}")
        if self.max_output_tokens < 1:
            raise InputError(f"{where}.max_output_tokens: must be at least 1")
        for url in self.base_urls or filter(None, (self.base_url,)):
            check_url(url, f"{where}.base_url")
        self._check_connection(where)

    def origin_of(self, name: str, section: str) -> str:
        """Where a person set an option, for messages."""
        return self.origin.get(name, f"{section}.{name}")

    def _check_connection(self, where: str) -> None:
        """Refuses a declaration about nothing, and files that are not there. Raises InputError."""
        if self.on_premises and not self.base_url:
            raise InputError(
                f"{where}.on_premises: true, but no base_url says where: the provider's own address is not in the "
                "house; add base_url, or take on_premises out"
            )
        for url in self.base_urls or (self.base_url,):
            host = (urlsplit(url).hostname or "").rstrip(".")
            if self.on_premises and any(host == public or host.endswith(f".{public}") for public in PUBLIC):
                raise InputError(
                    f"{where}.on_premises: true, but {host} is the provider's own address for everybody"
                )
        if self.proxy:
            check_url(self.proxy, f"{where}.proxy")
        for name in ("ca_bundle", "client_certificate", "client_key"):
            path = getattr(self, name)
            if path is not None and not path.is_file():
                raise InputError(f"{where}.{name}: {path}: no such file")
        if self.client_key is not None and self.client_certificate is None:
            raise InputError(f"{where}.client_key: belongs to a client_certificate, which is missing")


_COMMON = frozenset(
    {
        "kind",
        "listed",
        "origin",
        "shown_side",
        "base_url",
        "on_premises",
        "api_key_env",
        "timeout_s",
        "leniency",
        "prompts",
        "edition",
        "price",
        "proxy",
        "ca_bundle",
        "client_certificate",
        "client_key",
        "jobs",
        "clearance",
        "batch",
        "key_later",
    }
)


_UNSAID = frozenset(
    {"kind", "listed", "origin", "shown_side", "edition", "price", "jobs", "clearance", "batch", "key_later"}
)
"""Common options that are no settings of a section."""


def check_url(url: str, where: str) -> None:
    """Refuses what is no http address, and one that carries a password: it would be journalled.

    Raises:
        InputError: one line; it never repeats a password.
    """
    try:
        parts = urlsplit(url)
        host = _host(url)
        _ = parts.port
    except ValueError:
        raise InputError(f"{where}: is not an address like https://host/v1") from None
    if parts.username is not None or parts.password is not None:
        raise InputError(f"{where}: holds a user name or password; keys come from the environment only")
    if "?" in url or "#" in url:
        raise InputError(
            f"{where}: has a query (?...) or fragment; an address ends with its path, and keys come from the "
            "environment only"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise InputError(f"{where}: is not an address like https://host/v1")


def _host(url: str) -> str:
    """The host of an address; "" for none. Raises ValueError for one that others may read in another way."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    if re.search(r"[\s\\\x00-\x1f\x7f]", url) or (
        ("[" in place or "]" in place) and not re.fullmatch(r"\[[0-9A-Fa-f:.]+\](:[0-9]*)?", place)
    ):
        raise ValueError(f"{place!r} is no host")
    return parts.hostname or ""
