"""IncrementalAlterConfigs (44), versions 0-1: set, delete, append to and subtract from single settings.

Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable

from moldau.broker.context import Broker, RequestContext
from moldau.broker.metadata.config_changes import ChangeOf, alter
from moldau.controller.decisions.configs import ConfigOp, ResourceChange
from moldau.controller.image import ConfigResource
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Awaitable[Message]:
    changes = [_change(resource) for resource in request.resources]
    return alter(changes, broker, validate_only=request.validate_only)


def _change(asked: Message) -> tuple[ConfigResource, ChangeOf]:
    change = ResourceChange(
        ConfigResource(asked.resource_type, asked.resource_name),
        tuple(ConfigOp(config.name, config.config_operation, config.value) for config in asked.configs),
    )
    return change.resource, lambda image: change
