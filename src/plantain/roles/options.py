"""Settings of providers, as a recipe states them and adapters receive them, and the address that they lead to.

Every provider's module offers `Settings`, a class below one of the two here with that provider's own fields. A section
`[providers.NAME]` is read into it; `[settings.ROLE]` replaces single fields of it for one role. The reach of an address
(loopback, on the premises, hosted) is decided by the IP addresses of its host.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from plantain.files.secrets import Secret, key_from_environment
from plantain.records import Destination, Outgoing, Price, Reach
from plantain.records.tasks import RECIPE


class Clearance(Protocol):
    """The interface of the check before images are sent; implemented by `plantain.runs`."""

    async def clear(self, model: str, to: Destination, images: Collection[Outgoing]) -> None:
        """Check and record that every image may be sent to this destination. Raise NotAllowed if one may not."""
        ...

    async def connected(self, to: Destination, ip: str) -> None:
        """Record the IP address of a connection, before anything is sent over it."""
        ...


T = TypeVar("T")


class Marker(str):
    """A marker in a field's annotation that states how the field is used; see the aliases below."""


FREE, EDITS, WORDS = map(Marker, ("free", "editors", "writers or judges"))
Free = Annotated[T, FREE]
"""A field that may change when a run is resumed. All others change answers: they are frozen."""
ForEditors = Annotated[T, EDITS]
ForWords = Annotated[T, WORDS]
"""Fields that only these roles follow; a field without a marker holds for every role."""

PUBLIC = (
    "googleapis.com",
    "openai.com",
    "azure.com",
    "azure.us",
    "azure.cn",
    "anthropic.com",
    "amazonaws.com",
)
"""Public hosts of providers: never on premises, whatever a recipe declares."""


