"""What a recipe or settings file may say of a provider in `[providers.NAME]`: limits, address, prices, sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from plantain.journal import JsonValue
from plantain.records import Price
from plantain.roles.batch_rules import USUAL, BatchRules
from plantain.roles.options import LoraChoice, ProviderOptions, WorkerCommand

PerMinute = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


class PriceSection(BaseModel):
    """Prices of one model, in US dollars, as `[providers.NAME.prices."model"]`; see `plantain.records.Price`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input_per_m: Dollars = 0.0
    output_per_m: Dollars = 0.0
    cached_per_m: Dollars | None = None
    batch_cached_per_m: Dollars | None = None
    cached_image_per_m: Dollars | None = None
    cache_write_per_m: Dollars | None = None
    image_input_per_m: Dollars | None = None
    image_output_per_m: Dollars | None = None
    image_out_each: Dollars | None = None

    def price(self) -> Price:
        return Price(**self.model_dump(), source="recipe")


class BatchSection(BaseModel):
    """How large batch jobs may become and how often they are looked at; see `plantain.roles.batch_rules`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    images: Annotated[int, Field(ge=1, le=10_000)] = USUAL.images
    requests: Annotated[int, Field(ge=1, le=50_000)] = USUAL.requests
    megabytes: Annotated[float, Field(gt=0.0, le=200.0)] = USUAL.megabytes
    quiet_s: Annotated[float, Field(gt=0.0, le=3600.0)] = USUAL.quiet_s
    wait_s: Annotated[float, Field(gt=0.0, le=86_400.0)] = USUAL.wait_s
    poll_s: Annotated[float, Field(gt=0.0, le=3600.0)] = USUAL.poll_s

    def rules(self) -> BatchRules:
        return BatchRules(**self.model_dump())


class WorkerSection(BaseModel):
    """How the worker of one model `process/NAME` is started; see `plantain.roles.options.WorkerCommand`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[tuple[str, ...], Field(min_length=1)]
    folder: Path | None = None
    timeout_s: Annotated[float, Field(gt=0.0, le=86_400.0)] = 1800.0
    batch_size: Annotated[int, Field(ge=1, le=10_000)] = 16
    settings: Mapping[str, str | int | float | bool] = Field(default_factory=dict)
    environment: tuple[str, ...] = ()

    def worker(self) -> WorkerCommand:
        """What the adapter is handed."""
        return WorkerCommand(
            self.command,
            self.folder,
            self.timeout_s,
            self.batch_size,
            dict(self.settings),
            self.environment,
        )


