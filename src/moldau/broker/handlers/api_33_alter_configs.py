"""AlterConfigs (33), versions 0-2: the older API, which replaces all settings of a resource.

Settings that are not in the request are reset to their defaults. Start at `handle`.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from moldau.broker.context import Broker, RequestContext
from moldau.broker.metadata.config_changes import ChangeOf, alter
from moldau.controller.decisions.configs import replacement_of
from moldau.controller.image import ConfigResource
from moldau.protocol.messages import Message

__all__ = ["handle"]


def handle(request: Message, call: RequestContext, broker: Broker) -> Awaitable[Message]:
    changes = [_change(resource) for resource in request.resources]
    return alter(changes, broker, validate_only=request.validate_only)


def _change(asked: Message) -> tuple[ConfigResource, ChangeOf]:
    resource = ConfigResource(asked.resource_type, asked.resource_name)
    settings = [(config.name, config.value) for config in asked.configs]
    return resource, partial(replacement_of, resource=resource, settings=settings)