class Section(BaseModel):
    """The base class of sections of a user's TOML file: immutable; an unknown key is a validation error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PriceSection(Section):
    """Prices of one model, in US dollars, as `[providers.NAME.prices."model"]`; see `plantain.records.Price`."""

    input_per_m: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    output_per_m: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    cached_per_m: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    batch_cached_per_m: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    cached_image_per_m: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    cache_write_per_m: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    image_input_per_m: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    image_output_per_m: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)
    image_out_each: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)

    def price(self) -> Price:
        """Return the section as a `Price` whose source is `RECIPE`."""
        return Price(**self.model_dump(), source=RECIPE)


@dataclass(frozen=True, slots=True)
class CallContext:
    """The run's data that an adapter needs in addition to its settings.

    Attributes:
        listed: the model's name in the table of known models, if it differs.
        origin: field -> role's section that set it, for messages.
        clearance: the check before an image is sent from this machine; None: no image may be sent.
        jobs: the run's batch client if calls are sent in jobs; None to send each at once.
        key_later: True if no call will be made with this model, so that a missing key is accepted.
    """

    listed: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)
    clearance: Clearance | None = None
    jobs: object | None = None
    key_later: bool = False


class ProviderSettings(Section):
    """The settings that all providers have, in a recipe's section `[providers.NAME]`.

    Attributes:
        kind: the provider, if NAME is your own name, e.g. of a second account or a server; "" if NAME is the provider.
        concurrency: maximum number of calls in flight to each of its models; None for `limits.concurrency`.
        requests_per_minute, tokens_per_minute: limits of each of its models; None to learn them from the provider's
            answers. Each request to an image model makes one image.
        prices: prices of its models by name, instead of those in the table of known models.
    """

    kind: Free[str] = ""
    concurrency: Free[int | None] = Field(default=None, ge=1, le=10_000)
    requests_per_minute: Free[float | None] = Field(default=None, gt=0.0, allow_inf_nan=False)
    tokens_per_minute: Free[float | None] = Field(default=None, gt=0.0, allow_inf_nan=False)
    prices: Free[Mapping[str, PriceSection]] = Field(default_factory=dict)

    _context: CallContext = PrivateAttr(default=CallContext())

    def within(self, **changes: object) -> Self:
        """Return a copy of the settings whose `CallContext` has these fields replaced."""
        copy = self.model_copy()
        copy._context = replace(self._context, **changes)  # type: ignore[arg-type]
        return copy

    def but(self, **changes: object) -> Self:
        """Return a copy of the settings with these fields replaced, without validation."""
        return self.model_copy(update=changes)

    def get(self, name: str) -> Any:
        """Return a field by its name; None if this provider does not have it."""
        return getattr(self, name, None)

    @property
    def context(self) -> CallContext:
        return self._context

    @property
    def in_jobs(self) -> bool:
        """True if calls are sent in batch jobs."""
        return bool(self.get("transport") == "batch")

    @property
    def stated(self) -> frozenset[str]:
        """The names of the fields that a resumed run must repeat and that differ from their defaults."""
        return frozenset(self.frozen_part())

    def origin_of(self, name: str, section: str) -> str:
        """Return a setting's place in the recipe, for messages: the role's section if it set it, else `section`."""
        return self._context.origin.get(name, f"{section}.{name}")

    def sampling(self, *names: str) -> str:
        """Format the named fields, if set, as "name=value name=value", for fingerprints and the journal."""
        values = ((name, self.get(name)) for name in names)
        return " ".join(f"{name}={value}" for name, value in values if value not in (None, ""))

    def frozen_part(self) -> dict[str, object]:
        """Return the fields that change answers and differ from their defaults, as JSON values by name."""
        names = {name for name, known in type(self).model_fields.items() if FREE not in known.metadata}
        return self.model_dump(mode="json", include=names, exclude_defaults=True)

    def relative_to(self, folder: Path) -> Self:
        """Return the settings with relative paths resolved against `folder`. Raise ValueError if a file is missing."""
        paths = {
            name: value for name in type(self).model_fields if isinstance(value := getattr(self, name), Path)
        }
        return self.but(**{name: folder / path for name, path in paths.items()}) if paths else self


class ProviderOptions(ProviderSettings):
    """The settings of a provider with a network connection, and of plug-in providers without a class `Settings`.

    Attributes:
        base_url: http(s) address of the server; "" for the provider's usual one.
        on_premises: True if the owner declares that images sent to `base_url` stay on the premises.
        ca_bundle: PEM file with certificates of further authorities; relative paths start at the TOML file's folder.
        api_key_env: name of the environment variable with the key; "" for the provider's usual one.
        timeout_s: seconds after which an unanswered request is ended.
        temperature: sampling temperature; unset for the provider's default.
        top_p: share of the probability mass that is sampled from; unset for the provider's default.
        thinking: thinking level of a writer or judge: none, minimal, low, medium, high; "" for the provider's default.
        max_output_tokens: maximum tokens of one answer, including thinking and images; a budget reserves them.
        image_size: size of an edited image, in the provider's terms, e.g. "1K"; "" for its default.
        media_resolution: resolution at which a writer or judge reads images, e.g. "low"; "" for the default.
        prompts: folder, relative to the TOML file's, whose templates replace plantain's, by file name; a resumed run
            must have the same texts.
    """

    base_url: Free[str] = ""
    on_premises: Free[bool] = False
    ca_bundle: Free[Path | None] = None
    api_key_env: Free[str] = ""
    timeout_s: Free[float] = Field(default=600.0, gt=0.0, allow_inf_nan=False)
    temperature: float | None = Field(default=None, ge=0.0, le=2.0)
    top_p: float | None = Field(default=None, gt=0.0, le=1.0)
    thinking: ForWords[str] = ""
    max_output_tokens: int = Field(default=8192, ge=1)
    image_size: ForEditors[str] = ""
    media_resolution: ForWords[str] = ""
    prompts: Free[Path | None] = None

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        return checked_url(url) if url else url

    @model_validator(mode="after")
    def _declares_something(self) -> Self:
        if self.on_premises and not self.base_url:
            raise ValueError(
                "on_premises: true without base_url: the provider's own address is not on the premises; add base_url, "
                "or remove on_premises"
            )
        host = (urlsplit(self.base_url).hostname or "").rstrip(".")
        if self.on_premises and any(host == public or host.endswith(f".{public}") for public in PUBLIC):
            raise ValueError(f"on_premises: true, but {host} is the provider's public address")
        return self

    def relative_to(self, folder: Path) -> Self:
        placed = super().relative_to(folder)
        if placed.ca_bundle is not None and not placed.ca_bundle.is_file():
            raise ValueError(f"ca_bundle: {placed.ca_bundle}: no such file")
        return placed


def checked_url(url: str) -> str:
    """Return the URL if it is http(s) without user, password, query or fragment. Raise ValueError otherwise.

    The message never repeats a password.
    """
    try:
        parts = urlsplit(url)
        host = _host(url)
        _ = parts.port
    except ValueError:
        raise ValueError("is not an address like https://host/v1") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("contains a user name or password; keys come from the environment only")
    if "?" in url or "#" in url:
        raise ValueError(
            "has a query (?...) or fragment; an address ends with its path, and keys come from the environment only"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("is not an address like https://host/v1")
    return url


def _host(url: str) -> str:
    """Return the host of an address, "" for none. Raise ValueError for an ambiguous one."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    if re.search(r"[\s\\\x00-\x1f\x7f]", url) or (
        ("[" in place or "]" in place) and not re.fullmatch(r"\[[0-9A-Fa-f:.]+\](:[0-9]*)?", place)
    ):
        raise ValueError(f"{place!r} is not a host")
    return parts.hostname or ""


