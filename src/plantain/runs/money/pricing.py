"""What a run's models cost: its own prices first, then the table of known models."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import urlsplit

from plantain.calls import ModelLimits
from plantain.models.hosted.known import picture_range, price_of
from plantain.records import FREE, InputError, Price, Usage
from plantain.records.prices import USUAL_TIERS
from plantain.runs.settings.providers import ProviderSection
from plantain.runs.settings.terms import Terms
from plantain.runs.settings.transport import calls_at_once

ON_THIS_MACHINE = frozenset({"offline", "diffusers", "process", "baseline", "outputs", "python"})
"""Providers whose models run here: they cost nothing, and no image leaves the machine for them. The last two are a
benchmark's own baselines, and outputs that were made elsewhere."""

OPEN_MODELS = frozenset({"diffusers", "process"})
"""Those of them that compute for seconds to hours and take one batch after another: no deadline holds for a call."""

LOCAL_OUTAGE_S = 900.0
"""Seconds after which they are given up when they answer nothing any more."""

BATCH_SHARE = 0.5
"""Both providers bill a batch at half of the list price, but not always what is read from a cache there. Flex is as
much, and no half of that half."""


def price_under(terms: Terms, model: str) -> Price | None:
    """The price of a model under these terms; None when nobody has stated one."""
    name = model.partition("/")[2]
    if terms.kind(model) in ON_THIS_MACHINE:
        return FREE
    section = terms.provider(model)
    if name in section.prices:
        price: Price | None = section.prices[name].price()
    else:
        price = price_of(terms.listed(model))
        if price is not None and of_a_region(terms.kind(model), section):
            price = price.times(price.regional_factor)
    if price is None or section.transport != "batch":
        return price
    half = price.times(BATCH_SHARE)
    cached = half.cached_per_m if price.batch_cached_per_m is None else price.batch_cached_per_m
    return replace(half, cached_per_m=cached, tiers=(("flex", 1.0),) if price.tiers else ())


def of_a_region(provider: str, section: ProviderSection) -> bool:
    """Whether calls go to an address of a region, by the installed SDKs' own lists, rather than to the global one."""
    if provider == "vertex":
        return section.location not in ("", "global")
    urls = (section.base_url,) if isinstance(section.base_url, str) else section.base_url
    return provider == "openai" and any(_REGIONAL.fullmatch(urlsplit(url).hostname or "") for url in urls)


_REGIONAL = re.compile(r"[a-z]+\.api\.openai\.com")


def usual_cost(terms: Terms, model: str, role: str, usage: Usage) -> float | None:
    """Dollars of a call that consumes this in a role, under the service tier that is asked for; None where it cannot be
    known."""
    price = price_under(terms, model)
    tier = billed_tier(terms.options(model, role).service_tier)
    return None if price is None else price.cost(replace(usage, tier=tier))


def unpriced(terms: Terms, model: str, role: str) -> str:
    """What nobody has stated a price of: a model, or its service tier in this role; "" where all is stated."""
    price, tier = price_under(terms, model), terms.options(model, role).service_tier
    if price is None:
        return model
    return f"the service tier {tier} of {model}" if _tier_factor(price, tier) is None else ""


def check_prices(terms: Terms) -> None:
    """Refuses a budget over models without a price: it could not be kept.

    Raises:
        InputError: names the model and the fields to fill.
    """
    if terms.limits.budget_usd is None:
        return
    for model in terms.models:
        if price_under(terms, model) is None:
            provider, _, name = model.partition("/")
            raise InputError(
                f"limits.budget_usd: the price of {model} is unknown, so a budget cannot be kept; state it as "
                f'[providers.{provider}.prices."{name}"] with input_per_m, output_per_m (and image_out_each for an '
                "editor), or take the budget out"
            )
        for options in terms.in_every_role(model):
            if _tier_factor(price_under(terms, model), options.service_tier) is None:
                where = options.origin_of("service_tier", f"providers.{model.partition('/')[0]}")
                raise InputError(
                    f"{where}: nobody has stated what the tier {options.service_tier!r} of {model} costs, so a budget "
                    "cannot be kept; take another tier, state the model's price, or take the budget out"
                )


def _tier_factor(price: Price | None, tier: str) -> float | None:
    """How much dearer than listed a service tier is; None where nobody has said so."""
    return 1.0 if price is None else price.tier_factor(billed_tier(tier))


def billed_tier(tier: str) -> str:
    """The name under which a service tier that is asked for is billed; "" for the one that list prices are for."""
    return "" if tier in USUAL_TIERS else TIER_BILLED.get(tier, tier)


TIER_BILLED = {"fast": "priority"}
"""Tiers that are asked for by one name and billed by another."""


def model_limits(terms: Terms, model: str) -> ModelLimits:
    """What admission needs to know of a model."""
    section, provider = terms.provider(model), model.partition("/")[0]
    asked, price = terms.in_every_role(model), price_under(terms, model)
    in_jobs = section.transport == "batch"
    return ModelLimits(
        concurrency=calls_at_once(terms, model),
        requests_per_minute=None if in_jobs else section.requests_per_minute,
        tokens_per_minute=None if in_jobs else section.tokens_per_minute,
        images_per_minute=None if in_jobs else section.images_per_minute,
        price=price,
        max_output_tokens=max(options.max_output_tokens for options in asked),
        image_tokens=max(
            picture_range(terms.listed(model), options.image_size, options.image_quality)[2]
            for options in asked
        ),
        tier_factor=max(_tier_factor(price, options.service_tier) or 1.0 for options in asked),
        in_jobs=in_jobs,
        slow_start=not in_jobs and provider not in OPEN_MODELS,
        deadline_s=None if in_jobs or provider in OPEN_MODELS else _first_deadline(terms, model),
        outage_s=None if in_jobs else _outage_s(terms, provider),
    )


def _first_deadline(terms: Terms, model: str) -> float:
    """A call's first deadline: of what is said of calls and of the provider's requests, the shorter one."""
    if model.partition("/")[0] in ON_THIS_MACHINE:
        return terms.limits.deadline_s
    return min(terms.limits.deadline_s, terms.provider(model).timeout_s)


def _outage_s(terms: Terms, provider: str) -> float | None:
    """How long nobody may answer: a program of this machine that fails is not mended by waiting."""
    if provider in ON_THIS_MACHINE:
        return LOCAL_OUTAGE_S if provider in OPEN_MODELS else None
    return terms.limits.outage_hours * 3600.0
