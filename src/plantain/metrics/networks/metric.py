"""What metrics of a trained network share: the network, and the name that its weights allow."""

from __future__ import annotations

from typing import ClassVar, Generic, Protocol, TypeVar

from plantain.metrics.metric import Metric, MetricSample
from plantain.metrics.networks.at_hand import Networks
from plantain.metrics.networks.encoders import label


class NamedNetwork(Protocol):
    """A network, which says whose weights it has."""

    name: str


N = TypeVar("N", bound=NamedNetwork)


class NetworkMetric(Metric, Generic[N]):
    """A metric under the name of its network, unless that has the weights that the metric was published with."""

    published: ClassVar[frozenset[str]]
    alone = True

    def __init__(self, network: N) -> None:
        super().__init__()
        self.network = network
        self.name = label(self.name, self.published, network.name)
        self.version = f"{self.version} {network.name}"

    @classmethod
    def open(cls, networks: Networks) -> Metric | str:
        network: N | None = getattr(networks, cls.uses)
        return cls(network) if network is not None else ""

    def text(self, sample: MetricSample) -> str:
        """The one text that the metric needs: the prompt or the description of the change."""
        return sample.detailed if "detailed" in self.needs else sample.prompt