class BatchRules(Section):
    """The settings in `[providers.NAME.batch]`.

    Attributes:
        images: maximum number of edits in a job, which limits the size of answers: those above a gigabyte were billed
            but could not be downloaded.
        requests: maximum number of requests in a job.
        megabytes: maximum megabytes of a job's request file; a single larger request is sent as a job.
        quiet_s: seconds without a new request after which a job is sent.
        wait_s: seconds that the first request waits at most before its job is sent.
        poll_s: first polling interval in seconds; it grows up to ten times.
    """

    images: int = Field(default=100, ge=1, le=10_000)
    requests: int = Field(default=1_000, ge=1, le=50_000)
    megabytes: float = Field(default=100.0, gt=0.0, le=200.0)
    quiet_s: float = Field(default=10.0, gt=0.0, le=3600.0)
    wait_s: float = Field(default=120.0, gt=0.0, le=86_400.0)
    poll_s: float = Field(default=30.0, gt=0.0, le=3600.0)


class BatchSettings(ProviderOptions):
    """The settings of a provider with a batch interface.

    Attributes:
        transport: "batch" sends calls as jobs, at half the price, within a day.
        batch: limits of these jobs.
    """

    transport: Free[Literal["online", "batch"]] = "online"
    batch: Free[BatchRules] = BatchRules()


def origin_of(url: str) -> str:
    """Return "scheme://host:port" of a URL in lower case, with the scheme's default port if it names none."""
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = (parts.hostname or "").rstrip(".")
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def resolved(host: str, port: int | None = None) -> list[str]:
    """Resolve a host name to all its IP addresses; [host] if it is an address already, [] if it does not resolve."""
    host = host.rstrip(".")
    try:
        return [str(ipaddress.ip_address(host))]
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def not_loopback(host: str, addresses: list[str]) -> str:
    """Return why a host is not this machine; "" if each of its addresses is loopback."""
    if not addresses:
        return f"{host} does not resolve, so nothing shows that it is this machine"
    for address in addresses:
        if not _is_loopback(address):
            return f"{host} is not loopback" if address == host else f"{host} resolves to {address}"
    return ""


def destination(url: str, options: ProviderOptions) -> Destination:
    """Return a URL's destination: resolve the host and decide its reach."""
    host = urlsplit(url).hostname or ""
    why = not_loopback(host, resolved(host))
    if not why:
        return Destination(origin_of(url), Reach.LOOPBACK)
    reach = Reach.ON_PREMISES if options.on_premises and options.base_url else Reach.HOSTED
    return Destination(origin_of(url), reach, why)


def stays_on_premises(options: ProviderOptions) -> bool:
    """Return True if a base URL is configured that is local or on the premises."""
    return bool(options.base_url) and destination(options.base_url, options).reach is not Reach.HOSTED


async def loopback_addresses(host: str, port: int) -> list[str]:
    """Return the IP addresses of a loopback host. Raise ConnectionRefusedError if it is not loopback any more."""
    addresses = await asyncio.to_thread(resolved, host, port)
    why = not_loopback(host, addresses)
    if why:
        raise ConnectionRefusedError(f"{why}; it was this machine when the run first used it")
    return addresses


def _is_loopback(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)


def key_of(provider: str, options: ProviderOptions, usual: tuple[str, ...]) -> Secret:
    """Return the key from the variable that a section names, else from the provider's usual ones. Raise MissingKey."""
    names = (options.api_key_env,) if options.api_key_env else usual
    return key_from_environment(
        names, provider, near=stays_on_premises(options), later=options.context.key_later
    )