class LoraSection(BaseModel):
    """One of several sets of LoRA weights, as `[[providers.diffusers.loras]]`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weights: Annotated[str, Field(min_length=1)]
    file: str = ""
    weight: Annotated[float, Field(ge=-4.0, le=4.0)] = 1.0

    def choice(self) -> LoraChoice:
        """What the adapter is handed."""
        return LoraChoice(self.weights, self.file, self.weight)


class ProviderSection(BaseModel):
    """One provider's settings. What changes answers is frozen in a run; limits, prices, transport and address are free.

    `kind` makes another provider of a known one, under the section's own name: a second account, a served model.
    `transport` "batch" sends calls as jobs, which are cheaper and slower.
    `concurrency` bounds the calls in flight to each of its models, in place of the limit for all.
    `requests_per_minute`, `tokens_per_minute` and `images_per_minute` hold for each of its models; limits
    that are not stated are found from refusals. The other fields are described at
    `plantain.roles.options.ProviderOptions`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["", "gemini", "openai", "vertex", "azure", "openai-compatible"] = ""
    concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None
    requests_per_minute: PerMinute | None = None
    tokens_per_minute: PerMinute | None = None
    images_per_minute: PerMinute | None = None
    transport: Literal["online", "batch"] = "online"
    batch: BatchSection = BatchSection()
    prices: Mapping[str, PriceSection] = Field(default_factory=dict)

    base_url: str | Annotated[tuple[str, ...], Field(min_length=1)] = ""
    project: str = ""
    location: str = ""
    auth: Literal["", "key", "entra"] = ""
    api_version: str = ""
    deployments: Mapping[str, str] = Field(default_factory=dict)
    on_premises: bool = False
    proxy: str = ""
    ca_bundle: Path | None = None
    client_certificate: Path | None = None
    client_key: Path | None = None
    api_key_env: str = ""
    timeout_s: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 180.0
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    use_seed: bool = True
    thinking: str = ""
    thinking_budget: Annotated[int, Field(ge=-1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] = 8192
    safety: str = ""
    image_size: str = ""
    image_quality: str = ""
    service_tier: str = ""
    media_resolution: str = ""
    input_fidelity: str = ""
    mask: bool = False
    moderation: str = ""
    background: str = ""
    output_format: str = ""
    true_cfg_scale: Annotated[float, Field(ge=0.0, le=1000.0)] | None = None
    negative_prompt: str = ""
    server: str = ""
    leniency: str = "balanced"
    form: str = "plain"
    prompts: Path | None = None

    dtype: Literal["", "float32", "float16", "bfloat16"] = ""
    device: str = ""
    offload: Literal["", "none", "model", "sequential"] = ""
    steps: Annotated[int, Field(ge=1, le=10_000)] | None = None
    guidance: Annotated[float, Field(ge=0.0, le=1000.0)] | None = None
    image_guidance: Annotated[float, Field(ge=0.0, le=1000.0)] | None = None
    alpha: Annotated[float, Field(ge=0.0, le=10.0)] | None = None
    text_steps: Annotated[int, Field(ge=0, le=100_000)] | None = None
    model_steps: Annotated[int, Field(ge=0, le=100_000)] | None = None
    strength: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    side: Annotated[int, Field(ge=32, le=4096)] | None = None
    batch_size: Annotated[int, Field(ge=1, le=256)] | None = None
    lora: str = ""
    loras: tuple[LoraSection, ...] = ()
    bits: Literal[0, 4, 8] = 0
    compile: bool = False
    attention_backend: str = ""
    tf32: bool = False
    vae_tiling: bool = False
    step_cache: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    revision: str = ""
    cache_dir: Path | None = None
    allow_downloads: bool = False
    accept_licence: tuple[str, ...] = ()
    safety_checker: bool = True
    workers: Mapping[str, WorkerSection] = Field(default_factory=dict)

    def options(self) -> ProviderOptions:
        """The part that the provider's adapter is handed."""
        known = {field.name for field in fields(ProviderOptions)} - {"batch", "workers", "base_url", "loras"}
        stated = {name: getattr(self, name) for name in known & set(type(self).model_fields)}
        workers = {name: section.worker() for name, section in self.workers.items()}
        urls = (self.base_url,) if isinstance(self.base_url, str) else self.base_url
        several = urls if len(urls) > 1 else ()
        return ProviderOptions(
            **stated, base_url=urls[0], base_urls=several, batch=self.batch.rules(), workers=workers
        )

    def beside(self, folder: Path) -> ProviderSection:
        """The section with its relative paths taken from `folder`."""
        update: dict[str, object] = {
            name: folder / path
            for name in ("prompts", "cache_dir", "ca_bundle", "client_certificate", "client_key")
            if (path := getattr(self, name)) is not None
        }
        if self.workers:
            update["workers"] = {
                name: section.model_copy(update={"folder": folder / section.folder})
                if section.folder
                else section
                for name, section in self.workers.items()
            }
        return self.model_copy(update=update) if update else self

    def frozen_part(self) -> dict[str, JsonValue]:
        """Settings that change answers, where they differ from the default."""
        settings: dict[str, JsonValue] = self.model_dump(
            mode="json", include=set(SAMPLING), exclude_defaults=True
        )
        return settings


SAMPLING = (
    "temperature",
    "top_p",
    "use_seed",
    "thinking",
    "thinking_budget",
    "max_output_tokens",
    "safety",
    "image_size",
    "image_quality",
    "service_tier",
    "media_resolution",
    "input_fidelity",
    "mask",
    "moderation",
    "background",
    "output_format",
    "true_cfg_scale",
    "negative_prompt",
    "server",
    "leniency",
    "form",
    "dtype",
    "steps",
    "guidance",
    "image_guidance",
    "alpha",
    "text_steps",
    "model_steps",
    "strength",
    "side",
    "lora",
    "loras",
    "bits",
    "compile",
    "attention_backend",
    "tf32",
    "vae_tiling",
    "step_cache",
    "revision",
    "safety_checker",
)
"""Prompts are frozen by their hashes, which are part of each model's fingerprint."""

NO_SETTINGS = ProviderSection()
