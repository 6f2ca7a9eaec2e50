"""The context passed to handlers: the broker and the request being answered.

`Broker` only holds the components that `server.node` creates; it has no logic of its own. Start at `Broker`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from moldau.broker.stats import BrokerStats

if TYPE_CHECKING:
    from moldau.broker.cluster.figures import ClusterFigures
    from moldau.broker.cluster.forwarding import ForwardingController
    from moldau.broker.cluster.remote_transactions import RemoteTransactions
    from moldau.broker.coordination.coordinators import Coordinators
    from moldau.broker.coordination.producer_ids import ProducerIds
    from moldau.broker.data.data_plane import DataPlane
    from moldau.broker.data.schema_rules import SchemaIds
    from moldau.broker.metadata.topic_answers import TopicAnswers
    from moldau.broker.metrics import Metrics
    from moldau.broker.partitions import Partitions
    from moldau.controller.controller import Controller
    from moldau.controller.image import MetadataImage
    from moldau.core.clock import Clock
    from moldau.core.config import BrokerConfig
    from moldau.log.manager import LogManager
    from moldau.net.session import Session

__all__ = ["Broker", "Listener", "RequestContext"]


class Listener(NamedTuple):
    """One named listener of this broker: its bind address and the address advertised to clients."""

    name: str
    host: str
    port: int
    advertised_host: str
    """Empty: advertise the local address that the client connected to."""
    advertised_port: int
    security_protocol: str = "PLAINTEXT"


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The request being answered and its client. The handlers of Produce and Fetch get the connection instead."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    session: Session

    @property
    def principal(self) -> str:
        return self.session.principal

    @property
    def listener_name(self) -> str:
        return self.session.listener_name

    @property
    def client_host(self) -> str:
        return self.session.client_host

    @property
    def local_host(self) -> str:
        """The local address that the client connected to."""
        return self.session.local_host


@dataclass(slots=True, kw_only=True)
class Broker:
    """The components that handlers use."""

    node_id: int
    cluster_id: str
    config: BrokerConfig
    """Effective configuration; replaced as a whole when a dynamic key changes, so do not store a reference to it."""
    image: MetadataImage
    """The newest committed cluster metadata; replaced as a whole on every change, so do not store a reference to it."""
    controller: Controller
    partitions: Partitions
    logs: LogManager
    metrics: Metrics
    clock: Clock
    listeners: Mapping[str, Listener]
    schema_ids: SchemaIds
    """Lookups of schema ids in a schema registry."""
    topic_answers: TopicAnswers
    """Topics in the form of Metadata responses."""
    forwarding: ForwardingController | None = None
    """In a cluster: how `controller` is reached when it is elsewhere; `None` where this node is the whole quorum."""
    remote_transactions: RemoteTransactions | None = None
    """How transactions reach other brokers, in a cluster."""
    figures: ClusterFigures | None = None
    """What metrics tell of a cluster."""
    stats: BrokerStats = field(default_factory=BrokerStats)
    data_plane: DataPlane = field(init=False)
    """Set by the `DataPlane` itself."""
    producer_ids: ProducerIds = field(init=False)
    coordinators: Coordinators = field(init=False)
