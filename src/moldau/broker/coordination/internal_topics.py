"""The internal topics in which coordinators keep their state: their settings and their creation.

They are created when first needed, so a broker without groups never has them. Start at `create_internal_topic`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from moldau.controller.decisions.topics import NewTopic
from moldau.core.errors import ErrorCode, MoldauError

if TYPE_CHECKING:
    from moldau.broker.context import Broker
    from moldau.core.config import BrokerConfig

__all__ = ["CONSUMER_OFFSETS", "TRANSACTION_STATE", "InternalTopic", "create_internal_topic"]


class InternalTopic(NamedTuple):
    """The broker settings of an internal topic, by the prefixes of Kafka's setting names."""

    name: str
    prefix: str
    configs: Mapping[str, str]
    min_isr_key: str | None = None
    codec_key: str | None = None

    def codec(self, config: BrokerConfig) -> int:
        """How its batches are compressed, by number."""
        return 0 if self.codec_key is None else int(config.value(self.codec_key))

    def new(self, config: BrokerConfig) -> NewTopic:
        value = config.value
        configs = dict(self.configs) | {"segment.bytes": str(value(f"{self.prefix}.segment.bytes"))}
        if self.min_isr_key is not None:
            configs["min.insync.replicas"] = str(value(self.min_isr_key))
        return NewTopic(
            name=self.name,
            partitions=value(f"{self.prefix}.num.partitions"),
            replication_factor=value(f"{self.prefix}.replication.factor"),
            configs=configs,
        )


CONSUMER_OFFSETS = InternalTopic(
    "__consumer_offsets",
    "offsets.topic",
    MappingProxyType({"cleanup.policy": "compact", "compression.type": "producer"}),
    codec_key="offsets.topic.compression.codec",
)
TRANSACTION_STATE = InternalTopic(
    "__transaction_state",
    "transaction.state.log",
    MappingProxyType(
        {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "unclean.leader.election.enable": "false",
        }
    ),
    min_isr_key="transaction.state.log.min.isr",
)


async def create_internal_topic(broker: Broker, topic: InternalTopic) -> str | None:
    """Create the topic if it does not exist; return why that failed, or `None`."""
    try:
        (result,) = await broker.controller.create_topics([topic.new(broker.config)])
    except MoldauError as error:
        return str(error)
    if result.error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        return None
    return result.message or result.error.name
