"""ListConfigResources (74), versions 0-1: the resources that have, or can have, settings.

Until Kafka 4.0 it was called ListClientMetricsResources. v0 lists client metrics only, of which there are none; v1
lists any types. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Iterable

from moldau.broker.context import Broker, RequestContext
from moldau.controller.image import ConfigResourceType, MetadataImage
from moldau.core.errors import ErrorCode
from moldau.protocol.messages import Message

__all__ = ["handle"]

FIRST_WITH_TYPES = 1


def handle(request: Message, call: RequestContext, broker: Broker) -> Message:
    if call.api_version < FIRST_WITH_TYPES:
        return Message(error_code=ErrorCode.NONE, config_resources=[])
    kinds = request.resource_types or list(ConfigResourceType)
    if any(kind not in tuple(ConfigResourceType) for kind in kinds):
        return Message(error_code=ErrorCode.UNSUPPORTED_VERSION, config_resources=[])
    return Message(
        error_code=ErrorCode.NONE,
        config_resources=[
            Message(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(kinds)
            for name in _names(kind, broker.image)
        ],
    )


def _names(kind: int, image: MetadataImage) -> Iterable[str]:
    if kind == ConfigResourceType.TOPIC:
        return sorted(image.topics)
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        return [str(broker.node_id) for broker in image.alive_brokers()]
    return sorted(resource.name for resource in image.configs if resource.type == kind)
